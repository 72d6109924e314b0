package maintenance

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
)

const (
	liveID = "11111111-1111-4111-8111-111111111111"
	deadID = "22222222-2222-4222-8222-222222222222"
)

// household is an installation with an agent ops, whose store has four rows.
func household(t *testing.T) (c *config.Config, target store.Target, folder string) {
	t.Helper()
	root := scratch(t)
	state := filepath.Join(root, "state")
	folder = filepath.Join(state, "agents", "ops")
	files := map[string]string{
		"sessions/sessions.json":                                         `{"agent:ops:a": {"sessionId": "` + liveID + `", "updatedAt": 5, "mine": [1,  2]}, "agent:ops:b": {"sessionId": "b", "updatedAt": 5}, "global": {"sessionId": "g"}, "agent:ops:old": {"sessionId": "o", "archivedAt": 7}}`,
		"sessions/" + liveID + ".jsonl":                                  "{}\n",
		"sessions/b.jsonl":                                               "{}\n",
		"sessions/" + liveID + ".jsonl.ab":                               "x",
		"sessions/" + liveID + ".trajectory.jsonl":                       "{}\n",
		"sessions/" + deadID + ".jsonl.deleted.2020-01-02T03-04-05.000Z": "{}\n",
		"agent/auth.json":                                                "{}",
		"../../openclaw.json":                                            `{agents: {list: [{id: "main", default: true}, {id: "ops"}]}}`,
	}
	at := time.UnixMilli(1_600_000_000_000)
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: root, Home: root, StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	return c, store.Target{Agent: "ops", Index: filepath.Join(folder, "sessions", "sessions.json")}, folder
}

// contents are the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = strings.ReplaceAll(string(text), dir, "DIR")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type faultyVerb struct {
	name   string
	policy *Policy
	plan   func(folder string) func(*Snapshot) (*Plan, error)
}

func faultyVerbs(ctx context.Context, at time.Time) []faultyVerb {
	return []faultyVerb{
		{"delete", Alone("agent:ops:a", "agent:ops:b"), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) { return Delete(s, []string{"agent:ops:a", "agent:ops:b"}, at) }
		}},
		{"archive", Alone(), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) { return Archive(s, []string{"agent:ops:a", "agent:ops:b"}, at) }
		}},
		{"unarchive", Alone(), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) { return Unarchive(s, []string{"agent:ops:old"}, at) }
		}},
		{"reset", Alone(), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) { return Begin(s, "agent:ops:a", Reset{ID: "new", Reason: "new"}, at) }
		}},
		{"restore", Alone(), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) {
				p, _, _, err := Restore(s, Lost{Archive: deadID + ".jsonl.deleted.2020-01-02T03-04-05.000Z"}, at)
				return p, err
			}
		}},
		{"patch", Alone(), func(string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) { return Change(s, "agent:ops:a", Patch{Pin: true}, at) }
		}},
		{"compact", Alone(), func(folder string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) {
				path := filepath.Join(folder, "sessions", liveID+".jsonl")
				info, err := os.Lstat(path)
				if err != nil {
					return nil, err
				}
				content := func(w io.Writer) error { _, err := io.WriteString(w, "{}\n{\"type\":\"compaction\"}\n"); return err }
				return Shorten(s, "agent:ops:a", Shortening{Path: path, Info: info, Content: content, Summary: true, Tokens: 7, Known: true}, at)
			}
		}},
		{"remove the agent", Alone(), func(folder string) func(*Snapshot) (*Plan, error) {
			return func(s *Snapshot) (*Plan, error) {
				f, err := s.Walk(ctx, folder)
				if err != nil {
					return nil, err
				}
				return RemoveAgent(s, []string{"agent:ops:a", "agent:ops:b", "agent:ops:old", "global"}, f, at)
			}
		}},
	}
}

