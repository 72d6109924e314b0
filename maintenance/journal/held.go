package journal

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Windows renames over nothing that is read-only, and neither renames nor removes what a program has open that does not share it, as
// virus scanners and indexers do for moments with every new file. A run must not end halfway for that.

// pauses are those after which a refused change is tried again: half a second in all.
var pauses = []time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 65 * time.Millisecond, 150 * time.Millisecond, 250 * time.Millisecond}

// persist does something, and again when it is refused for what may pass.
func persist(do func() error, passes func(error) bool, pause func(time.Duration)) error {
	err := do()
	for _, d := range pauses {
		if err == nil || !passes(err) {
			return err
		}
		pause(d)
		err = do()
	}
	return err
}

// overReadOnly does a rename to a name, and again without the mark when a plain file that is read-only was in the way. The mark comes
// back when that fails, too; what is renamed brings its own.
func overReadOnly(to string, rename func() error) error {
	err := rename()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	info, looked := os.Lstat(to)
	if looked != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o200 != 0 {
		return err
	}
	if os.Chmod(to, info.Mode().Perm()|0o200) != nil {
		return err
	}
	if err = rename(); err != nil {
		_ = os.Chmod(to, info.Mode().Perm()) // the failure of the rename is what is told
	}
	return err
}
