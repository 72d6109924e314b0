package lock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fake is a machine whose processes are written down.
type fake struct {
	procs  map[int]Process
	boot   time.Time
	why    string
	kernel bool
	nested map[int]int
	mac    bool // without start times
}

func (f fake) Process(pid int) Process {
	p := f.procs[pid]
	p.PID = pid
	if pid == os.Getpid() {
		p = Process{PID: pid, Life: Alive, Start: 1}
		if f.mac {
			p.Start = 0
		}
	}
	return p
}
func (f fake) Boot() time.Time                 { return f.boot }
func (f fake) Elsewhere(string) (string, bool) { return f.why, f.kernel }
func (f fake) Nested(pid int, _ uint64) int    { return f.nested[pid] }

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func place(t *testing.T, name, content string, age time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
		t.Fatal(err)
	}
	return path
}

func made(pid int, age time.Duration, extra string) string {
	return fmt.Sprintf("{\n  \"pid\": %d,\n  \"createdAt\": %q%s\n}\n", pid, now.Add(-age).Format("2006-01-02T15:04:05.000Z"), extra)
}

func TestLook(t *testing.T) {
	boot := now.Add(-24 * time.Hour)
	tick := func(age time.Duration) uint64 { return uint64((24*time.Hour - age) / (10 * time.Millisecond)) }
	start := func(age time.Duration) string {
		return fmt.Sprintf(", \"maxHoldMs\": 300000, \"starttime\": %d", tick(age))
	}
	live := func(age time.Duration) map[int]Process {
		return map[int]Process{42: {Life: Alive, Start: tick(age), Title: "openclaw-gateway"}}
	}
	dark := map[int]Process{42: {Life: Alive}}
	for name, c := range map[string]struct {
		body    string
		age     time.Duration // of the file
		machine fake
		want    State
		says    string
	}{
		"dead":                          {made(42, time.Minute, start(time.Hour)), time.Minute, fake{boot: boot}, Dead, "process 42 does not run"},
		"dead, before the boot":         {made(42, 48*time.Hour, start(time.Hour)), 48 * time.Hour, fake{boot: boot}, Dead, "older than the last boot"},
		"recycled":                      {made(42, time.Minute, start(2*time.Hour)), time.Minute, fake{boot: boot, procs: live(time.Hour)}, Recycled, "given again"},
		"held":                          {made(42, time.Minute, start(time.Hour)), time.Minute, fake{boot: boot, procs: live(time.Hour)}, Held, "start time is the lock's"},
		"held whatever its name":        {made(42, time.Minute, start(time.Hour)), time.Minute, fake{boot: boot, procs: map[int]Process{42: {Life: Alive, Start: tick(time.Hour), Title: "sleep 60"}}}, Held, `"sleep 60"`},
		"over its hold":                 {made(42, 20*time.Minute, fmt.Sprintf(`, "maxHoldMs": 1020000, "starttime": %d`, tick(time.Hour))), 20 * time.Minute, fake{boot: boot, procs: live(time.Hour)}, OverHold, "held for 20m0s, its limit is 17m0s"},
		"over the usual hold":           {made(42, 31*time.Minute, ""), time.Hour, fake{boot: boot, procs: dark}, OverHold, "limit is 30m0s"},
		"start unknown":                 {made(42, time.Minute, ""), time.Minute, fake{boot: boot, procs: dark}, Held, "start time unknown"},
		"start unknown, booted since":   {made(42, 48*time.Hour, ""), time.Minute, fake{boot: boot, procs: dark}, Recycled, "older than the last boot"},
		"start unknown, boot too":       {made(42, 20*time.Minute, ""), time.Minute, fake{procs: dark}, Held, "start time unknown"},
		"process younger than the lock": {made(42, 2*time.Hour, ""), time.Hour, fake{boot: boot, procs: live(time.Hour)}, Recycled, "after the lock was written"},
		"clock set since, start equal":  {made(42, 48*time.Hour, start(time.Hour)), time.Minute, fake{boot: boot, procs: live(time.Hour)}, OverHold, "start time is the lock's"},
		"no birth date":                 {`{"pid":42,"createdAt":"soon"}`, time.Minute, fake{boot: boot, procs: dark}, Held, "start time unknown"},
		"of the future":                 {made(42, -time.Hour, start(time.Hour)), 0, fake{boot: boot, procs: live(time.Hour)}, Held, ""},
		"of a container here":           {made(42, time.Minute, start(time.Hour)), time.Minute, fake{boot: boot, nested: map[int]int{42: 4711}}, Held, "process 4711 here is process 42 of a container"},
		"on a network":                  {made(42, time.Minute, start(time.Hour)), time.Minute, fake{boot: boot, why: "D is on a shared file system (NFS)"}, Foreign, "NFS"},
		"of another clock":              {made(42, 2*time.Hour, start(time.Minute)), time.Minute, fake{boot: boot}, Foreign, "does not fit this machine's clock"},
		"of a container on a Mac":       {made(42, time.Minute, start(time.Hour)), time.Minute, fake{mac: true}, Foreign, "Linux alone"},
		"dead on a Mac":                 {made(42, time.Minute, ""), time.Minute, fake{mac: true}, Dead, "does not run"},
		"dead gateway on a Mac":         {made(42, time.Minute, `, "startTime": 1796044952`), time.Minute, fake{mac: true}, Dead, "does not run"},
		"start time of years":           {made(42, time.Minute, `, "starttime": 9007199254740992`), time.Minute, fake{boot: boot}, Foreign, "does not fit"},
		"half written, fresh":           {`{"pid": 1`, time.Second, fake{}, Fresh, "half written"},
		"half written, old":             {`{"pid": 1`, 2 * time.Hour, fake{}, Unreadable, "2h0m0s"},
		"empty, fresh":                  {"", 29 * time.Second, fake{}, Fresh, "(0 bytes)"},
		"empty, old":                    {"", 30 * time.Second, fake{}, Unreadable, "(0 bytes)"},
		"oc's own":                      {"{}\n", time.Second, fake{}, Fresh, "names no process"},
		"of tomorrow":                   {"{}\n", -24 * time.Hour, fake{}, Fresh, ""},
		"an array":                      {"[1]", time.Hour, fake{}, Unreadable, "damaged"},
		"null":                          {"null", time.Hour, fake{}, Unreadable, "damaged"},
		"pid 0":                         {`{"pid":0}`, time.Hour, fake{}, Unreadable, "names no process"},
		"pid -1":                        {`{"pid":-1}`, time.Hour, fake{}, Unreadable, "names no process"},
		"pid 1.5":                       {`{"pid":1.5}`, time.Hour, fake{}, Unreadable, "names no process"},
		"pid text":                      {`{"pid":"42"}`, time.Hour, fake{procs: dark}, Unreadable, "names no process"},
		"pid 1e99":                      {`{"pid":1e99}`, time.Hour, fake{}, Unreadable, "names no process"},
		"PID is not pid":                {`{"PID":42}`, time.Hour, fake{procs: dark}, Unreadable, "names no process"},
		"binary":                        {"\x00\xff\xfe\x00", time.Hour, fake{}, Unreadable, "damaged"},
		"too large":                     {"{}" + strings.Repeat(" ", maxPayload), time.Hour, fake{}, Foreign, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t, "a.jsonl.lock", c.body, c.age)
			r := Look(path, c.machine, now)
			if all := strings.Join(r.Evidence, "\n"); r.State != c.want || !strings.Contains(all, c.says) {
				t.Errorf("state %s, want %s with %q; evidence:\n%s", r.State, c.want, c.says, all)
			}
			if !r.Orphan || len(r.Evidence) == 0 {
				t.Errorf("orphan %v with evidence %q; there is no transcript", r.Orphan, r.Evidence)
			}
			if err := os.WriteFile(strings.TrimSuffix(path, Suffix), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if again := Look(path, c.machine, now); again.Orphan || again.State != r.State {
				t.Errorf("with a transcript: orphan %v, state %s", again.Orphan, again.State)
			}
		})
	}
}