// A kill, or an error, at every operation of every verb: the store parses at once, a row that has a transcript before and after has it in
// between, the next run brings the new or the old state, and undo brings the old one.
func TestFaultsOfVerbs(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000)
	ctx := t.Context()
	for _, c := range faultyVerbs(ctx, at) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			worker := func(cfg *config.Config, f journal.FS) *Worker {
				return &Worker{Config: cfg, Machine: lock.Local(), Now: func() time.Time { return at }, FS: f}
			}
			cfg, target, folder := household(t)
			before := contents(t, folder)
			count := &journal.Faults{FS: quick{journal.OS()}}
			if d, err := worker(cfg, count).Apply(ctx, target, c.policy, c.plan(folder)); err != nil || d.Run == nil || len(d.Skipped) > 0 {
				t.Fatalf("%v %+v", err, d)
			}
			after := contents(t, folder)
			if maps.Equal(before, after) || count.Count() < 15 {
				t.Fatalf("%d operations changed too little", count.Count())
			}
			for n := 1; n <= count.Count(); n++ {
				for _, fault := range everyFault {
					cfg, target, folder := household(t)
					w := worker(cfg, &journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault})
					var done *Done
					var err error
					killed := stopping(func() { done, err = w.Apply(ctx, target, c.policy, c.plan(folder)) })
					if killed != (fault == nil) {
						t.Fatalf("operation %d: killed %t", n, killed)
					}
					now := contents(t, folder)
					intact(t, now, before, after)
					skipped := !killed && err == nil && len(done.Skipped) > 0
					// The next run finishes what was begun, or rolls it back.
					w = worker(cfg, quick{journal.OS()})
					nothing := func(s *Snapshot) (*Plan, error) { return &Plan{Agent: s.Agent, Store: s.Store, Now: at}, nil }
					if _, err := w.Apply(ctx, target, Alone(), nothing); err != nil && !skipped {
						t.Fatalf("operation %d: the next run: %v", n, err)
					}
					now = contents(t, folder)
					intact(t, now, before, after)
					if !skipped && !maps.Equal(now, before) && !maps.Equal(now, after) {
						t.Errorf("operation %d, %v (%v): neither the old nor the new state: %v", n, fault, err, now)
					}
					past, _ := w.Past(target.Index)
					for _, p := range Last(past, nil) {
						if _, _, err := p.Undo(ctx, false); err != nil {
							t.Errorf("operation %d: undo: %v", n, err)
						}
					}
					if now := contents(t, folder); !maps.Equal(now, before) {
						t.Errorf("operation %d, %v: after undo: %v", n, fault, now)
					}
					if t.Failed() {
						return
					}
				}
			}
		})
	}
}

// The same at every operation of taking a verb back: the store parses, and taking it back once more brings the old state.
func TestFaultsOfUndoingVerbs(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000)
	ctx := t.Context()
	for _, c := range faultyVerbs(ctx, at) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			total := 0
			for n := 0; n <= total; n++ { // the first time nothing goes wrong, and the operations are counted
				for i, fault := range everyFault {
					if n == 0 && i > 0 {
						continue
					}
					cfg, target, folder := household(t)
					before := contents(t, folder)
					worker := func(f journal.FS) *Worker {
						return &Worker{Config: cfg, Machine: lock.Local(), Now: func() time.Time { return at }, FS: f}
					}
					plain := worker(quick{journal.OS()})
					if _, err := plain.Apply(ctx, target, c.policy, c.plan(folder)); err != nil {
						t.Fatal(err)
					}
					after := contents(t, folder)
					undo := func(w *Worker) error {
						past, problems := w.Past(target.Index)
						if len(problems) > 0 {
							return problems[0]
						}
						for _, p := range Last(past, nil) {
							if _, _, err := p.Undo(ctx, false); err != nil {
								return err
							}
						}
						return nil
					}
					f := &journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault}
					var err error
					if killed := stopping(func() { err = undo(worker(f)) }); killed != (fault == nil && n > 0) {
						t.Errorf("killed: %t, %v", killed, err)
					}
					if n == 0 {
						total = f.Count()
					}
					intact(t, contents(t, folder), before, after)
					if _, err := plain.Recover(ctx, target.Index, false); err != nil {
						t.Errorf("recover: %v", err)
					}
					if err := undo(plain); err != nil {
						t.Errorf("undo: %v", err)
					}
					if now := contents(t, folder); !maps.Equal(now, before) {
						t.Errorf("after another undo: %v", now)
					}
					if t.Failed() {
						t.Fatalf("operation %d of %d, %v", n, total, fault)
					}
				}
				if total < 15 {
					t.Fatalf("only %d operations", total)
				}
			}
		})
	}
}

var everyFault = []error{nil, syscall.EIO, syscall.ENOSPC, syscall.EACCES}

// intact checks that the store parses, if it is there, and that no row of it lacks the transcript that the same row has in the old or in
// the new state.
func intact(t *testing.T, now, before, after map[string]string) {
	t.Helper()
	const dir = "/sessions/"
	text, there := now[dir+"sessions.json"]
	if !there {
		if _, stays := after[dir+"sessions.json"]; stays {
			t.Error("the store is gone")
		}
		return
	}
	var rows map[string]struct{ SessionID string }
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Errorf("the store does not parse: %v", err)
	}
	for key, r := range rows {
		file := dir + r.SessionID + ".jsonl"
		for _, state := range []map[string]string{before, after} {
			var same map[string]struct{ SessionID string }
			if json.Unmarshal([]byte(state[dir+"sessions.json"]), &same) != nil || same[key].SessionID != r.SessionID {
				continue
			}
			_, had := state[file]
			if _, has := now[file]; had && !has {
				t.Errorf("%s has no transcript", key)
			}
		}
	}
}
