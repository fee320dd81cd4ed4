// How much of a request the gateway keeps that no app has read, and how many requests a connection by HTTP/2 may have (decisions 82 and 84).

/** The fourth part of the program. */
export const guardHttp2 = String.raw`
const (
	// In bytes. The gateway makes room for a whole frame of HTTP/2 as soon as its length has come; Go's own limit is 1 MB.
	maxFrame = 16 * 1024
	// Of what clients have sent by HTTP/2 and no app has read: for each request, and for each connection.
	maxUpload = 256 * 1024
	// Requests at a time on one connection. Go lets four times as many cancelled ones wait, with 6 KB each, and then ends the connection.
	maxStreams = 100
	// An address with n connections by HTTP/2 gets so many requests on the next one: this divided by n, within these limits.
	addressStreams = 3200
	minStreams     = 8
)

var (
	// Servers that have the limits, and how many of them are of Traefik.
	limited sync.Map
	servers int64
	// How many connections by HTTP/2 an address has.
	doubles = map[string]int{}
	// By the number of requests on a connection.
	variants = map[*http.Server]map[int]*http.Server{}
)

// Traefik has no options for these limits. Go reads them of the server at the beginning of each connection, so a plugin can set them.
func limit(server *http.Server) {
	if _, known := limited.LoadOrStore(server, true); known {
		return
	}
	atomic.AddInt64(&servers, 1)
	server.ConnState = count
	server.Handler = early(server.Handler)
	if restrict(server, server, maxStreams) {
		divide(server)
	}
}

// By reflection: a Traefik without this field must not fail because of it.
func restrict(server *http.Server, as *http.Server, streams int64) bool {
	field := reflect.ValueOf(server).Elem().FieldByName("HTTP2")
	if !field.IsValid() {
		return false
	}
	settings := reflect.New(field.Type().Elem())
	before := reflect.ValueOf(as).Elem().FieldByName("HTTP2")
	if !before.IsNil() {
		settings.Elem().Set(before.Elem())
	}
	wanted := map[string]int64{
		"MaxReadFrameSize":              maxFrame,
		"MaxReceiveBufferPerConnection": maxUpload,
		"MaxReceiveBufferPerStream":     maxUpload,
		"MaxConcurrentStreams":          streams,
	}
	for name, value := range wanted {
		setting := settings.Elem().FieldByName(name)
		if setting.IsValid() {
			setting.SetInt(value)
		}
	}
	field.Set(settings)
	return true
}

// Go begins each connection by HTTP/2 with a function of this map, and the server that the function is given decides about its limits.
func divide(server *http.Server) {
	next := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for name, serve := range server.TLSNextProto {
		next[name] = sharing(serve)
	}
	server.TLSNextProto = next
}

func sharing(serve func(*http.Server, *tls.Conn, http.Handler)) func(*http.Server, *tls.Conn, http.Handler) {
	return func(server *http.Server, conn *tls.Conn, handler http.Handler) {
		address := clientOf(conn)
		connsMu.Lock()
		doubles[address]++
		streams := addressStreams / doubles[address]
		connsMu.Unlock()
		defer func() {
			connsMu.Lock()
			less(doubles, address)
			connsMu.Unlock()
		}()
		serve(variant(server, within(minStreams, streams, maxStreams)), conn, handler)
	}
}

// A connection without TLS is inside of one that has no address.
func clientOf(conn *tls.Conn) string {
	inner := reflect.ValueOf(conn.NetConn()).MethodByName("UnencryptedNetConn")
	if !inner.IsValid() {
		return hostOf(conn.RemoteAddr().String())
	}
	return hostOf(inner.Call(nil)[0].Interface().(net.Conn).RemoteAddr().String())
}

// A server like this one, with another number of requests. It serves nothing but connections that this one has accepted.
func variant(server *http.Server, streams int) *http.Server {
	if streams == maxStreams {
		return server
	}
	connsMu.Lock()
	defer connsMu.Unlock()
	if variants[server] == nil {
		variants[server] = map[int]*http.Server{}
	}
	other := variants[server][streams]
	if other == nil {
		other = &http.Server{
			ConnState:      server.ConnState,
			ErrorLog:       server.ErrorLog,
			MaxHeaderBytes: server.MaxHeaderBytes,
			ReadTimeout:    server.ReadTimeout,
			WriteTimeout:   server.WriteTimeout,
			IdleTimeout:    server.IdleTimeout,
		}
		restrict(other, server, int64(streams))
		variants[server][streams] = other
		limited.Store(other, true)
	}
	return other
}
`;
