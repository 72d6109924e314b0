//go:build unix

package commands

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"oc/fixtures"
)

// Whatever the umask and the modes of the files that go, nobody else can read what oc keeps of them: its folders are 0700, its files 0600.
func TestJournalIsPrivate(t *testing.T) {
	oc, err := exec.LookPath("oc")
	if err != nil {
		t.Fatal(err)
	}
	before := syscall.Umask(0) // of this process, and so of its children
	defer syscall.Umask(before)
	for _, line := range [][]string{
		{"sessions", "cleanup", "--agent", "work", "--fix-missing"},
		{"sessions", "delete", "agent:work:telegram:direct:5550137", "--yes"},
		{"sessions", "reset", "agent:work:telegram:direct:5550137"},
		{"sessions", "compact", "agent:work:main", "--main", "--keep-recent-tokens", "60"},
		{"doctor", "--fix"},
		{"agents", "delete", "garden", "--yes"},
	} {
		state := filepath.Join(t.TempDir(), "state")
		if err := fixtures.Demo().Write(state); err != nil {
			t.Fatal(err)
		}
		open := func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			mode := fs.FileMode(0o666)
			if d.IsDir() {
				mode = 0o777
			}
			return os.Chmod(path, mode)
		}
		if err := filepath.WalkDir(state, open); err != nil {
			t.Fatal(err)
		}
		run := func(args ...string) {
			t.Helper()
			c := exec.Command(oc, append([]string{"--state-dir", state, "--offline"}, args...)...)
			c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(state), "TZ=UTC", fmt.Sprintf("OC_NOW=%d", fixtures.Now), "GOCOVERDIR=" + t.TempDir()}
			if out, err := c.CombinedOutput(); err != nil && c.ProcessState.ExitCode() != ExitFindings {
				t.Fatalf("oc %v: %v: %s", args, err, out)
			}
		}
		look := func(when string) (files int) {
			t.Helper()
			err := filepath.WalkDir(filepath.Join(state, ".oc"), func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				want := fs.FileMode(0o600)
				if d.IsDir() {
					want = 0o700
				} else {
					files++
				}
				if info.Mode().Perm() != want {
					t.Errorf("oc %v, %s: %s is %v", line, when, path, info.Mode())
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			return files
		}
		run(line...)
		if files := look("done"); files < 2 {
			t.Errorf("oc %v keeps %d files", line, files)
		}
		run("undo")
		look("taken back")
	}
}
