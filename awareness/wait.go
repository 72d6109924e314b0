package awareness

import (
	"context"
	"errors"
	"os"
	"time"

	"oc/store/sqlfile"
)

// How often Wait looks at the files, at most, and how many looks it lets pass before it reads though nothing moved: stamps
// on some network file systems lag.
const (
	pollInterval = 200 * time.Millisecond
	pollAnyway   = 25
)

// Wait calls f with a snapshot at once, and again whenever the database may have changed, until f is done, fails, or the
// context ends, whose error it then gives. It watches the stamps of the files and reads only if they moved; every is
// the time between two looks, 200 ms if it is less. A database that does not exist yet is waited for, and so is one that
// is busy. As with [Read], f may be called more than once for one look.
func Wait(ctx context.Context, path string, every time.Duration, f func(s *Snapshot) (done bool, err error)) error {
	tick := time.NewTicker(max(every, pollInterval))
	defer tick.Stop()
	var seen [2]stamp
	for due, idle := 2, 0; ; idle++ {
		if now := stamps(path); now != seen || idle == pollAnyway {
			// Twice: what is written right behind a read may bear the stamp that the read has seen.
			seen, due, idle = now, 2, 0
		}
		if due > 0 {
			due--
			done := false
			err := Read(ctx, path, func(s *Snapshot) (err error) {
				done, err = f(s)
				return err
			})
			switch {
			case errors.Is(err, sqlfile.ErrBusy):
				due = 2
			case err != nil || done:
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// stamp is what a stat tells of a change.
type stamp struct {
	size  int64
	mtime time.Time
}

func stamps(path string) (out [2]stamp) {
	for i, p := range []string{path, path + "-wal"} {
		if fi, err := os.Stat(p); err == nil {
			out[i] = stamp{fi.Size(), fi.ModTime()}
		}
	}
	return out
}
