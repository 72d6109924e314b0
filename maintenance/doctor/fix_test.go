package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
	"oc/transcript"
)

// quick is a file system that does not wait for the disk: what a test kills is the process, not the machine.
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

// ward is a state in which things are mended.
func ward(t *testing.T, state string, f journal.FS) (Options, *maintenance.Worker) {
	t.Helper()
	c, err := config.Load(config.Options{StateDir: state, Cwd: t.TempDir(), Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		f = quick{journal.OS()}
	}
	o := Options{
		Config: c, Targets: append(targets, store.StrangerTargets(c)...), State: true, Deep: true,
		Machine: lock.Local(), Owner: gateway.Ownership{Life: gateway.None}, Now: now,
	}
	return o, &maintenance.Worker{Config: c, Machine: lock.Local(), Now: func() time.Time { return now }, Command: "doctor --fix", FS: f}
}

// spoken are the messages that can be reached: on the active branches of transcripts, and of those that rows name.
func spoken(t *testing.T, state string) map[string]int {
	t.Helper()
	all := map[string]int{}
	add := func(path, mark string) {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		var tree transcript.Tree
		s := transcript.Scanner{Tree: &tree}
		if err := s.Read(f, func(*transcript.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		rows, _ := tree.Branch()
		load := transcript.Load(f)
		for _, at := range rows {
			if e, err := load(at); err != nil {
				t.Fatal(err)
			} else if e.Kind == transcript.Message && transcript.Role(e.Message) != "" {
				all[mark+badImages.ReplaceAllString(string(e.Message), noImage)]++
			}
		}
	}
	o, w := ward(t, state, nil)
	for _, target := range o.Targets {
		files, err := filepath.Glob(filepath.Join(dirOf(target), "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			add(path, "on a branch: ")
		}
		s, err := maintenance.Take(context.Background(), o.Config, target, maintenance.Alone(), w.Machine, now)
		if err != nil {
			continue
		}
		done := map[string]bool{}
		for i := range s.Rows {
			if path := s.Rows[i].File; !done[path] {
				done[path] = true
				add(path, "by a row: ")
			}
		}
	}
	return all
}

// badImages are the images of these tests that are none: no part of what was said.
var badImages = regexp.MustCompile(`\{"type":"image","mimeType":"image/png","data":"[?]*"\}`)

// missing are the messages that others do not have.
func missing(all, others map[string]int) (out []string) {
	for m, n := range all {
		if others[m] == 0 && n > 0 {
			out = append(out, m)
		}
	}
	return out
}

// aged makes everything in a state an hour old, so that nobody seems to be at work there.
func aged(t *testing.T, state string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(path, now.Add(-time.Hour), now.Add(-time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shown is the tree of a state without what oc keeps of its runs.
func shown(t *testing.T, state string) []string {
	t.Helper()
	own := filepath.Join(state, ".oc")
	return slices.DeleteFunc(tree(t, state), func(line string) bool {
		return strings.HasPrefix(line, own) || strings.HasPrefix(line, state+" ")
	})
}

// back takes all runs of a state back, and closes those that were cut short.
func back(t *testing.T, state string) {
	t.Helper()
	_, w := ward(t, state, nil)
	if _, err := w.Recover(context.Background(), "", false); err != nil {
		t.Fatal(err)
	}
	all, problems := w.Past("")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, p := range slices.Backward(all) {
		if p.Possible() != "" {
			continue
		}
		_, outcomes, err := p.Undo(context.Background(), false)
		if err != nil {
			t.Fatal(err)
		}
		if left := maintenance.Conflicts(outcomes); len(left) > 0 {
			t.Errorf("not taken back: %+v", left)
		}
	}
	if err := os.RemoveAll(filepath.Join(state, ".oc")); err != nil { // hundreds of runs take longer and longer to be read
		t.Fatal(err)
	}
}

// heal mends the findings that have one of some codes and holds it to what every fix promises: a dry run plans the same and changes nothing;
// what was found is no longer found, and nothing else instead; every message can still be reached; a second run plans nothing; undo brings
// the tree back byte for byte. It returns what was done, and the state is as before.
func heal(t *testing.T, state string, codes ...Code) []Mended {
	t.Helper()
	ctx := context.Background()
	undoes(codes...)
	aged(t, state)
	before, messages := shown(t, state), spoken(t, state)
	found := codesOf(examined(t, state), codes)
	for _, code := range codes {
		if found[code] == 0 {
			t.Errorf("%s is not found before", code)
		}
	}
	worseBefore := worse(examined(t, state))
	o, w := ward(t, state, nil)
	dry, err := Fix(ctx, o, codes, w, true)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, shown(t, state)); d != "" {
		t.Errorf("the dry run changed the state:\n%s", d)
	}
	all, err := Fix(ctx, o, codes, w, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(told(dry), told(all)); d != "" {
		t.Errorf("the dry run said otherwise:\n%s", d)
	}
	for _, m := range all {
		if m.Err != nil || len(m.Done.Skipped) > 0 {
			t.Errorf("%s: %v, skipped %+v", m.Store, m.Err, m.Done.Skipped)
		}
	}
	r := examined(t, state)
	if left := codesOf(r, codes); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for code, n := range worse(r) {
		if n > worseBefore[code] {
			t.Errorf("%d findings %s, before there were %d", n, code, worseBefore[code])
		}
	}
	for _, m := range missing(messages, spoken(t, state)) {
		t.Errorf("a message can no longer be reached: %s", m)
	}
	o, w = ward(t, state, nil)
	again, err := Fix(ctx, o, codes, w, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range again {
		if m.Done == nil || m.Done.Plan == nil || !m.Done.Plan.Empty() {
			t.Errorf("the second run: %+v", told(again))
		}
	}
	back(t, state)
	if d := cmp.Diff(before, shown(t, state)); d != "" {
		t.Errorf("after the undo:\n%s", d)
	}
	return all
}

// codesOf are the findings with one of some codes, by code, that can be mended.
func codesOf(r *Report, codes []Code) map[Code]int {
	out := map[Code]int{}
	for _, f := range r.Findings {
		if slices.Contains(codes, f.Code) && (f.Remedy == Safe || f.Remedy == Preview) {
			out[f.Code] += 1 + f.More
		}
	}
	return out
}

// told is what plans say, a line a change.
func told(all []Mended) (lines []string) {
	for _, m := range all {
		if m.Done == nil || m.Done.Plan == nil {
			continue
		}
		for _, a := range m.Done.Plan.Actions {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %s %d", a.Kind, a.Key, a.Target, a.Rule, a.Reason, a.Bytes))
		}
	}
	return lines
}

// timeless leaves out the times of directories: a run that was cut short and rolled back has had a file in them.
func timeless(lines []string) []string {
	for i, line := range lines {
		if path, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, "d") {
			lines[i] = path + " " + strings.Fields(rest)[0]
		}
	}
	return lines
}

// suffer mends with a kill and with an error at every operation: undo of what was begun brings the tree back, and no message is lost meanwhile.
func suffer(t *testing.T, state string, codes ...Code) {
	t.Helper()
	ctx := context.Background()
	survives(codes...)
	aged(t, state)
	before, messages := timeless(shown(t, state)), spoken(t, state)
	found := codesOf(examined(t, state), codes)
	for _, code := range codes {
		if found[code] == 0 {
			t.Errorf("%s is not found before", code)
		}
	}
	count := &journal.Faults{FS: quick{journal.OS()}}
	o, w := ward(t, state, count)
	all, err := Fix(ctx, o, codes, w, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Err != nil || len(m.Left) > 0 {
			t.Errorf("%s: %v, left %+v", m.Store, m.Err, m.Left)
		}
	}
	back(t, state)
	total := count.Count()
	if total < 10 {
		t.Errorf("only %d operations", total)
	}
	for _, fault := range []error{nil, syscall.EIO} {
		for n := 1; n <= total; n++ {
			o, w := ward(t, state, &journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault})
			killed := func() (killed bool) {
				defer func() {
					if x := recover(); x != nil {
						if _, ours := x.(journal.Stopped); !ours {
							panic(x)
						}
						killed = true
					}
				}()
				if _, err := Fix(ctx, o, codes, w, false); err != nil {
					t.Error(err)
				}
				return false
			}()
			if killed != (fault == nil) {
				t.Errorf("operation %d: killed %v", n, killed)
			}
			for _, m := range missing(messages, spoken(t, state)) {
				t.Errorf("operation %d of %d (%v): a message can no longer be reached: %s", n, total, fault, m)
			}
			back(t, state)
			if d := cmp.Diff(before, timeless(shown(t, state))); d != "" {
				t.Fatalf("operation %d of %d (%v), after the undo:\n%s", n, total, fault, d)
			}
		}
	}
	t.Logf("%d operations, each with a kill and with an error", total)
}

func TestFixLocks(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents", "main", "sessions")
	id := "0a1b2c3d-0000-4000-8000-000000000001"
	put(t, filepath.Join(dir, "sessions.json"), fmt.Sprintf(`{"agent:main:main":{"sessionId":%q,"updatedAt":%d}}`, id, now.UnixMilli()-1000))
	put(t, filepath.Join(dir, id+".jsonl"), lines(six()...))
	put(t, filepath.Join(dir, id+".jsonl.lock"), `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`)
	put(t, filepath.Join(dir, "gone.jsonl.lock"), `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`)
	put(t, filepath.Join(dir, "half.jsonl"), lines(six()...))
	put(t, filepath.Join(dir, "half.jsonl.lock"), `{"pid":41943`)
	put(t, filepath.Join(dir, "other.jsonl"), lines(six()...))
	put(t, filepath.Join(dir, "other.jsonl.lock"), fmt.Sprintf(`{"pid":%d,"createdAt":"2026-09-01T00:00:00.000Z","starttime":1}`, os.Getpid()))
	all := heal(t, state, LockDead, LockAlone, LockRecycled, LockUnreadable)
	if len(all) != 1 || len(all[0].Findings) != 4 {
		t.Errorf("%+v", all)
	}
	suffer(t, state, LockDead, LockAlone, LockRecycled, LockUnreadable)
}

// The locks of a directory whose index is damaged go all the same, and the index stays as it is.
func TestFixBesideADamagedIndex(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents", "main", "sessions")
	put(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sess`)
	put(t, filepath.Join(dir, "gone.jsonl.lock"), `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`)
	heal(t, state, LockAlone)
}
