//go:build unix

package sqlfile

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asNobody copies the test binary to where everybody can run it and runs a child as another user: root is not stopped
// by modes.
func asNobody(t *testing.T, role string, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		run(t, role, args...)
		return
	}
	dir, err := os.MkdirTemp("", "oc-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "child")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(bin, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childEnv+"="+role, "TMPDIR="+os.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as another user: %s %v: %v\n%s", role, args, err, out)
	}
}

// identity is which file it is, and whose.
func identity(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(st.Ino, " ", st.Uid)
}