// A lock that names a live process of that start time is held, and one that
// may be another machine's is never given free, whatever else it says.
func TestNeverBreaksALiveLock(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(1, 1<<40).Draw(t, "start")
		created := time.Duration(rapid.Int64Range(-1e15, 1e18).Draw(t, "age"))
		body := made(42, created, fmt.Sprintf(`, "maxHoldMs": %d, "starttime": %d`, rapid.Int64Range(-5, 1<<44).Draw(t, "hold"), start))
		path := filepath.Join(dir, "a.jsonl.lock")
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		m := fake{boot: now.Add(-time.Duration(rapid.Int64Range(0, 1e17).Draw(t, "boot")))}
		if rapid.Bool().Draw(t, "lives") {
			m.procs = map[int]Process{42: {Life: Alive, Start: start}}
		} else {
			m.why = "another host"
		}
		if r := Look(path, m, now); !r.State.Holds() || r.Removable() {
			t.Fatalf("%s: %q", r.State, r.Evidence)
		}
	})
}

func FuzzLook(f *testing.F) {
	for _, s := range []string{"", "{}", `{"pid":1,"createdAt":"2026-11-30T11:26:16.482Z","maxHoldMs":300000,"starttime":80516}`, "{\"pid\":1}\t \t\n", `{"pid":1e9,"starttime":-1}`, "\xef\xbb\xbf{}", `{"pid":null}`} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "a.jsonl.lock")
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		r := Look(path, fake{}, now)
		if r.State == Free || len(r.Evidence) == 0 {
			t.Fatalf("state %s without evidence for %q", r.State, body)
		}
		if r.Removable() && (r.State == Dead || r.State == Recycled) && r.PID <= 0 {
			t.Fatalf("%s without a process for %q", r.State, body)
		}
	})
}

