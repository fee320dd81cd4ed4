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
	// Of one address in a second, on all its connections. Many clients may have one address.
	maxCancelsOfAddress = 1000
	// In seconds, from the first cancelled request beyond that in each second: no new connections of this address.
	barTime = 2
	// An address with fewer connections keeps them when memory is short.
	minLost = 16
	// In bytes, after garbage has been collected. With less in use, nobody loses connections.
	maxUsed = 300 * 1024 * 1024
	// The same while requests of an address that cancelled too many may still be in work: the memory is theirs, and their connections are closed already.
	maxUsedAfter = 650 * 1024 * 1024
	// In seconds.
	afterTime = 10
)

var (
	connsMu sync.Mutex
	servers = map[*http.Server]bool{}
	conns   = map[string]net.Conn{}
	holders = map[string]int{}
	guests  = map[string]int{}
	inside  int
	// Requests that clients cancelled in the present second, by connection and by address (*int64). Attackers cancel so many that a lock would keep
	// all others waiting, so these three need none.
	cancels   sync.Map
	cancelsOf sync.Map
	// Connections that are being closed for this: their other requests end at once.
	lost sync.Map
	// Addresses that cancel too much, with the seconds that are left. They get no new connections.
	barred sync.Map
	// When an address was barred last, in seconds.
	barredAt int64
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
	key := conn.RemoteAddr().String()
	address := hostOf(key)
	if state == http.StateNew {
		if _, is := barred.Load(address); is {
			drop(conn)
			return
		}
	}
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
		lost.Delete(key)
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

// While memory is short, the address with the most connections loses them. What an attack took may be garbage by now, and then they are of somebody else.
func relieve() {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	allowed := uint64(maxUsed)
	if time.Now().Unix()-atomic.LoadInt64(&barredAt) < afterTime {
		allowed = maxUsedAfter
	}
	if stats.HeapAlloc <= allowed {
		return
	}
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

func increase(counts *sync.Map, name string) int64 {
	found, known := counts.Load(name)
	if !known {
		found, _ = counts.LoadOrStore(name, new(int64))
	}
	return atomic.AddInt64(found.(*int64), 1)
}

// A client may cancel a request, but one that only starts and cancels them takes the gateway's CPU time from others. An address that opens one such
// connection after the other gets no new ones for a while. Many clients may have one address: those that cancel nothing keep their connections.
func cancelled(r *http.Request) {
	// By HTTP/1 it costs the client a connection, and a proxy that ends may cancel thousands at once.
	if r.ProtoMajor < 2 {
		return
	}
	key := r.RemoteAddr
	address := hostOf(key)
	count := increase(&cancels, key)
	all := increase(&cancelsOf, address)
	if all == maxCancelsOfAddress+1 {
		barred.Store(address, barTime)
		atomic.StoreInt64(&barredAt, time.Now().Unix())
		// Those that cancel their first request later are closed then.
		cancels.Range(func(other, _ interface{}) bool {
			if hostOf(other.(string)) == address {
				lose(other.(string))
			}
			return true
		})
	} else if all > maxCancelsOfAddress || count > maxCancels {
		lose(key)
	}
}

func lose(key string) {
	if _, already := lost.LoadOrStore(key, true); already {
		return
	}
	connsMu.Lock()
	conn, open := conns[key]
	if !open {
		lost.Delete(key)
	}
	connsMu.Unlock()
	if open {
		drop(conn)
	}
}

func forget() {
	for range time.Tick(time.Second) {
		for _, counts := range []*sync.Map{&cancels, &cancelsOf} {
			counts.Range(func(name, _ interface{}) bool {
				counts.Delete(name)
				return true
			})
		}
		barred.Range(func(address, left interface{}) bool {
			if left.(int) > 1 {
				barred.Store(address, left.(int)-1)
			} else {
				barred.Delete(address)
			}
			return true
		})
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
