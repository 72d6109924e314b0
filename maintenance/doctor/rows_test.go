package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/fixtures"
	"oc/maintenance"
	"oc/store"
	"oc/store/lock"
)

// S15: one conversation under several keys, and keys that mean nobody.
func TestKeys(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	a, err := fixtures.S15(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "keys") })
	groups := map[string]string{}
	for _, f := range found(r, KeyAlias) {
		groups[f.Key] = strings.Join(f.Evidence, "; ")
	}
	for newest, other := range map[string]string{a.Room[1]: a.Room[0], a.Peers[0]: a.Peers[1]} {
		if !strings.Contains(groups[newest], other) {
			t.Errorf("%s and %s are not one conversation: %v", newest, other, groups)
		}
	}
	if len(groups) != 2 {
		t.Errorf("%d groups of keys, want 2: %v", len(groups), groups)
	}
	if f := one(t, r, KeySuffix); f.Key != a.Heartbeat[1] {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, SharedID); f.Key != a.Shared[0] || f.ID == "" {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, KeyUnknownAgent); f.Key != a.Typo {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, KeyOtherStore); f.Key != a.Foreign {
		t.Errorf("%+v", f)
	}
	odd := map[string]bool{}
	for _, code := range []Code{KeyOdd, KeyLegacy} {
		for _, f := range found(r, code) {
			odd[f.Key] = true
		}
	}
	for _, key := range a.Exotic {
		if !odd[key] {
			t.Errorf("%q is like any other", key)
		}
	}
	if len(odd) != len(a.Exotic) {
		t.Errorf("%d odd keys, want %d", len(odd), len(a.Exotic))
	}
}

// A cron job's row and that of its run have one session id, as OpenClaw makes
// them; peers of channels that tell capitals apart are different.
func TestKeysThatAreFine(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	row := `{"sessionId": %q, "updatedAt": 1789990000000}`
	put(t, fixtures.Store(state, "main"), fmt.Sprintf(`{
  "agent:main:cron:j1": `+row+`,
  "agent:main:cron:j1:run:r1": `+row+`,
  "agent:main:signal:group:AbC": `+row+`,
  "agent:main:signal:group:abc": `+row+`,
  "global": `+row+`
}`, "r1", "r1", "s1", "s2", "g"))
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "keys") })
	if len(r.Findings) > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// S20: times that cannot be are told, each in its kind, and no other.
func TestStamps(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	c, err := fixtures.S20(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "stamps") })
	got := map[string]Code{}
	for _, f := range r.Findings {
		got[f.Key] = f.Code
	}
	want := map[string]Code{
		c.Future: StampFuture, c.Zero: StampImpossible, c.Negative: StampImpossible, c.Seconds: StampSeconds, c.Text: StampImpossible,
		c.Null: StampImpossible, c.Missing: StampMissing, c.Huge: StampImpossible,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	says(t, found(r, StampFuture)[0], "2 days ahead")
	says(t, found(r, StampSeconds)[0], "2026-09-21")
}

// misplaced is the state of S5.
func misplaced(t *testing.T) (state string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	talk := func(name string) *fixtures.Transcript {
		return fixtures.Talk(fixtures.IDOf(name), fixtures.Now-2*fixtures.Day).User("Hello").Assistant("Hello!").User("And now?")
	}
	for _, name := range []string{"ok", "misplaced"} {
		put(t, filepath.Join(dir, fixtures.IDOf(name)+".jsonl"), talk(name).String())
	}
	put(t, filepath.Join(dir, fixtures.IDOf("damaged")+".jsonl"), talk("damaged").Line(`{"type":"message","id":"cut","message":{"role":"us`).Assistant("Well.").String())
	row := func(key, name, more string) string {
		return fmt.Sprintf("  %q: {\"sessionId\": %q, \"updatedAt\": %d%s}", key, fixtures.IDOf(name), fixtures.Now-2*fixtures.Day, more)
	}
	put(t, store, "{\n"+strings.Join([]string{
		row("agent:main:main", "ok", ""),
		row("agent:main:explicit:misplaced", "misplaced", fmt.Sprintf(`, "sessionFile": %q`, filepath.Join(dir, fixtures.IDOf("another")+".jsonl"))),
		row("agent:main:explicit:gone", "gone", ""),
		row("agent:main:explicit:damaged", "damaged", ""),
		row("agent:main:telegram:slash:551870024", "slash", ""),
	}, ",\n")+"\n}")
	age(t, dir, 48*3600e9)
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	return state
}

