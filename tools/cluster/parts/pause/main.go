// Command pause holds a pod's namespaces open and reaps the processes that lose their parent.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGINT, syscall.SIGTERM)
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	for {
		select {
		case <-ending:
			return
		case <-orphans:
			reap()
		}
	}
}

// reap collects every process that has ended: one SIGCHLD may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}
