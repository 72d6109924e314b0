//go:build unix

package term

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// resizes tells when the terminal has another size, until stop is called.
func resizes() (resized <-chan struct{}, stop func()) {
	signals, out, end := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{})
	signal.Notify(signals, unix.SIGWINCH)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				default:
				}
			case <-end:
				return
			}
		}
	}()
	return out, func() { signal.Stop(signals); close(end) }
}
