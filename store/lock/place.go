package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Place keeps other processes of oc from changing the files of a directory, whatever state they come from, and waits for them as [Dir] does.
// The lock is on the directory itself, so that nothing is made in it that OpenClaw could take for its own. Where the system cannot lock
// a directory, or oc may not open it, nothing is locked. The error is ErrBusy, or that of ctx.
func Place(ctx context.Context, dir string, wait time.Duration) (release func() error, err error) {
	none := func() error { return nil }
	if runtime.GOOS == "windows" {
		return none, nil
	}
	l := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := l.TryLock()
	if err == nil && !got && wait > 0 {
		got, err = l.TryLockContext(limited, 20*time.Millisecond)
		if limited.Err() != nil && ctx.Err() == nil {
			err = nil
		}
	}
	switch {
	case ctx.Err() != nil:
		_ = l.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, ctx.Err())
	case unlockable(err):
		_ = l.Close()
		return none, nil
	case err != nil:
		_ = l.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, reason(err))
	case !got:
		_ = l.Close()
		return nil, fmt.Errorf("lock %s: %w, for another state that has the directory too; try again when it is done", dir, ErrBusy)
	}
	return l.Close, nil
}

// unlockable says that a directory is none that can be locked: NFS locks only what is open for writing.
func unlockable(err error) bool {
	for _, e := range []error{fs.ErrPermission, fs.ErrNotExist, errors.ErrUnsupported, syscall.EBADF, syscall.EINVAL, syscall.ENOLCK, syscall.EISDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
