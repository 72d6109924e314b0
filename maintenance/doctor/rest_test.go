package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/lock"
)

// A transcript that is very large, with a very long line: sparse, so that it
// takes no room.
func TestLargeTranscript(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-fixtures.Hour))
	path := filepath.Join(filepath.Dir(store), "t1.jsonl")
	long := said("b", "a", "user", text(strings.Repeat("x", 9<<20)))
	put(t, path, lines(talkHead, six()[1], long))
	if err := os.Truncate(path, 70<<20); err != nil {
		t.Fatal(err)
	}
	age(t, filepath.Dir(store), 24*time.Hour)
	r := examined(t, state)
	says(t, one(t, r, TranscriptLarge), "70 MiB")
	if f := one(t, r, LongLine); f.Line != 4 {
		t.Errorf("%+v", f)
	}
	if n := len(found(r, "nul-tail")); n != 1 {
		t.Errorf("%d tails of NUL bytes", n)
	}
}

// An index that is a link, one in a directory that another store shares and
// that cannot be read, a row that OpenClaw would stop over.
func TestIndexBeside(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	real := filepath.Join(t.TempDir(), "sessions.json")
	put(t, real, `{"agent:main:main": {"sessionId": "t1", "updatedAt": 1789999000000, "compactionCheckpoints": [null]}}`)
	store := fixtures.Store(state, "main")
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, store); err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	says(t, one(t, r, IndexLink), real)
	says(t, one(t, r, RowProblem), "checkpoint")

	state = filepath.Join(t.TempDir(), "state")
	put(t, filepath.Join(state, "openclaw.json"), `{session: {store: "`+filepath.Join(state, "all/{agentId}.json")+`"}, agents: {list: [{id: "main"}, {id: "work"}]}}`)
	put(t, filepath.Join(state, "all/main.json"), `{"agent:main:main": {"sessionId": "t1", "updatedAt": 1789999000000}}`)
	put(t, filepath.Join(state, "all/work.json"), `{"agent:work:main": {`)
	r = examine(t, state)
	if f := one(t, r, IndexNeighbour); f.Agent != "main" {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, IndexDamaged); f.Agent != "work" {
		t.Errorf("%+v", f)
	}
}

// An index that may not be read is not an empty one.
func TestIndexInCircle(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sessions.json", store); err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	if f := one(t, r, IndexUnreadable); f.File != store || r.Healthy() {
		t.Errorf("%+v", f)
	}
}

// A lock of another host, and a directory of locks that is none.
func TestForeignLock(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Dir(fixtures.Store(state, "main"))
	put(t, filepath.Join(dir, "t1.jsonl"), lines(six()...))
	put(t, filepath.Join(dir, "t1.jsonl.lock"), fixtures.Lock(fixtures.NoPID, fixtures.Now-fixtures.Hour, 300000, 80516))
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "locks"); o.Machine = abroad{lock.Local()} })
	if f := one(t, r, LockForeign); f.Severity != Info || f.Remedy != None {
		t.Errorf("%+v", f)
	}
}

// abroad is a machine whose files may be locked from elsewhere.
type abroad struct{ lock.Machine }

func (abroad) Elsewhere(string) (string, bool) { return "the directory is on a network", false }

// An import that did not end, and a write-ahead log that is large.
func TestDatabaseLeftUndone(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(e.SQLite, "session-sqlite-migration-runs/session-sqlite-1789990000000-1f0c7a2b.json"), `{"targets":[{"agentId":"main"}]}`)
	wal := fixtures.Database(e.SQLite, "main") + "-wal"
	put(t, wal, "")
	if err := os.Truncate(wal, largeLog); err != nil {
		t.Fatal(err)
	}
	r := examined(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "database"); o.Deep = false })
	says(t, one(t, r, ImportUnfinished), "main")
	says(t, one(t, r, DatabaseLog), "64 MiB")
}

// Something in the configuration that OpenClaw itself goes on with.
func TestConfigNote(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	put(t, filepath.Join(state, "openclaw.json"), `{session: {mainKey: "home"}}`)
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "config") })
	if f := one(t, r, ConfigNote); f.Severity != Info || !r.Healthy() {
		t.Errorf("%+v", f)
	}
}
