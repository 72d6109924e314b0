package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/store/lock"
)

// S3: five kinds of lock have five codes, and a lock of a process that lives
// and may hold it is none of them.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	m := lock.Local()
	self := m.Process(os.Getpid())
	l, err := fixtures.S3(dir, fixtures.Now, fixtures.Process{PID: self.PID, Start: int64(self.Start)})
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(filepath.Dir(fixtures.Store(dir, "main")), "busy.jsonl")
	put(t, held, `{"type":"session","version":3,"id":"busy"}`+"\n")
	put(t, held+lock.Suffix, fixtures.Lock(self.PID, fixtures.Now-fixtures.Minute, 17*fixtures.Minute, int64(self.Start)))
	r := examine(t, dir, func(o *Options) { o.Only = mustSelect(t, "locks"); o.Machine = noBoot{m} })
	got := map[string]Code{}
	for _, f := range r.Findings {
		got[filepath.Base(f.File)] = f.Code
	}
	want := map[string]Code{l.Dead: LockDead, l.Held: LockOverHold, l.Alone: LockAlone, l.Fresh: LockUnreadable, l.Torn: LockUnreadable, l.Recycled: LockRecycled}
	if self.Start == 0 {
		t.Fatal("this system tells no start times; TestLocksWithoutStart is for it")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, f := range found(r, LockUnreadable) {
		if fresh := filepath.Base(f.File) == l.Fresh; fresh != (f.Severity == Info) {
			t.Errorf("%s is of severity %s", f.File, f.Severity)
		}
	}
	says(t, one(t, r, LockOverHold), "limit is 17m", "held for 20m")
	if r.Healthy() {
		t.Error("a report with warnings is healthy")
	}
}

// Without start times the process is said to be unknown, and its lock is held.
func TestLocksWithoutStart(t *testing.T) {
	dir := t.TempDir()
	if _, err := fixtures.S3(dir, fixtures.Now, fixtures.Process{PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	r := examine(t, dir, func(o *Options) { o.Only = mustSelect(t, "locks"); o.Machine = noBoot{noStart{lock.Local()}} })
	all := found(r, LockOverHold)
	if len(all) == 0 || !strings.Contains(strings.Join(all[0].Evidence, " "), "start time unknown") {
		t.Errorf("%+v", all)
	}
	if n := len(found(r, LockRecycled)); n > 0 {
		t.Errorf("%d locks count as recycled without any proof", n)
	}
}

// noBoot is a machine that does not tell when it started: the locks of the
// fixtures are older than any machine that runs the tests.
type noBoot struct{ lock.Machine }

func (noBoot) Boot() time.Time { return time.Time{} }

// noStart is one that tells no start times.
type noStart struct{ lock.Machine }

func (m noStart) Process(pid int) lock.Process {
	p := m.Machine.Process(pid)
	p.Start = 0
	return p
}

func mustSelect(t *testing.T, words ...string) []Code {
	t.Helper()
	all, err := Select(words...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// booted is a machine that started at a time.
type booted struct {
	lock.Machine
	at int64
}

func (b booted) Boot() time.Time { return time.UnixMilli(b.at) }
