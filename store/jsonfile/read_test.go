package jsonfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/row"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadKeepsWhatOpenClawKeeps(t *testing.T) {
	f, err := Read(write(t, `{"b":{"sessionId":"x1"},"2":{},"b":{"sessionId":"x2","label":"l","label":"m"},"__proto__":{"sessionId":"p"},"n":null,"e":{"sessionId":"../evil"},"k":{"sessionId":" pad "},"c":{"sessionId":"a:b"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range f.Entries {
		e := &f.Entries[i]
		label, _ := e.Text(row.Label)
		got = append(got, e.Key+"="+e.ID()+label)
		if string(f.Text[e.At:][:len(e.Val)]) != string(e.Val) {
			t.Errorf("%s: At does not point at its bytes", e.Key)
		}
	}
	if d := cmp.Diff([]string{"2=", "b=x2m", "__proto__=p", "k=pad", "c="}, got); d != "" {
		t.Error(d)
	}
	want := []row.Skipped{{Key: "n", Reason: "the row is no object"}, {Key: "e", Reason: "the session id is not safe as a file name"}}
	if d := cmp.Diff(want, f.Skipped); d != "" {
		t.Error(d)
	}
}

func TestReadNamesTheByteOfDamage(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "byte 0: it is empty",
		"  \n":               "byte 3 of 3: the text ends",
		`{"a":{}`:            "byte 7 of 7: the text ends",
		`[]`:                 `byte 0 of 2: found '[' where an object belongs`,
		`null`:               `byte 0 of 4`,
		`"x"`:                `byte 0 of 3`,
		`{"a":{}} trailing`:  "byte 9 of 17: text goes on",
		"\xef\xbb\xbf{}":     "byte order mark",
		`{"a":{"b":01}}`:     "byte 11 of 14",
		`{a:1}`:              "byte 1 of 5",
		`{"a":{"x":"` + "\n": "byte 11 of 12: a string has the control character 0x0a",
	} {
		path := write(t, text)
		_, err := Read(path)
		var d *row.Damage
		if !errors.As(err, &d) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "a directory") {
		t.Errorf("a directory: %v", err)
	}
	fifo := filepath.Join(dir, "sessions.json")
	if err := mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := Read(fifo); done <- err }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "a pipe") {
			t.Errorf("a pipe: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("reading a pipe hangs")
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing store: %v", err)
	}
}

// A store that is being copied into place is read once it is whole.
func TestReadWaitsForAWriter(t *testing.T) {
	path := write(t, `{"a":{"sessionId":"x`)
	go func() {
		time.Sleep(20 * time.Millisecond)
		os.WriteFile(path, []byte(`{"a":{"sessionId":"x1"}}`), 0o600) //nolint:errcheck // the read below fails then
	}()
	f, err := Read(path)
	if err != nil || len(f.Entries) != 1 || f.Entries[0].ID() != "x1" {
		t.Fatalf("%v %v", f, err)
	}
}

func TestNameOf(t *testing.T) {
	u := "0120a4f9-196a-4f9e-89f5-23f31f914da7"
	at := time.Date(2026, 9, 21, 14, 13, 20, 5e6, time.UTC)
	for name, want := range map[string]Name{
		"sessions.json":                            {Class: Store},
		"sessions.json.bak.123":                    {Class: Archive, Reason: "bak"},
		"sessions.json.bak-1":                      {Class: Other},
		"sessions.json.corrupt-12":                 {Class: Other},
		"sessions.json.77." + u + ".tmp":           {Class: Temp},
		"sessions.json." + u + ".tmp":              {Class: Temp},
		"a.jsonl.compact." + u + ".tmp":            {Class: Temp},
		u + ".jsonl":                               {Class: Live, Session: u},
		u + "-topic-5.jsonl":                       {Class: Live, Session: u},
		"2026-01-02T03-04-05-678Z_" + u + ".jsonl": {Class: Live, Session: u},
		"x.acp-stream.jsonl":                       {Class: Live, Session: "x.acp-stream"},
		"x.checkpoint." + u + ".jsonl":             {Class: Checkpoint},
		"x.checkpoint.nope.jsonl":                  {Class: Live, Session: "x.checkpoint.nope"},
		"x.trajectory.jsonl":                       {Class: Sidecar},
		"x.trajectory-path.json":                   {Class: Sidecar},
		"x.jsonl.lock":                             {Class: Lock},
		"x.jsonl.reset.2026-09-21T14-13-20.005Z":   {Class: Archive, Session: "x", Reason: "reset", At: at},
		"x.jsonl.deleted.2026-09-21T14-13-20Z":     {Class: Archive, Session: "x", Reason: "deleted", At: at.Truncate(time.Second)},
		"x.jsonl.deleted.2026-01-01":               {Class: Other},
		"x.jsonl.deleted.2026-09-21T14-13-20.005Z." + strings.Repeat("a", 32) + ".zst": {Class: Archive, Session: "x", Reason: "deleted", At: at, Zstd: true},
		"notes.txt": {Class: Other},
		".DS_Store": {Class: Other},
	} {
		if d := cmp.Diff(want, NameOf(name, "sessions.json")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestCandidates(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents", "main", "sessions")
	other := filepath.Join(state, "agents", "work", "sessions")
	for _, d := range []string{dir, other} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	u, v := "0120a4f9-196a-4f9e-89f5-23f31f914da7", "1120a4f9-196a-4f9e-89f5-23f31f914da8"
	p := Place{Store: filepath.Join(dir, "sessions.json"), Agent: "main", State: state}
	byID := func(id string) Candidate { return Candidate{Path: filepath.Join(dir, id+".jsonl"), How: ByID} }
	for raw, want := range map[string][]Candidate{
		`{"sessionId":"a"}`:                                                   {byID("a")},
		`{"sessionId":"a","sessionFile":"sub/b.jsonl"}`:                       {{Path: filepath.Join(dir, "sub/b.jsonl"), How: ByFile}, byID("a")},
		`{"sessionId":"a","sessionFile":"../x.jsonl"}`:                        {byID("a")},
		`{"sessionId":"a","sessionFile":"/etc/passwd"}`:                       {byID("a")},
		`{"sessionId":"a","sessionFile":"` + other + `/c.jsonl"}`:             {{Path: filepath.Join(other, "c.jsonl"), How: ByFile}, byID("a")},
		`{"sessionId":"a","sessionFile":"/old/agents/main/sessions/a.jsonl"}`: {{Path: "/old/agents/main/sessions/a.jsonl", How: ByFile}, byID("a")},
		`{"sessionId":"` + u + `","sessionFile":"` + v + `.jsonl"}`:           {byID(u), {Path: filepath.Join(dir, v+".jsonl"), How: ByStale}},
		`{"sessionId":"a:b","sessionFile":"k.jsonl"}`:                         {{Path: filepath.Join(dir, "k.jsonl"), How: ByFile}},
		`{}`: nil,
	} {
		e, err := row.New("k", []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, p.Candidates(&e)); d != "" {
			t.Errorf("%s: %s", raw, d)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{500, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "sessions.json")
			prompt := strings.Repeat(`A line of a prompt, about as long as they are.\n`, 60)
			var text strings.Builder
			text.WriteString("{")
			for i := range n {
				if i > 0 {
					text.WriteString(",")
				}
				fmt.Fprintf(&text, "\n  \"agent:main:telegram:direct:%d\": {\n    \"sessionId\": \"s-%d\",\n    \"updatedAt\": %d,\n    \"model\": \"gpt-5.4\",\n    \"totalTokens\": %d,\n    \"skillsSnapshot\": {\n      \"prompt\": \"%s\",\n      \"skills\": []\n    }\n  }", i, i, 1790000000000+int64(i), i, prompt)
			}
			text.WriteString("\n}")
			if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				f, err := Read(path)
				if err != nil || len(f.Entries) != n {
					b.Fatal(len(f.Entries), err)
				}
			}
		})
	}
}
