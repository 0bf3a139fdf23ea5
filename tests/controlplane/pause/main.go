// Pause waits until it is told to end. It is process 1 of a pod's sandbox: containerd starts it first and ends it last.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
