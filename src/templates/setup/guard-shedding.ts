// Which connections the gateway closes because their client cancels requests, or because memory is short (decisions 82 and 84).

/** The last part of the program. */
export const guardShedding = String.raw`
const (
	// Cancelled requests in a second: of one connection, and of one address. Browsers cancel some.
	maxCancels     = 100
	addressCancels = 1000
	minCancels     = 5
	// An address with fewer connections keeps them when memory is short.
	minLost = 16
	// Connections of an address after it lost its own.
	maxAfterLoss = 128
	afterLoss    = 5 * time.Second
	// In milliseconds: between two losses.
	lossPause = 1000
	// How many entries are looked at in a row.
	batch = 64
)

var (
	cancelsMu sync.Mutex
	// Requests that clients cancelled in the present second, by connection and by address.
	cancels = map[string]int{}
	// Addresses that lost their connections, and until when they get fewer.
	losers sync.Map
	// In bytes.
	heap int64
	// In milliseconds.
	lastLoss int64
)

// Traefik works on a request before the guard sees it. One that was cancelled before needs none of that.
func early(after http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			cancelled(r.RemoteAddr)
			return
		}
		after.ServeHTTP(w, r)
	})
}

// A client may cancel a request, but one that only starts and cancels them takes the gateway's CPU time from others. The more an address cancels, the fewer
// may be of one connection: behind a load balancer that hides addresses, clients that cancel few keep theirs.
func cancelled(key string) {
	address := hostOf(key)
	cancelsMu.Lock()
	cancels[key]++
	cancels[address]++
	allowed := within(minCancels, (addressCancels-cancels[address])/10, maxCancels)
	many := cancels[key] > allowed
	cancelsMu.Unlock()
	if !many {
		return
	}
	if conn, open := conns.Load(key); open && uncount(key, conn.(net.Conn)) {
		drop(conn.(net.Conn))
	}
}

func forget() {
	for now := range time.Tick(time.Second) {
		cancelsMu.Lock()
		cancels = map[string]int{}
		cancelsMu.Unlock()
		losers.Range(func(address, until any) bool {
			if now.After(until.(time.Time)) {
				losers.Delete(address)
			}
			return true
		})
	}
}

// Each time in another goroutine: one that waits for CPU time or for the collector must not hold up the next. For the same reason there is no lock.
func watchMemory() {
	for range time.Tick(tick) {
		go look()
	}
}

func look() {
	// Unlike runtime.ReadMemStats it stops no other goroutine.
	stats := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(stats)
	objects := int64(stats[0].Value.Uint64())
	atomic.StoreInt64(&heap, objects)
	if objects+int64(stats[1].Value.Uint64()) < maxHeap {
		return
	}
	now, last := time.Now().UnixMilli(), atomic.LoadInt64(&lastLoss)
	if now-last > lossPause && atomic.CompareAndSwapInt64(&lastLoss, last, now) {
		relieve()
	}
}

// While memory is short, the address with the most connections loses them.
func relieve() {
	numbers := map[string]int{}
	most := ""
	seen := 0
	conns.Range(func(key, _ any) bool {
		address := hostOf(key.(string))
		numbers[address]++
		if numbers[address] > numbers[most] {
			most = address
		}
		pause(&seen)
		return true
	})
	if numbers[most] > minLost {
		losers.Store(most, time.Now().Add(afterLoss))
		conns.Range(func(key, conn any) bool {
			if hostOf(key.(string)) == most {
				drop(conn.(net.Conn))
				seen = 0
			}
			pause(&seen)
			return true
		})
	}
	runtime.GC()
}

// Go puts a goroutine that ran for long behind all others, and one that a timer wakes before them. What drop began runs in the meantime.
func pause(seen *int) {
	if *seen%batch == 0 {
		time.Sleep(time.Microsecond)
	}
	*seen++
}
`;