// S5: missing, misplaced and damaged are three things, and a cleanup counts
// the same.
func TestMissingMisplacedDamaged(t *testing.T) {
	state := misplaced(t)
	r := examine(t, state)
	want := map[Code]int{TranscriptMissing: 1, TranscriptMisplaced: 1, "not-json": 1}
	if d := cmp.Diff(want, worse(r)); d != "" {
		t.Error(d)
	}
	if f := one(t, r, "not-json"); f.Line != 5 || f.Byte <= 0 || f.Key != "agent:main:explicit:damaged" {
		t.Errorf("%+v", f)
	}
	for code, key := range map[Code]string{TranscriptMissing: "gone", TranscriptMisplaced: "misplaced"} {
		if f := one(t, r, code); f.Key != "agent:main:explicit:"+key {
			t.Errorf("%s: %s", code, f.Key)
		}
	}
	s := fixMissing(t, state)
	if s.Missing != r.Count(string(TranscriptMissing)) || s.Repaired != r.Count(string(TranscriptMisplaced)) {
		t.Errorf("cleanup counts %d missing and %d repaired", s.Missing, s.Repaired)
	}
}

// fixMissing is the dry run of a cleanup with --fix-missing.
func fixMissing(t *testing.T, state string) maintenance.Summary {
	t.Helper()
	c, err := config.Load(config.Options{StateDir: state, Cwd: state, Home: state})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := maintenance.ReadPolicy(c, maintenance.Orders{FixMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := maintenance.Take(t.Context(), c, targets[0], p, lock.Local(), now)
	if err != nil {
		t.Fatal(err)
	}
	return maintenance.Make(p, s, now).Summary(true)
}

// S6: where a row says that its transcript is. The verdict is the same when
// the state is reached by a link, and what lies outside is not opened.
func TestMovedState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Dir(fixtures.Store(state, "main"))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(state, link); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "hosts")
	put(t, outside, "127.0.0.1 localhost\n")
	other := filepath.Join(state, "agents/work/sessions", fixtures.IDOf("theirs")+".jsonl")
	put(t, other, fixtures.Talk(fixtures.IDOf("theirs"), fixtures.Now-fixtures.Day).User("Hello").Assistant("Hello!").String())
	put(t, filepath.Join(state, "openclaw.json"), `{"agents":{"list":[{"id":"main"},{"id":"work"}]}}`)
	files := map[string]string{
		"moved": "/old/home/u1/.clawdbot/agents/main/sessions/" + fixtures.IDOf("moved") + ".jsonl",
		"topic": "/old/home/u1/.clawdbot/agents/main/sessions/" + fixtures.IDOf("topic") + "-topic-7.jsonl",
		"plain": fixtures.IDOf("plain") + ".jsonl",
		"link":  filepath.Join(link, "agents/main/sessions", fixtures.IDOf("link")+".jsonl"),
		"hosts": outside,
		"other": other,
	}
	var rows []string
	for _, name := range []string{"moved", "topic", "plain", "link", "hosts", "other"} {
		id := fixtures.IDOf(name)
		base := id + ".jsonl"
		if name == "topic" {
			base = id + "-topic-7.jsonl"
		}
		put(t, filepath.Join(dir, base), fixtures.Talk(id, fixtures.Now-fixtures.Day).User("Hello").Assistant("Hello!").String())
		rows = append(rows, fmt.Sprintf("  %q: {\"sessionId\": %q, \"updatedAt\": %d, \"sessionFile\": %q}", "agent:main:explicit:"+name, id, fixtures.Now-fixtures.Hour, files[name]))
	}
	put(t, fixtures.Store(state, "main"), "{\n"+strings.Join(rows, ",\n")+"\n}")
	age(t, dir, 3600e9)
	want := map[string]Code{
		"agent:main:explicit:moved": PathMoved, "agent:main:explicit:topic": PathMoved,
		"agent:main:explicit:hosts": PathOutside, "agent:main:explicit:other": PathOtherAgent,
	}
	for _, way := range []string{state, link} {
		r := examine(t, way, func(o *Options) { o.Only = mustSelect(t, "paths") })
		got := map[string]Code{}
		for _, f := range r.Findings {
			got[f.Key] = f.Code
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", way, d)
		}
		if r.Healthy() {
			t.Error("a moved state is healthy")
		}
	}
	if s := fixMissing(t, state); s.Missing != 0 || s.Repaired != 2 {
		t.Errorf("cleanup calls %d missing and repairs %d", s.Missing, s.Repaired)
	}
}

// S14: the verdicts are those of status.
func TestRuns(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	m := lock.Local()
	self := m.Process(os.Getpid())
	boot := fixtures.Now - 2*fixtures.Day
	r, err := fixtures.S14(state, fixtures.Now, fixtures.Process{PID: self.PID, Start: int64(self.Start)}, boot)
	if err != nil {
		t.Fatal(err)
	}
	rep := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "runs"); o.Machine = booted{m, boot} })
	got := map[string]Code{}
	for _, f := range rep.Findings {
		got[f.Key] = f.Code
	}
	want := map[string]Code{r.Silent: RunDead, r.Ended: RunContradictory, r.Archived: RunContradictory, r.Recovered: RunUnknown, r.Rebooted: RunDead}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
