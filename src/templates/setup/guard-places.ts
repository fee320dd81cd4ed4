// Which requests an instance has, and which one ends when it has no place left for another (decisions 71 and 82).

/** The second part of the program. */
export const guardPlaces = String.raw`
const tooMany = "This app has too many requests that it has not answered. Try again later.\n"

// What one client has of an instance.
type visitor struct {
	open []*exchange
}

func (x *exchange) settle(b *backend) {
	x.backend = b
	x.placed = true
	b.requests++
	requests++
	v, known := b.visitors[x.client]
	if !known {
		v = &visitor{}
		b.visitors[x.client] = v
	}
	x.place = len(v.open)
	v.open = append(v.open, x)
}

func (x *exchange) release() {
	b := x.backend
	x.placed = false
	b.requests--
	requests--
	v := b.visitors[x.client]
	n := len(v.open) - 1
	last := v.open[n]
	v.open[x.place] = last
	last.place = x.place
	v.open[n] = nil
	v.open = v.open[:n]
	if n == 0 {
		delete(b.visitors, x.client)
	}
}

// A client with few requests gets the place of a request of the client that has the most. Nobody has a fixed share, because a load balancer may hide the
// addresses of clients.
func (b *backend) makeRoom(address string) bool {
	held := 0
	if v, known := b.visitors[address]; known {
		held = len(v.open)
	}
	// Not fewer than the mean. This keeps the search from those that have the most.
	if held*len(b.visitors) >= b.requests {
		return false
	}
	most := ""
	number := 0
	for name, v := range b.visitors {
		if len(v.open) > number {
			most = name
			number = len(v.open)
		}
	}
	if number <= held+1 {
		return false
	}
	v := b.visitors[most]
	v.open[number-1].lose()
	return true
}

// Its client may never end the upload: no more of it is read.
func (x *exchange) lose() {
	// An answer that has begun must not look complete.
	if x.state != answered {
		x.status = 503
		x.refusal = tooMany
	}
	x.release()
	x.cancel()
	http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now())
}

// Traefik calls it with the address of the instance before it connects.
func (x *exchange) getConn(address string) {
	address = address[:strings.LastIndexByte(address, ':')]
	mu.Lock()
	defer mu.Unlock()
	b, known := backends[address]
	if !known {
		b = &backend{visitors: map[string]*visitor{}}
		backends[address] = b
	}
	if x.backend == nil {
		if b.requests < maxRequests-requests || b.requests == 0 && requests < maxRequests || b.makeRoom(x.client) {
			x.settle(b)
		} else {
			x.status = 503
			x.refusal = tooMany
			x.cancel()
		}
	}
}
`;
