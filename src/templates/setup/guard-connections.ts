// How many connections clients may have to the gateway, and how much of a request the gateway keeps that no app has read (decision 82).

/** The last part of the program. */
export const guardConnections = String.raw`
const (
	// For all clients together. One address may have as many as are left for others, so the first one gets half.
	maxConns = 8192
	// In bytes. The gateway makes room for a whole frame of HTTP/2 as soon as its length has come; Go's own limit is 1 MB.
	maxFrame = 16 * 1024
	// Of what clients have sent by HTTP/2 and no app has read: for each request, and for each connection.
	maxUpload = 256 * 1024
	// Requests by HTTP/2 on one connection. Of cancelled ones, four times as many may wait to be ended.
	maxStreams = 100
	// Requests that the gateway works on, whether they have an instance or not; for one address again half. A client that cancels its requests at once can
	// start more than end.
	maxInside = 4096
	// Of one connection in a second. Browsers cancel some.
	maxCancels = 100
	// An address with fewer connections keeps them when memory is short.
	minLost = 16
)

var (
	connsMu sync.Mutex
	servers = map[*http.Server]bool{}
	conns   = map[string]net.Conn{}
	holders = map[string]int{}
	guests  = map[string]int{}
	inside  int
	// Requests that clients cancelled in the present second, by connection.
	cancels = map[string]int{}
)

// Traefik has no options for these limits. Go reads them of the server at the beginning of each connection, so a plugin can set them.
func limit(server *http.Server) {
	connsMu.Lock()
	defer connsMu.Unlock()
	if servers[server] {
		return
	}
	servers[server] = true
	server.ConnState = count
	// By reflection: a Traefik without this field must not fail because of it.
	field := reflect.ValueOf(server).Elem().FieldByName("HTTP2")
	if !field.IsValid() {
		return
	}
	if field.IsNil() {
		field.Set(reflect.New(field.Type().Elem()))
	}
	wanted := map[string]int64{
		"MaxReadFrameSize":              maxFrame,
		"MaxReceiveBufferPerConnection": maxUpload,
		"MaxReceiveBufferPerStream":     maxUpload,
		"MaxConcurrentStreams":          maxStreams,
	}
	for name, value := range wanted {
		setting := field.Elem().FieldByName(name)
		if setting.IsValid() {
			setting.SetInt(value)
		}
	}
}

func hostOf(address string) string {
	return address[:strings.LastIndexByte(address, ':')]
}

func enter(address string) bool {
	connsMu.Lock()
	defer connsMu.Unlock()
	held := guests[address]
	if held < maxInside-inside || held == 0 && inside < maxInside {
		guests[address] = held + 1
		inside++
		return true
	}
	return false
}

func exit(address string) {
	connsMu.Lock()
	defer connsMu.Unlock()
	inside--
	if guests[address] == 1 {
		delete(guests, address)
	} else {
		guests[address]--
	}
}

// Connections of a protocol that was switched to are requests that are open, and count as those.
func count(conn net.Conn, state http.ConnState) {
	if state == http.StateActive || state == http.StateIdle {
		return
	}
	address := hostOf(conn.RemoteAddr().String())
	key := conn.RemoteAddr().String()
	connsMu.Lock()
	held := holders[address]
	allowed := true
	if state == http.StateNew {
		_, known := conns[key]
		allowed = held < maxConns-len(conns) || held == 0 && len(conns) < maxConns
		if allowed {
			conns[key] = conn
		}
		if allowed && !known {
			holders[address] = held + 1
		}
	} else if conns[key] == conn {
		delete(conns, key)
		holders[address] = held - 1
		if held == 1 {
			delete(holders, address)
		}
	}
	connsMu.Unlock()
	if !allowed {
		drop(conn)
	}
}

// At once: the end of TLS would wait until the client reads.
func drop(conn net.Conn) {
	secure, ok := conn.(*tls.Conn)
	if ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

// While memory is short, the address with the most connections loses them.
func relieve() {
	connsMu.Lock()
	most := ""
	for address, held := range holders {
		if held > holders[most] {
			most = address
		}
	}
	closing := []net.Conn{}
	if holders[most] > minLost {
		for key, conn := range conns {
			if hostOf(key) == most {
				closing = append(closing, conn)
			}
		}
	}
	connsMu.Unlock()
	for _, conn := range closing {
		drop(conn)
	}
	runtime.GC()
}

// A client may cancel a request, but one that only starts and cancels them takes the gateway's CPU time from others.
func cancelled(key string) {
	connsMu.Lock()
	cancels[key]++
	conn := conns[key]
	many := cancels[key] > maxCancels
	connsMu.Unlock()
	if many && conn != nil {
		drop(conn)
	}
}

func forget() {
	for range time.Tick(time.Second) {
		connsMu.Lock()
		cancels = map[string]int{}
		connsMu.Unlock()
	}
}

// The first request of an entry point shows its server. The guard asks by itself, so that no connection is earlier than the limits.
func introduce() {
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	for range time.Tick(time.Second) {
		open := 0
		for _, url := range []string{"http://127.0.0.1:8000/", "http://127.0.0.1:8001/", "https://127.0.0.1:8443/"} {
			answer, err := client.Get(url)
			if err == nil {
				answer.Body.Close()
				open++
			}
		}
		connsMu.Lock()
		known := len(servers)
		connsMu.Unlock()
		if open > 0 && known >= open {
			return
		}
	}
}
`;
