// Command staticserver serves a folder over HTTP on $PORT: index pages, ETags, gzip, ranges, a 404 page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainTime is how long requests that run when SIGTERM comes may still take.
const drainTime = 10 * time.Second

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "folder that is served")
	pushState := flag.Bool("pushstate", false, "answer paths without a file by /index.html, for apps that route in the browser")
	flag.Parse()
	if err := serve(*root, *pushState); err != nil {
		log.Fatalf("staticserver: %v", err)
	}
}

func serve(root string, pushState bool) error {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("opening the folder to serve: %w", err)
	}
	defer folder.Close()

	server := &http.Server{
		Handler:           logged(newSite(folder, pushState)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	drained := make(chan error, 1)
	go func() {
		<-ending.Done()
		timeout, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		drained <- server.Shutdown(timeout)
	}()
	log.Printf("serving %s on port %s", root, port)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}

// logged prints one line per request.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		start := time.Now()
		next.ServeHTTP(recorder, r)
		fmt.Printf("%s %q %d %dms\n", r.Method, r.URL.RequestURI(), recorder.status, time.Since(start).Milliseconds())
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}
