package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Dir keeps other writers of oc out of dir, for up to wait to get in, until
// release is called. The lock is the file `.oc/lock` in dir, 0600, which stays;
// OpenClaw does not know it. When another oc is at work the error is ErrBusy
// and names its process.
func Dir(ctx context.Context, dir string, wait time.Duration) (release func() error, err error) {
	own := filepath.Join(dir, ".oc")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, reason(err))
	}
	path := filepath.Join(own, "lock")
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("lock %s: %s is not a plain file", dir, path)
	}
	l := flock.New(path)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := l.TryLock()
	if err == nil && !got && wait > 0 {
		got, err = l.TryLockContext(limited, 20*time.Millisecond)
		if limited.Err() != nil && ctx.Err() == nil {
			err = nil
		}
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, reason(err))
	}
	if !got {
		l.Close()
		return nil, fmt.Errorf("lock %s: %w%s; try again when it is done", dir, ErrBusy, owner(path))
	}
	// For the message of the next one; the lock itself is the kernel's.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return l.Close, nil
}

func owner(path string) string {
	raw, _, err := read(path)
	if pid, e := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && e == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}
