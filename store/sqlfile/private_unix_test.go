//go:build unix

package sqlfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The folder of a private copy is its owner's alone, whatever the umask.
func TestCopyIsPrivate(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	r, err := makeRoom(filepath.Join(t.TempDir(), "a.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(r.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := r.clear(); err != nil {
		t.Error(err)
	}
}
