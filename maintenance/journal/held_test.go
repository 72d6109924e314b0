package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What passes is waited for, what does not is told at once, and what stays is told after half a second.
func TestPersist(t *testing.T) {
	busy, never := errors.New("busy"), errors.New("never")
	for _, c := range []struct {
		name  string
		said  []error // at each try; the last one from then on
		want  error
		tries int
		waits time.Duration
	}{
		{"done at once", []error{nil}, nil, 1, 0},
		{"done at the third try", []error{busy, busy, nil}, nil, 3, 12 * time.Millisecond},
		{"another failure", []error{never}, never, 1, 0},
		{"another failure then", []error{busy, never}, never, 2, 2 * time.Millisecond},
		{"busy for good", []error{busy}, busy, len(pauses) + 1, 502 * time.Millisecond},
	} {
		tries, waited := 0, time.Duration(0)
		err := persist(func() error {
			tries++
			return c.said[min(tries, len(c.said))-1]
		}, func(err error) bool { return errors.Is(err, busy) }, func(d time.Duration) { waited += d })
		if !errors.Is(err, c.want) || tries != c.tries || waited != c.waits {
			t.Errorf("%s: %v after %d tries and %v", c.name, err, tries, waited)
		}
	}
}

// A rename that refuses as that of Windows does: the store is replaced although it is read-only, and stays read-only when it cannot be.
func TestOverReadOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		mode fs.FileMode
		fail error // of a rename that nothing stands in the way of
		want string
	}{
		{"read-only", 0o444, nil, "new 600"},
		{"read-only, and a failure", 0o440, fs.ErrInvalid, "old 440"},
		{"writable, and a failure", 0o600, fs.ErrInvalid, "old 600"},
		{"refused for another reason", 0o600, fs.ErrPermission, "old 600"},
	} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := errors.Join(os.WriteFile(from, []byte("new"), 0o600), os.WriteFile(to, []byte("old"), 0o600), os.Chmod(to, c.mode)); err != nil {
			t.Fatal(err)
		}
		err := overReadOnly(to, func() error {
			if info, err := os.Lstat(to); err != nil || info.Mode().Perm()&0o200 == 0 {
				return errors.Join(fs.ErrPermission, err)
			}
			if c.fail != nil {
				return c.fail
			}
			return os.Rename(from, to)
		})
		raw, _ := os.ReadFile(to)
		info, looked := os.Lstat(to)
		if looked != nil {
			t.Fatal(looked)
		}
		if got := fmt.Sprintf("%s %o", raw, info.Mode().Perm()); got != c.want || !errors.Is(err, c.fail) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}
