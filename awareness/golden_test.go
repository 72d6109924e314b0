package awareness

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The databases and answers in testdata/golden were recorded from the real releases (spec/awareness.md 7).

func unpack(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "golden", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// state puts a recorded database where a state directory has it.
func state(t testing.TB, name string) (path string) {
	t.Helper()
	path = Path(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, unpack(t, name+".sqlite"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// goldens are the databases with recorded answers.
func goldens(t testing.TB) (names []string) {
	files, err := filepath.Glob("testdata/golden/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json.gz")
		if _, err := os.Stat(filepath.Join("testdata", "golden", name+".sqlite.gz")); err == nil {
			names = append(names, name)
		}
	}
	if len(names) != 20 {
		t.Fatalf("%d recorded databases", len(names))
	}
	return names
}

type recordedEvent struct {
	Sequence                                                        int64
	SessionKey, SessionID, AgentID, Kind, ActorType, ActorID, RunID string
	OccurredAt                                                      int64
	Summary                                                         string
	Payload                                                         json.RawMessage
}

func (r recordedEvent) event() Event {
	return Event{
		Sequence: r.Sequence, SessionKey: r.SessionKey, SessionID: r.SessionID, AgentID: r.AgentID, Kind: r.Kind,
		ActorType: r.ActorType, ActorID: r.ActorID, RunID: r.RunID, OccurredAt: r.OccurredAt, Summary: r.Summary, Payload: reduce(r.Payload),
	}
}

type recorded struct {
	UserVersion int64
	OpenClaw    string
	Steps       []json.RawMessage
	Results     []struct {
		SessionKey, AgentID string
		ChangesSince        any
		StateVersion        int64
		Result              struct {
			Events                    []recordedEvent
			EventCount                int
			FirstSequence             int64
			LastSequence              int64
			Truncated, HistoryGap     bool
			EarliestAvailableSequence int64
		}
	}
	StateVersions map[string]map[string]int64
	Final         struct {
		Heads []struct {
			Key     string `json:"session_key"`
			Agent   string `json:"agent_id"`
			Last    int64  `json:"last_sequence"`
			Pruned  int64  `json:"pruned_max_sequence"`
			Updated int64  `json:"updated_at"`
		}
		Cursors        []recordedCursor
		EventCount     int64
		SqliteSequence int64
	}
	Queues map[string][]struct{ Text, ContextKey string }
}

type recordedCursor struct {
	Watcher    string `json:"watcher_session_key"`
	Store      string `json:"watcher_store_path"`
	Target     string `json:"target_session_key"`
	Seen       int64  `json:"last_seen_sequence"`
	Notified   int64  `json:"notified_sequence"`
	Material   int64  `json:"material_sequence"`
	Provenance string `json:"provenance"`
	Updated    int64  `json:"updated_at"`
}

func record(t testing.TB, name string) (r recorded) {
	t.Helper()
	if err := json.Unmarshal(unpack(t, name+".json"), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// treeHash is over names, modes, times and bytes of everything below dir.
func treeHash(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, p, fi.Mode(), fi.ModTime().UnixNano(), fi.Size())
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			h.Write(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func read(t testing.TB, path string, f func(s *Snapshot) error) {
	t.Helper()
	if err := Read(context.Background(), path, f); err != nil {
		t.Fatal(err)
	}
}

func TestRecordedAnswers(t *testing.T) {
	for _, name := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			path := state(t, name)
			want := record(t, name)
			before := treeHash(t, filepath.Dir(path))
			checkAnswers(t, path, want)
			if treeHash(t, filepath.Dir(path)) != before {
				t.Error("reading changed the files")
			}
		})
	}
}

func checkAnswers(t *testing.T, path string, want recorded) {
	t.Helper()
	asked := 0
	read(t, path, func(s *Snapshot) error {
		if s.Schema().Version != want.UserVersion || s.Schema().None || s.Schema().Label() != "" {
			t.Errorf("schema %+v, want version %d", s.Schema(), want.UserVersion)
		}
		for _, r := range want.Results {
			after, ok := r.ChangesSince.(float64)
			if !ok {
				continue // fractions and NaN: no such version here
			}
			asked++
			got, err := s.Changes(r.SessionKey, r.AgentID, int64(after), PageSize)
			if err != nil {
				return err
			}
			w := r.Result
			exp := Changes{
				SessionKey: r.SessionKey, AgentID: r.AgentID, Version: r.StateVersion, Events: []Event{}, Truncated: w.Truncated,
				Earliest: w.EarliestAvailableSequence, Gap: w.HistoryGap, AheadOfHead: int64(after) > r.StateVersion,
			}
			if w.EventCount > 0 && len(w.Events) == 0 {
				if len(got.Events) != w.EventCount || got.Events[0].Sequence != w.FirstSequence || got.Events[w.EventCount-1].Sequence != w.LastSequence {
					t.Errorf("after %v: %d events", after, len(got.Events))
				}
				exp.Events = got.Events
			}
			for _, e := range w.Events {
				exp.Events = append(exp.Events, e.event())
			}
			if d := cmp.Diff(exp, got); d != "" {
				t.Errorf("after %v: (-want +got)\n%s", after, d)
			}
		}
		heads := 0
		err := s.Heads(func(h Head) error {
			w := want.Final.Heads[heads]
			heads++
			if (h != Head{w.Key, w.Agent, w.Last, w.Pruned, w.Updated}) {
				t.Errorf("head %+v, want %+v", h, w)
			}
			if v := want.StateVersions[h.AgentID][h.SessionKey]; v != h.Version {
				t.Errorf("version %d, want %d", h.Version, v)
			}
			return nil
		})
		if heads != len(want.Final.Heads) {
			t.Errorf("%d heads, want %d", heads, len(want.Final.Heads))
		}
		return err
	})
	if asked == 0 && len(want.Results) > 0 {
		t.Error("nothing was asked")
	}
}
