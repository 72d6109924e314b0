package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A lock of oc names no process: OpenClaw steals locks of live processes whose
// command line is not its own, and respects one that names nobody for as long
// as the file keeps changing (spec/file-store.md 5.5, release 2026.7.35).
var payload = []byte("{}\n")

// refresh is how often a lock is touched; OpenClaw's shortest patience is 5 s.
const refresh = 2 * time.Second

// Hand is a transcript lock that oc holds.
type Hand struct {
	path string
	file *os.File
	info fs.FileInfo
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
	err  error
}

// Hold takes the lock of a transcript, which need not exist, and keeps it until
// Release. It does not wait: when another process holds it the error is
// ErrHeld with the evidence. A lock that nobody holds is removed first, if it
// has not changed since it was looked at.
func Hold(transcript string, m Machine, now time.Time) (*Hand, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(transcript))
	if err != nil {
		return nil, fmt.Errorf("lock transcript %s: %w", transcript, reason(err))
	}
	path := filepath.Join(dir, filepath.Base(transcript)+Suffix)
	for range 2 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return begin(path, f)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock transcript %s: %w", transcript, reason(err))
		}
		r := Look(path, m, now)
		if r.State.Holds() {
			return nil, &HeldError{r}
		}
		if r.State != Free && r.Unchanged() == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("remove dead lock %s: %w", path, reason(err))
			}
		}
	}
	return nil, fmt.Errorf("lock transcript %s: %w: other processes take the lock in turn", transcript, ErrHeld)
}

func begin(path string, f *os.File) (*Hand, error) {
	h := &Hand{path: path, file: f, stop: make(chan struct{})}
	_, err := f.Write(payload)
	if err == nil {
		h.info, err = f.Stat()
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("write lock %s: %w", path, reason(err))
	}
	h.done.Go(h.keep)
	return h, nil
}

// keep writes the same bytes again and again: only the file's time changes, by
// the clock of the system that stores it.
func (h *Hand) keep() {
	t := time.NewTicker(refresh)
	defer t.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-t.C:
			_, _ = h.file.WriteAt(payload, 0) // Check sees what came of it
		}
	}
}

// Path of the lock file.
func (h *Hand) Path() string { return h.path }

// Check returns nil while the lock is still oc's own, and wraps ErrChanged when
// another process has removed, replaced or rewritten it: what it guards must
// not be written then.
func (h *Hand) Check() error {
	raw, info, err := read(h.path)
	if err != nil || !os.SameFile(info, h.info) || !bytes.Equal(raw, payload) {
		return fmt.Errorf("lock %s was taken away: %w", h.path, ErrChanged)
	}
	return nil
}

// Release gives the lock back. The file is removed if it is still oc's own,
// else Check's error comes back and it stays. Later calls do nothing.
func (h *Hand) Release() error {
	h.once.Do(func() {
		close(h.stop)
		h.done.Wait()
		h.err = h.Check()
		h.file.Close() // before the removal, for Windows
		if h.err == nil {
			if err := os.Remove(h.path); err != nil {
				h.err = fmt.Errorf("remove lock %s: %w", h.path, reason(err))
			}
		}
	})
	return h.err
}

// Abandon removes the lock of a transcript that an oc which was killed has left
// behind: one in oc's form, or one that oc had no time to write. The caller
// knows that no other oc works there; OpenClaw writes a lock as soon as it has
// made it, so one that is still empty after a second is nobody's.
func Abandon(transcript string) {
	path := transcript + Suffix
	raw, info, err := read(path)
	if err == nil && len(raw) == 0 {
		time.Sleep(min(time.Second, time.Second-time.Since(info.ModTime())))
		raw, _, err = read(path)
	}
	if err == nil && bytes.HasPrefix(payload, raw) {
		_ = os.Remove(path)
	}
}

// HeldError is ErrHeld with what was seen of the lock.
type HeldError struct{ Report Report }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v by %s: %s", ErrHeld, e.Report.Path, strings.Join(e.Report.Evidence, "; "))
}

// Unwrap makes errors.Is find ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }
