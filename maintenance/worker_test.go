package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/span"
)

// A place is a state on disk in which plans are applied.
type place struct {
	t      *testing.T
	root   string
	now    int64
	orders Orders
	pick   store.Pick
}

// scratch is a directory in memory, where the system has a place for that: thousands of states are laid out.
func scratch(t *testing.T) string {
	if dir, err := os.MkdirTemp("/dev/shm", "oc-maintenance-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// settle lays out a recipe and makes it a place. Two of the same recipe differ in nothing but the path of their root, which is of one length.
func settle(t *testing.T, r *recipe, now int64, o Orders) *place {
	t.Helper()
	p := &place{t: t, root: filepath.Join(scratch(t), fmt.Sprintf("%08d", rand.IntN(100000000))), now: now, orders: o}
	began := time.Now().Add(-time.Second)
	(&builder{t, filepath.Join(p.root, ".openclaw"), now}).build(r)
	err := filepath.WalkDir(p.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := os.Lstat(path); err != nil || info.ModTime().Before(began) {
			return err
		}
		return journal.OS().Chtimes(path, (now+10*86400000)*1e6)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) config() *config.Config {
	p.t.Helper()
	c, err := config.Load(config.Options{Cwd: p.root, Home: p.root})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *place) targets() []store.Target {
	p.t.Helper()
	targets, err := store.Targets(p.config(), p.pick)
	if err != nil {
		p.t.Fatal(err)
	}
	return targets
}

// worker works there, late milliseconds after the time at which it stands, on a file system that may fail.
func (p *place) worker(f journal.FS, late int64) *Worker {
	if f == nil {
		f = quick{journal.OS()}
	}
	return &Worker{Config: p.config(), Machine: alive{}, Now: func() time.Time { return time.UnixMilli(p.now + late) }, Command: "cleanup", FS: f}
}

// apply cleans each store of the place.
func (p *place) apply(w *Worker) (all []*Done, err error) {
	p.t.Helper()
	policy, _, err := ReadPolicy(w.Config, p.orders)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, target := range p.targets() {
		d, err := w.Apply(context.Background(), target, policy, func(s *Snapshot) (*Plan, error) {
			return Make(policy, s, time.UnixMilli(p.now)), nil
		})
		all = append(all, d)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// planned is what a dry run says.
func (p *place) rehearse() (plans []*Plan) {
	p.t.Helper()
	c := p.config()
	policy, _, err := ReadPolicy(c, p.orders)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, target := range p.targets() {
		s, err := Take(context.Background(), c, target, policy, alive{}, time.UnixMilli(p.now))
		if err != nil {
			p.t.Fatal(err)
		}
		plans = append(plans, Make(policy, s, time.UnixMilli(p.now)))
	}
	return plans
}

// takeBack undoes every run that can be taken back, the newest first, and closes what was cut short.
func (p *place) takeBack() {
	p.t.Helper()
	w := p.worker(nil, 1000)
	j, err := w.Journal(p.targets()[0].Index)
	if err == nil {
		_, err = j.Recover(context.Background())
	}
	if err != nil {
		p.t.Fatalf("finish what was cut short: %v", err)
	}
	all, problems := w.Past(p.targets()[0].Index)
	if len(problems) > 0 {
		p.t.Fatal(problems)
	}
	for _, r := range slices.Backward(all) {
		if r.Possible() != "" {
			continue
		}
		_, outcomes, err := r.Undo(context.Background(), false)
		if err != nil {
			p.t.Fatalf("undo: %v", err)
		}
		if bad := Conflicts(outcomes); len(bad) > 0 {
			p.t.Fatalf("undo left %+v", bad)
		}
	}
}

// everything is the place's files by name: type, mode, owner, time, and bytes or target; without what is oc's. Directories have their times
// when asked for: a run that is rolled back leaves them others.
func (p *place) everything(times bool) map[string]string {
	p.t.Helper()
	all := map[string]string{}
	state := filepath.Join(p.root, ".openclaw")
	err := filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".oc" {
			return filepath.SkipDir
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		s := journal.StampOf(info)
		rest := ""
		switch s.Type {
		case journal.Plain:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rest = string(text)
		case journal.Link:
			if rest, err = os.Readlink(path); err != nil {
				return err
			}
		case journal.Folder:
			if !times || path == state || path == p.root { // in which .oc was made
				s.MTime = 0
			}
		}
		name, _ := filepath.Rel(p.root, path)
		all[name] = fmt.Sprintf("%s %o %d:%d %d %q", s.Type, s.Mode, s.UID, s.GID, s.MTime, strings.ReplaceAll(rest, p.root, "ROOT"))
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// fresh is everything after a run: the stores that it wrote have times of their own.
func (p *place) fresh() map[string]string {
	all := p.everything(false)
	for _, target := range p.targets() {
		name, _ := filepath.Rel(p.root, target.Index)
		if parts := strings.SplitN(all[name], " ", 5); len(parts) == 5 {
			all[name] = parts[4]
		}
	}
	return all
}

// unlike is how two trees differ; "" where they do not.
func unlike(got, want map[string]string) string {
	var out []string
	for name, v := range want {
		if got[name] != v {
			out = append(out, fmt.Sprintf("%s: got %.120s, want %.120s", name, got[name], v))
		}
	}
	for name, v := range got {
		if _, ok := want[name]; !ok {
			out = append(out, fmt.Sprintf("%s: unexpected %.120s", name, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// whole tells what is wrong with the stores of a place: they must parse, and no row may have lost its transcript.
func (p *place) whole(had map[string]bool) string {
	p.t.Helper()
	for _, target := range p.targets() {
		text, err := os.ReadFile(target.Index)
		if err != nil {
			return err.Error()
		}
		if err := span.Valid(text); err != nil {
			return fmt.Sprintf("%s does not parse: %v", target.Index, err)
		}
		for key, path := range p.transcripts(target) {
			if _, err := os.Lstat(path); err != nil && had[target.Index+" "+key] {
				return fmt.Sprintf("%s has no transcript any more: %v", key, err)
			}
		}
	}
	return ""
}

// transcripts are the paths that the rows of a store name, by key.
func (p *place) transcripts(target store.Target) map[string]string {
	p.t.Helper()
	s := &Snapshot{Agent: target.Agent, Store: target.Index, Dir: filepath.Dir(target.Index)}
	f, err := s.read()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.list(context.Background()); err != nil {
		p.t.Fatal(err)
	}
	out := map[string]string{}
	if f == nil {
		return out
	}
	n := newNamer(s, s.Store, p.config().StateDir)
	for _, e := range f.Entries {
		if r := n.row(e); r.File != "" {
			out[e.Key] = r.File
		}
	}
	return out
}

// having are the rows that have a transcript.
func (p *place) having() map[string]bool {
	p.t.Helper()
	had := map[string]bool{}
	for _, target := range p.targets() {
		for key, path := range p.transcripts(target) {
			if _, err := os.Lstat(path); err == nil {
				had[target.Index+" "+key] = true
			}
		}
	}
	return had
}

// quick is a file system whose disk is always in time.
type quick struct{ journal.FS }

func (quick) SyncDir(string) error { return nil }
func (quick) SyncFS(string) error  { return nil }

func (q quick) Create(name string, mode fs.FileMode) (journal.File, error) {
	f, err := q.FS.Create(name, mode)
	if err != nil {
		return nil, err
	}
	return hasty{f}, nil
}

type hasty struct{ journal.File }

func (hasty) Sync() error { return nil }

// recordedRecipe is the recipe of a recorded case.
func recordedRecipe(t *testing.T, name string) (*recipe, int64) {
	t.Helper()
	for _, c := range recordedCases(t) {
		if c.Name == name {
			return &c.Recipe, c.Now
		}
	}
	t.Fatalf("there is no case %s", name)
	return nil, 0
}

func recipeOf(t *testing.T, text string) *recipe {
	t.Helper()
	var r recipe
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// Everything at once: rows of every rule, archives, temps, unlinked files, side files.
func mixture(t *testing.T) *recipe {
	t.Helper()
	const day = 86400000
	return recipeOf(t, state(`{"session":{"dmScope":"main","maintenance":{"maxEntries":4,"pruneAfter":"30d","resetArchiveRetention":"7d"}}}`, []string{
		entry("agent:main:main", 3600000, `"sessionId":"live"`),
		entry("agent:main:explicit:old", 40*day, `"sessionId":"old"`),
		entry("agent:main:explicit:gone", 2*day, `"sessionId":"gone"`),
		entry("agent:main:telegram:direct:5", 3*day, `"sessionId":"direct"`),
		entry("agent:main:explicit:c1", 4*day, `"sessionId":"c1"`),
		entry("agent:main:explicit:c2", 5*day, `"sessionId":"c2"`),
		entry("agent:main:explicit:c3", 6*day, `"sessionId":"c3"`),
		entry("agent:main:explicit:mend", 7200000, `"sessionId":"11111111-1111-4111-8111-111111111111","sessionFile":"22222222-2222-4222-8222-222222222222.jsonl"`),
	},
		talk("live.jsonl", 3600000), talk("old.jsonl", 40*day), talk("direct.jsonl", 3*day), talk("c1.jsonl", 4*day), talk("c2.jsonl", 5*day), talk("c3.jsonl", 6*day),
		talk("11111111-1111-4111-8111-111111111111.jsonl", 7200000), talk("22222222-2222-4222-8222-222222222222.jsonl", 7200000),
		talk("lost.jsonl", 50*day), sized("empty.jsonl", 50*day, 0),
		sized("old.trajectory.jsonl", 40*day, 200), sized("lost.trajectory.jsonl", 50*day, 100),
		talk("a.jsonl.deleted.{{TS-3456000000}}", 40*day), talk("b.jsonl.reset.{{TS-864000000}}", 10*day), talk("c.jsonl.reset.{{TS-86400000}}", day),
		sized("sessions.json.4711.33333333-3333-4333-8333-333333333333.tmp", 2*day, 900), sized("notes.txt", day, 30),
	))
}

// A cleanup and its undo, over everything at once: the plan is what is done, and all of it comes back.
func TestApplyAndUndo(t *testing.T) {
	p := settle(t, mixture(t), now, Orders{FixMissing: true, FixDMScope: true})
	before, dry := p.everything(true), p.rehearse()[0]
	rules := map[Rule]bool{}
	for _, a := range dry.Actions {
		rules[a.Rule] = true
	}
	for _, want := range []Rule{FixMissing, Repair, DMScope, Stale, Cap, Retention, Unlinked, OldTemp, RowsChanged} {
		if !rules[want] {
			t.Errorf("the case has no action of the rule %s", want)
		}
	}
	all, err := p.apply(p.worker(nil, 0))
	if err != nil || len(all[0].Skipped) > 0 || all[0].Run == nil {
		t.Fatalf("%v %+v", err, all)
	}
	if d := unlikePlans(dry, all[0].Plan); d != "" {
		t.Error(d)
	}
	if unlike(p.everything(false), before) == "" {
		t.Fatal("nothing was done")
	}
	if again := p.rehearse()[0]; !again.Empty() {
		t.Errorf("planned again: %+v", again.Actions)
	}
	p.takeBack()
	if d := unlike(p.everything(true), before); d != "" {
		t.Errorf("after the undo:\n%s", d)
	}
}

// unlikePlans is the first action in which two plans differ.
func unlikePlans(a, b *Plan) string {
	if len(a.Actions) != len(b.Actions) {
		return fmt.Sprintf("%d actions and %d", len(a.Actions), len(b.Actions))
	}
	for i := range a.Actions {
		x, y := fmt.Sprintf("%+v", a.Actions[i]), fmt.Sprintf("%+v", b.Actions[i])
		if x != y {
			return x + " and " + y
		}
	}
	return ""
}
