package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHoldLifecycle(t *testing.T) {
	h := newHouse(t)
	h.dir(h.w.LockRoot)
	path := filepath.Join(h.w.LockRoot, fmt.Sprintf("openclaw-state-locks-%d", os.Getuid()), "gateway-lifecycle."+hash(resolve(filepath.Join(h.w.StateDir, "state", "openclaw.sqlite")))+".lock.sqlite")
	release, err := HoldLifecycle(h.w)
	if err != nil {
		t.Fatal(err)
	}
	seen := func() string {
		line, _ := child(t, "probe", "probe", "OC_TEST_PATH="+path)
		return strings.TrimSpace(line)
	}
	held := fmt.Sprintf("true %d", os.Getpid())
	if got := seen(); got != held {
		t.Errorf("a child sees %q, want %q", got, held)
	}
	// Looking for the owner, and taking it a second time, must not drop it.
	if o := h.ask(none{}); o.Life != None {
		t.Errorf("oc's own lock counts as somebody's: %+v", o)
	}
	if _, err := HoldLifecycle(h.w); !errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), path) {
		t.Errorf("taken twice: %v", err)
	}
	if got := seen(); got != held {
		t.Errorf("after that a child sees %q", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if got := seen(); got != "false 0" {
		t.Errorf("released, a child sees %q", got)
	}

	// Another process has it.
	child(t, "lock", "lock", "OC_TEST_PATH="+path)
	if _, err := HoldLifecycle(h.w); !errors.Is(err, ErrOwned) {
		t.Errorf("held by a child: %v", err)
	}
}

func TestHostileLifecycle(t *testing.T) {
	for name, do := range map[string]func(dir, path string) error{
		"a link":           func(_, path string) error { return os.Symlink("/dev/null", path) },
		"a directory":      func(_, path string) error { return os.Mkdir(path, 0o700) },
		"a file as folder": func(dir, _ string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
		"a linked folder":  func(dir, _ string) error { return errors.Join(os.Remove(dir), os.Symlink("/tmp", dir)) },
	} {
		h := newHouse(t)
		dir := filepath.Join(h.w.LockRoot, fmt.Sprintf("openclaw-state-locks-%d", os.Getuid()))
		h.dir(dir)
		path := filepath.Join(dir, "gateway-lifecycle."+hash(resolve(filepath.Join(h.w.StateDir, "state", "openclaw.sqlite")))+".lock.sqlite")
		if err := do(dir, path); err != nil {
			t.Fatal(err)
		}
		if _, err := HoldLifecycle(h.w); err == nil || errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), h.w.StateDir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
