// How many connections and requests clients may have at the gateway (decision 82).

/** The third part of the program. */
export const guardConnections = String.raw`
const (
	// For all clients together. One address may have as many as are left for others, so the first one gets half.
	maxConns = 8192
	// Requests that the gateway works on, whether they have an instance or not; for one address again half. A client that cancels its requests at once can
	// start more than end.
	maxInside = 4096
	// Seconds in which an entry point that listens may begin to answer.
	maxRounds = 60
)

var (
	connsMu sync.Mutex
	// How many connections an address has, and all addresses together.
	holders = map[string]int{}
	held    int
	// The connections by address and port of the client. What closes them must not wait for a lock: its holder may wait for CPU time.
	conns sync.Map

	insideMu sync.Mutex
	guests   = map[string]int{}
	inside   int
)

func hostOf(address string) string {
	return address[:strings.LastIndexByte(address, ':')]
}

func enter(address string) bool {
	insideMu.Lock()
	defer insideMu.Unlock()
	own := guests[address]
	if own < maxInside-inside || own == 0 && inside < maxInside {
		guests[address] = own + 1
		inside++
		return true
	}
	return false
}

func exit(address string) {
	insideMu.Lock()
	defer insideMu.Unlock()
	inside--
	less(guests, address)
}

func within(least int, value int, most int) int {
	if value < least {
		return least
	}
	if value > most {
		return most
	}
	return value
}

func less(numbers map[string]int, address string) {
	numbers[address]--
	if numbers[address] == 0 {
		delete(numbers, address)
	}
}

// Connections of a protocol that was switched to are requests that are open, and count as those.
func count(conn net.Conn, state http.ConnState) {
	if state == http.StateActive || state == http.StateIdle {
		return
	}
	key := conn.RemoteAddr().String()
	if state != http.StateNew {
		uncount(key, conn)
		return
	}
	address := hostOf(key)
	most := maxConns
	if _, lost := losers.Load(address); lost {
		most = maxAfterLoss
	}
	connsMu.Lock()
	own := holders[address]
	allowed := own < maxConns-held && own < most || own == 0 && held < maxConns
	if allowed {
		holders[address] = own + 1
		held++
	}
	connsMu.Unlock()
	if !allowed {
		drop(conn)
		return
	}
	// One whose end nobody has seen yet.
	if before, known := conns.Load(key); known {
		uncount(key, before.(net.Conn))
	}
	conns.Store(key, conn)
}

// Only once for each connection.
func uncount(key string, conn net.Conn) bool {
	if !conns.CompareAndDelete(key, conn) {
		return false
	}
	connsMu.Lock()
	held--
	less(holders, hostOf(key))
	connsMu.Unlock()
	return true
}

// At once: the end of TLS would wait until the client reads. Close ends all reading, and then waits until the goroutine that reads gets CPU time.
func drop(conn net.Conn) {
	secure, ok := conn.(*tls.Conn)
	if ok {
		conn = secure.NetConn()
	}
	go conn.Close()
}

// The first request of an entry point shows its server. The guard asks by itself, so that no connection is earlier than the limits.
func introduce() {
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	rounds := 0
	for range time.Tick(time.Second) {
		rounds++
		open := 0
		later := false
		for _, url := range []string{"http://127.0.0.1:8000/", "http://127.0.0.1:8001/", "https://127.0.0.1:8443/"} {
			answer, err := client.Get(url)
			if err == nil {
				answer.Body.Close()
				open++
			} else if !strings.Contains(err.Error(), "refused") {
				// It listens, but has no certificate or no routes yet.
				later = true
			}
		}
		if open > 0 && atomic.LoadInt64(&servers) >= int64(open) && (!later || rounds > maxRounds) {
			return
		}
	}
}
`;
