package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	transcript := filepath.Join(t.TempDir(), "a.jsonl")
	h, err := Hold(transcript, fake{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(transcript + ".lock"); err != nil || string(raw) != "{}\n" {
		t.Fatalf("lock says %q, %v; OpenClaw must find no process in it", raw, err)
	}
	if r := Look(h.Path(), fake{}, time.Now()); r.State != Fresh {
		t.Errorf("others see %s", r.State)
	}
	if _, err := Hold(transcript, fake{}, time.Now()); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), h.Path()) {
		t.Errorf("taken twice: %v", err)
	}
	// OpenClaw's shortest patience is 5 s: the file must never look that old.
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(h.Path(), old, old); err != nil {
		t.Fatal(err)
	}
	time.Sleep(refresh + time.Second/2)
	if info, err := os.Stat(h.Path()); err != nil || time.Since(info.ModTime()) > refresh {
		t.Errorf("not refreshed: %v, %v", info.ModTime(), err)
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.Release(), h.Release()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(h.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestHoldBesideAnother(t *testing.T) {
	live := fake{procs: map[int]Process{42: {Life: Alive, Start: 7}}}
	for name, c := range map[string]struct {
		body string
		age  time.Duration
		m    fake
		got  bool
	}{
		"live":            {`{"pid":42,"starttime":7}`, time.Hour, live, false},
		"recycled":        {`{"pid":42,"starttime":6}`, time.Hour, live, true},
		"dead":            {`{"pid":43}`, 0, live, true},
		"empty and fresh": {"", time.Second, live, false},
		"empty and old":   {"", time.Minute, live, true},
		"of a network":    {`{"pid":43}`, time.Hour, fake{why: "NFS"}, false},
	} {
		path := place(t, "a.jsonl.lock", c.body, c.age)
		h, err := Hold(strings.TrimSuffix(path, Suffix), c.m, now)
		if got := err == nil; got != c.got {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if err := h.Release(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var held *HeldError
		if !errors.As(err, &held) || held.Report.Path != path {
			t.Errorf("%s: %v has no report", name, err)
		}
		if raw, _ := os.ReadFile(path); string(raw) != c.body {
			t.Errorf("%s: a lock that is held was changed to %q", name, raw)
		}
	}
}

func TestHoldTakenAway(t *testing.T) {
	for name, steal := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced by the same bytes": func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.WriteFile(p, payload, 0o600))
		},
		"rewritten": func(p string) error { return os.WriteFile(p, []byte(`{"pid":1}`), 0o600) },
	} {
		h, err := Hold(filepath.Join(t.TempDir(), "a.jsonl"), fake{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := steal(h.Path()); err != nil {
			t.Fatal(err)
		}
		_, before := os.Lstat(h.Path())
		if err := h.Check(); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: check says %v", name, err)
		}
		if err := h.Release(); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: release says %v", name, err)
		}
		if _, after := os.Lstat(h.Path()); (before == nil) != (after == nil) {
			t.Errorf("%s: another one's lock was removed", name)
		}
	}
}

func TestHoldFollowsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	h, err := Hold(filepath.Join(link, "a.jsonl"), fake{}, now)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if want, _ := filepath.EvalSymlinks(real); filepath.Dir(h.Path()) != want {
		t.Errorf("lock at %s, OpenClaw looks in %s", h.Path(), want)
	}
	if _, err := Hold(filepath.Join(dir, "none", "a.jsonl"), fake{}, now); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("no directory: %v", err)
	}
}

func TestDir(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	release, err := Dir(ctx, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, ".oc", "lock")); err != nil || info.Mode() != 0o600 {
		t.Errorf("lock file: %v, %v", info, err)
	}
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if _, err := Dir(ctx, dir, wait); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "(process ") {
			t.Errorf("second one after %v: %v", wait, err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Dir(canceled, dir, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = release() })
	second, err := Dir(ctx, dir, 10*time.Second)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	if err := second(); err != nil {
		t.Error(err)
	}
	if other, err := Dir(ctx, t.TempDir(), 0); err != nil || other() != nil {
		t.Errorf("another directory: %v", err)
	}
}

func TestDirRefusesOddLockFiles(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ".oc"), 0o700), os.WriteFile(victim, []byte("kept"), 0o600),
		os.Symlink(victim, filepath.Join(dir, ".oc", "lock"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(context.Background(), dir, 0); err == nil {
		t.Error("followed a symbolic link")
	}
	if raw, _ := os.ReadFile(victim); string(raw) != "kept" {
		t.Errorf("wrote %q through a symbolic link", raw)
	}
	file := filepath.Join(dir, "victim")
	if _, err := Dir(context.Background(), file, 0); err == nil {
		t.Error("locked a file as a directory")
	}
}

// What a killed oc leaves behind goes, and nobody else's lock does.
func TestAbandon(t *testing.T) {
	for text, stays := range map[string]bool{"{}\n": false, "": false, "{": false, "{}": false, `{"pid":1}`: true, "{}\n\n": true} {
		transcript := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(transcript+Suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		Abandon(transcript)
		if _, err := os.Stat(transcript + Suffix); os.IsNotExist(err) == stays {
			t.Errorf("%q: %v", text, err)
		}
	}
	// One that is being written.
	transcript := filepath.Join(t.TempDir(), "a.jsonl")
	f, err := os.Create(transcript + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _, _ = f.WriteString(`{"pid":1}`); f.Close() })
	Abandon(transcript)
	if _, err := os.Stat(transcript + Suffix); err != nil {
		t.Errorf("a lock that somebody was writing: %v", err)
	}
	Abandon(filepath.Join(t.TempDir(), "none.jsonl"))
}
