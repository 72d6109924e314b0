package maintenance

import (
	"errors"
	"fmt"
	"os"
)

// ErrChanged says that a file is no longer what a plan was made for.
var ErrChanged = errors.New("it has changed since it was looked at")

// Unchanged returns nil while the store is the file that was read: the same
// file, size and time. It wraps ErrChanged otherwise.
func (s *Snapshot) Unchanged() error {
	info, err := os.Stat(s.Store)
	switch {
	case s.Absent && errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && s.Info != nil && os.SameFile(info, s.Info) && info.Size() == s.Info.Size() && info.ModTime().Equal(s.Info.ModTime()):
		return nil
	}
	return fmt.Errorf("the session store %s: %w", s.Store, ErrChanged)
}

// Unchanged returns nil while the file is the one that was listed: the same
// file, size and time, and no link. It wraps ErrChanged otherwise.
func (f *File) Unchanged() error {
	info, err := os.Lstat(f.Path)
	if err == nil && f.Info != nil && os.SameFile(info, f.Info) && info.Size() == f.Size && info.ModTime().Equal(f.ModTime) && info.Mode().Type() == f.Info.Mode().Type() {
		return nil
	}
	return fmt.Errorf("%s: %w", f.Path, ErrChanged)
}
