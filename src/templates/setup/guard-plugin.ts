// Protects the gateway from apps that do not answer, or answer with headers without an end. Traefik limits neither (decision 71).

import type { GatewayPlugin } from './gateway-plugin.ts';
import { guardConnections } from './guard-connections.ts';
import { guardLimits } from './guard-limits.ts';
import { guardPlaces } from './guard-places.ts';

/** Sees each request and its answer. */
const answers = String.raw`type Config struct{}

func CreateConfig() *Config {
	return &Config{}
}

// Traefik never writes a refused request to a new or an idle connection; one that HTTP/2 requests share stays.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.conn = info.Conn
	if x.backend == nil && (!info.Reused || info.WasIdle) {
		info.Conn.Close()
	}
}

// The transport calls it before it reads the headers, and waits until it returns.
func (x *exchange) firstByte() {
	mu.Lock()
	b := x.backend
	// By HTTP/2 all headers have been read by now, and waiting would hold up the other answers of the connection.
	if b == nil || x.state != sent || x.streams {
		mu.Unlock()
		return
	}
	if readers < maxReading/2 && b.reading < 4 && b.suspect == 0 && b.queue == nil {
		x.state = reading
		b.reading++
		readers++
		x.occupy()
		mu.Unlock()
		return
	}
	if x.backend.mayRead() && b.queue == nil {
		x.begin()
		mu.Unlock()
		return
	}
	x.state = waiting
	x.turn = make(chan struct{})
	if x.backend.queue == nil {
		queues = append(queues, x.backend)
	}
	x.backend.queue = append(x.backend.queue, x)
	mu.Unlock()
	select {
	case <-x.turn:
	case <-x.done:
		x.conn.Close()
	}
}

var errHints = errors.New("too many answers after informational ones")

func (x *exchange) gotHints() error {
	mu.Lock()
	defer mu.Unlock()
	if x.refusal != "" {
		return errHints
	}
	if x.state != reading {
		return nil
	}
	b := x.backend
	x.end(sent)
	if hints >= maxInformed || b.suspect > 0 || b.informed > 0 && b.informed >= (maxInformed-hints)/2 {
		x.status = 503
		x.refusal = "This app has too many requests with an informational answer only. Try again later.\n"
		return errHints
	}
	x.state = informed
	b.informed++
	hints++
	x.occupy()
	return nil
}

func (x *exchange) finish() {
	mu.Lock()
	if x.backend != nil {
		x.end(answered)
		if x.placed {
			x.release()
		}
	}
	if x.streams {
		delete(streams, x)
	}
	mu.Unlock()
	x.cancel()
	// The headers are sent: what is written now are trailers, which stay in memory as long as the client reads.
	if x.streams && isLarge(x.Header()) {
		h := x.Header()
		for name := range h {
			delete(h, name)
		}
	}
}

func isLarge(h http.Header) bool {
	if len(h) > 4096 {
		return true
	}
	n := 0
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(value) + 4
			if n > maxHeaders {
				return true
			}
		}
	}
	return false
}

func (x *exchange) WriteHeader(code int) {
	// Go panics at such a status, and Traefik writes the stack to its log.
	if code < 100 || code > 999 {
		code = 502
		x.status = 502
		x.refusal = "The status of this app's answer is not valid.\n"
	}
	large := isLarge(x.Header())
	mu.Lock()
	if large && x.refusal == "" {
		x.status = 502
		x.refusal = "The headers of this app's answer are too large.\n"
	}
	// An error without headers is Traefik's own: the headers are not valid, or Go ended them at 10 MB.
	if (x.state == reading || x.state == informed) && (large || code >= 500 && len(x.Header()) <= x.headers) || x.streams && large {
		x.blame()
	}
	refusal := x.refusal
	if code >= 200 && x.backend != nil {
		x.end(answered)
	}
	mu.Unlock()
	if code < 200 {
		if refusal == "" {
			x.ResponseWriter.WriteHeader(code)
		}
		return
	}
	if refusal != "" {
		x.refuse()
		return
	}
	length := x.Header().Get("Content-Length")
	if length != "" {
		x.length, _ = strconv.Atoi(length)
	}
	x.ResponseWriter.WriteHeader(code)
	// The interpreter hides that the writer can flush, so Traefik does not. An answer of gRPC without a body has to end with its headers.
	if code != 204 && code != 304 && !x.head && x.length != 0 && x.Header().Get("Grpc-Status") == "" {
		x.ResponseWriter.(http.Flusher).Flush()
	}
}

func (x *exchange) refuse() {
	h := x.Header()
	for name := range h {
		delete(h, name)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(x.refusal)))
	if x.status == 503 {
		h.Set("Retry-After", "1")
		h.Set("X-Cf-Routererror", "Connection Limit Reached")
	}
	x.ResponseWriter.WriteHeader(x.status)
	x.ResponseWriter.Write([]byte(x.refusal))
	x.ResponseWriter.(http.Flusher).Flush()
	x.cancel()
}

func (x *exchange) Write(data []byte) (int, error) {
	if x.refusal != "" {
		return len(data), nil
	}
	n, err := x.ResponseWriter.Write(data)
	x.written += n
	if x.written != x.length {
		x.ResponseWriter.(http.Flusher).Flush()
	}
	return n, err
}

// Of a protocol that is switched to, Traefik writes the headers to what Hijack returns.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	mu.Lock()
	if x.backend != nil {
		x.end(answered)
	}
	mu.Unlock()
	conn, both, err := x.ResponseWriter.(http.Hijacker).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(both.Reader, bufio.NewWriterSize(&switched{conn, 0}, 4096)), nil
}

type switched struct {
	conn net.Conn
	sent int
}

func (s *switched) Write(data []byte) (int, error) {
	s.sent += len(data)
	if s.sent > maxHeaders {
		return 0, errors.New("the headers are too large")
	}
	return s.conn.Write(data)
}

func New(_ context.Context, after http.Handler, _ *Config, _ string) (http.Handler, error) {
	start.Do(func() {
		go watch()
		go takeTurns()
		go introduce()
		go forget()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// First, without a lock: attackers cancel requests as fast as they can.
		if _, is := lost.Load(r.RemoteAddr); is {
			return
		}
		if r.Context().Err() != nil {
			cancelled(r)
			return
		}
		if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
			limit(server)
		}
		client := hostOf(r.RemoteAddr)
		if !enter(client) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "There are too many requests from this address. Try again later.", 503)
			return
		}
		defer func() {
			exit(client)
			if r.Context().Err() != nil {
				cancelled(r)
			}
		}()
		ctx, cancel := context.WithCancel(r.Context())
		x := &exchange{ResponseWriter: w, client: client, cancel: cancel, done: ctx.Done(), head: r.Method == "HEAD", headers: len(w.Header()), length: -1}
		defer x.finish()
		trace := &httptrace.ClientTrace{
			GetConn:              x.getConn,
			GotConn:              x.gotConn,
			GotFirstResponseByte: x.firstByte,
			WroteHeaderField:     x.wroteField,
			Got1xxResponse:       func(_ int, _ textproto.MIMEHeader) error { return x.gotHints() },
		}
		// Else the app would answer with 100 first. Traefik itself tells the client to continue.
		if r.ContentLength != 0 {
			r.Header.Del("Expect")
		}
		after.ServeHTTP(x, r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	}), nil
}
`;

export const guardPlugin: GatewayPlugin = {
  name: 'guard',
  summary: 'Limits what one instance of an app takes of the gateway.',
  // One file: in several the interpreter mixes up methods.
  sources: { 'guard.go': `${guardLimits}${guardPlaces}\n${answers}${guardConnections}` },
};
