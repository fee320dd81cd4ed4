// How much of the gateway one instance of an app may take (decision 71): open requests, and answers whose headers are being read.

/** The first part of the program. */
export const guardLimits = String.raw`package guard

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Open requests. One instance may have as many as are left for others, so the first one gets half: 1,024, as with Envoy.
	maxRequests = 2048
	// Answers whose headers are read at a time. Go reads up to 10 MB of them, which takes 25 MB.
	maxReading = 16
	// Requests that got an informational answer, as 103. Traefik does not tell when the answer after it begins.
	maxInformed = 32
	// Answers of suspect instances that are read at a time.
	maxSuspects = 2
	// Of one answer, in bytes.
	maxHeaders = 128 * 1024
	// Of GOMEMLIMIT, 800 MiB. Beyond it, requests with an informational answer end, and those that Traefik sent by HTTP/2.
	maxHeap = 500 * 1024 * 1024
	// Counted in ticks, because a gateway that gets no CPU time has no ticks either.
	tick         = 50 * time.Millisecond
	slowTicks    = 5
	suspectTicks = 200
	// Between two collections of garbage that the guard asks for.
	collectTicks = 20
	// The scheduler takes one of sixty goroutines from the queue of those that gave way. So this is a turn of some thousands.
	waysGiven = 64
)

const (
	sent = iota
	waiting
	reading
	informed
	answered
)

// An instance of an app: one address of a pod.
type backend struct {
	requests int
	reading  int
	informed int
	suspect  int
	queue    []*exchange
	visitors map[string]*visitor
}

// A request with its answer. It takes the place of the answer's writer, so that it sees the end of the headers.
type exchange struct {
	http.ResponseWriter
	client  string
	backend *backend
	placed  bool
	place   int
	conn    net.Conn
	cancel  context.CancelFunc
	done    <-chan struct{}
	turn    chan struct{}
	state   int
	slot    int
	ticks   int
	head    bool
	streams bool
	headers int
	length  int
	written int
	status  int
	refusal string
}

// All of this, and all fields of backends and exchanges that several goroutines use, need the lock.
var (
	mu       sync.Mutex
	start    sync.Once
	backends = map[string]*backend{}
	slots    []*exchange
	free     []int
	queues   []*backend
	requests int
	readers  int
	suspects int
	hints    int
	// Requests that Traefik sent by HTTP/2. Its client keeps up to 10 MB of headers and of trailers of each, whoever reads them.
	streams = map[*exchange]bool{}
	// How often all that could run had its turn.
	turns int64
)

func (b *backend) mayRead() bool {
	if b.suspect > 0 {
		return b.reading == 0 && suspects < maxSuspects && readers < maxReading
	}
	return readers < maxReading && (b.reading == 0 || b.reading < (maxReading-readers)/2)
}

func (x *exchange) begin() {
	x.state = reading
	x.backend.reading++
	readers++
	x.occupy()
	if x.backend.suspect > 0 {
		suspects++
	}
}

// Keeps the exchange where watch finds it; a map would cost more.
func (x *exchange) occupy() {
	x.ticks = 0
	if n := len(free) - 1; n >= 0 {
		x.slot = free[n]
		free = free[:n]
		slots[x.slot] = x
		return
	}
	x.slot = len(slots)
	slots = append(slots, x)
}

func (x *exchange) leave() {
	slots[x.slot] = nil
	free = append(free, x.slot)
}

func (x *exchange) end(state int) {
	switch x.state {
	case reading:
		x.leave()
		x.backend.reading--
		readers--
		if x.backend.suspect > 0 {
			suspects--
		}
	case informed:
		x.leave()
		x.backend.informed--
		hints--
	}
	x.state = state
	if len(queues) > 0 {
		next()
	}
}

// Lets answers that wait be read, one of each backend in turn.
func next() {
	for left := len(queues); left > 0 && readers < maxReading; left-- {
		b := queues[0]
		queues = queues[1:]
		for len(b.queue) > 0 && b.queue[0].state != waiting {
			b.queue = b.queue[1:]
		}
		if len(b.queue) == 0 {
			b.queue = nil
			continue
		}
		if b.mayRead() {
			x := b.queue[0]
			b.queue = b.queue[1:]
			x.begin()
			close(x.turn)
			left++
		}
		queues = append(queues, b)
	}
}

// After headers that were too large, took too long or never ended, an instance has one answer read at a time, behind others, for 10 s.
func (x *exchange) blame() {
	b := x.backend
	if b.suspect == 0 {
		suspects += b.reading
	}
	b.suspect = suspectTicks
}

// HTTP/2 begins with headers whose names begin with a colon.
func (x *exchange) wroteField(name string, _ []string) {
	if x.streams || name == "" || name[0] != ':' {
		return
	}
	mu.Lock()
	// A refused request has no backend, and is not sent.
	if x.backend != nil {
		x.streams = true
		x.ticks = 0
		streams[x] = true
	}
	mu.Unlock()
}

// What Traefik holds of the answer is free when neither the app nor the client keeps the request.
func (x *exchange) cut() {
	x.status = 502
	x.refusal = "The gateway is short of memory, and ends requests by HTTP/2. Try again.\n"
	x.cancel()
	if x.conn != nil {
		x.conn.Close()
	}
	http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now())
}

// While thousands of requests wait for CPU time, an answer that is there is not read for long, and that is not its instance's fault.
func takeTurns() {
	for range time.Tick(tick) {
		for i := 0; i < waysGiven; i++ {
			runtime.Gosched()
		}
		atomic.AddInt64(&turns, 1)
	}
}

// Ends answers whose headers take too long while others wait, and those after informational answers and by HTTP/2 while memory is short.
func watch() {
	collected := 0
	var seen int64
	for range time.Tick(tick) {
		now := atomic.LoadInt64(&turns)
		hadTurn := now != seen
		seen = now
		var stats runtime.MemStats
		mu.Lock()
		for address, b := range backends {
			if b.suspect > 1 || b.suspect == 1 && b.reading == 0 {
				b.suspect--
			}
			if b.requests == 0 && b.suspect == 0 {
				delete(backends, address)
			}
		}
		runtime.ReadMemStats(&stats)
		full := stats.HeapAlloc > maxHeap
		collected++
		for x := range streams {
			x.ticks++
			if full && x.ticks > 1 {
				x.cut()
				delete(streams, x)
			}
		}
		if full && collected > collectTicks {
			collected = 0
			go relieve()
		}
		for _, x := range slots {
			if x == nil {
				continue
			}
			if hadTurn || x.state != reading {
				x.ticks++
			}
			if full && x.state == informed && x.ticks > 1 || x.state == reading && x.ticks >= slowTicks && len(queues) > 0 {
				x.status = 502
				x.refusal = "The headers of this app's answer took too long.\n"
				x.blame()
				x.conn.Close()
			}
		}
		if len(queues) > 0 {
			next()
		}
		mu.Unlock()
	}
}
`;