func TestHostileLocks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name+".jsonl.lock") }
	check := func(name string, want State, says string) {
		t.Helper()
		done := make(chan Report, 1)
		go func() { done <- Look(at(name), fake{}, now) }()
		select {
		case r := <-done:
			if r.State != want || !strings.Contains(strings.Join(r.Evidence, " "), says) {
				t.Errorf("%s: %s %q, want %s with %q", name, r.State, r.Evidence, want, says)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: hangs", name)
		}
	}
	if err := os.Mkdir(at("directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"loop": "loop.jsonl.lock", "dangling": "nowhere", "device": "/dev/zero", "linked": "real"} {
		if err := os.Symlink(to, at(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real"), []byte(`{"pid":42}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("huge"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(at("huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfifo", at("fifo")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	check("directory", Foreign, "not a plain file")
	check("loop", Foreign, "symbolic links")
	check("dangling", Foreign, "symbolic link to nothing")
	check("device", Foreign, "not a plain file")
	check("linked", Dead, "does not run")
	check("huge", Foreign, "larger than")
	check("fifo", Foreign, "not a plain file")
	check("absent", Free, "")

	reports, err := Scan(dir, fake{}, now)
	if err != nil || len(reports) != 7 {
		t.Errorf("scan: %d reports, %v; want the 7 that exist", len(reports), err)
	}
	if reports, err := Scan(filepath.Join(dir, "none"), fake{}, now); err != nil || reports != nil {
		t.Errorf("scan of nothing: %v, %v", reports, err)
	}
	if _, err := Scan(filepath.Join(dir, "real"), fake{}, now); err == nil || !strings.Contains(err.Error(), "real") {
		t.Errorf("scan of a file: %v", err)
	}
}

func TestUnchanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":   os.Remove,
		"rewritten": func(p string) error { return os.WriteFile(p, []byte(`{"pid":7}`), 0o600) },
		"touched":   func(p string) error { return os.Chtimes(p, now, now) },
		"replaced": func(p string) error {
			err := os.WriteFile(p+"2", []byte(`{"pid":42}`), 0o600)
			return errors.Join(err, os.Rename(p+"2", p))
		},
	} {
		path := place(t, "a.jsonl.lock", `{"pid":42}`, time.Hour)
		r := Look(path, fake{}, now)
		if err := r.Unchanged(); err != nil {
			t.Errorf("untouched: %v", err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if err := r.Unchanged(); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
