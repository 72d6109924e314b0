package maintenance

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/maintenance/journal"
	"oc/store/lock"
)

// Store and transcript belong together: where the transcript cannot be replaced, the store is as it was, and where the store cannot be
// written, the transcript is.
func TestShortenIsWholeOrNothing(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000)
	cfg, target, folder := household(t)
	path := filepath.Join(folder, "sessions", liveID+".jsonl")
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, folder)
	w := &Worker{Config: cfg, Machine: lock.Local(), Now: func() time.Time { return at }, FS: quick{journal.OS()}}
	broken := errors.New("the summary cannot be written")
	how := Shortening{Path: path, Info: info, Content: func(io.Writer) error { return broken }, Summary: true}
	plan := func(s *Snapshot) (*Plan, error) { return Shorten(s, "agent:ops:a", how, at) }
	if _, err := w.Apply(t.Context(), target, Alone(), plan); !errors.Is(err, broken) {
		t.Errorf("content that fails: %v", err)
	}
	if now := contents(t, folder); len(now) != len(before) || now["/sessions/sessions.json"] != before["/sessions/sessions.json"] {
		t.Errorf("after that: %v", now)
	}
	// A transcript that was written since is not replaced.
	how.Content = func(w io.Writer) error { _, err := io.WriteString(w, "new\n"); return err }
	if err := os.WriteFile(path, []byte("{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(t.Context(), target, Alone(), plan); !errors.Is(err, journal.ErrChanged) {
		t.Errorf("written since: %v", err)
	}
}

// What the row says afterwards, and what is refused.
func TestShorten(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000)
	for _, c := range []struct {
		name string
		how  Shortening
		has  []string
		not  []string
	}{
		{"a summary", Shortening{Summary: true, Tokens: 70, Known: true}, []string{`"compactionCount": 5`, `"totalTokens": 70`, `"totalTokensFresh": true`}, []string{"inputTokens", "outputTokens", "cacheRead", "cacheWrite", "contextBudgetStatus"}},
		{"a summary of unknown size", Shortening{Summary: true}, []string{`"compactionCount": 5`, `"totalTokens": 9`, `"totalTokensFresh": false`}, []string{"inputTokens"}},
		{"lines", Shortening{}, []string{`"compactionCount": 4`, `"cacheRead": 3`}, []string{"inputTokens", "outputTokens", "totalTokens", "totalTokensFresh", "contextBudgetStatus"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, target, folder := household(t)
			row := `{"agent:ops:a": {"sessionId": "` + liveID + `", "updatedAt": 5, "compactionCount": 4, "totalTokens": 9, "totalTokensFresh": true, "inputTokens": 1, "outputTokens": 2, "cacheRead": 3, "cacheWrite": 4, "contextBudgetStatus": {}}}`
			if err := os.WriteFile(target.Index, []byte(row), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, "sessions", liveID+".jsonl")
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			c.how.Path, c.how.Info = path, info
			c.how.Content = func(w io.Writer) error { _, err := io.WriteString(w, "new\n"); return err }
			w := &Worker{Config: cfg, Machine: lock.Local(), Now: func() time.Time { return at }, FS: quick{journal.OS()}}
			if _, err := w.Apply(t.Context(), target, Alone(), func(s *Snapshot) (*Plan, error) { return Shorten(s, "agent:ops:a", c.how, at) }); err != nil {
				t.Fatal(err)
			}
			now := contents(t, folder)
			text := now["/sessions/sessions.json"]
			for _, want := range append(c.has, `"updatedAt": 1790000000000`) {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not in %s", want, text)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, `"`+not+`"`) {
					t.Errorf("%s is in %s", not, text)
				}
			}
			if now["/sessions/"+liveID+".jsonl"] != "new\n" || now["/sessions/"+liveID+".jsonl.bak.2026-09-21T14-13-20.000Z"] != "{}\n" {
				t.Errorf("files: %v", now)
			}
		})
	}
	for name, row := range map[string]string{
		"archived":       `"archivedAt": 7`,
		"another's too":  `"x": 1}, "agent:ops:z": {"sessionId": "` + liveID + `"`,
		"names another":  `"sessionFile": "b.jsonl"`,
		"is a link":      `"link": 1`,
		"has no session": ``,
	} {
		cfg, target, folder := household(t)
		path := filepath.Join(folder, "sessions", liveID+".jsonl")
		text := `{"agent:ops:a": {"sessionId": "` + liveID + `", ` + row + `}}`
		if row == "" {
			text = `{"agent:ops:b": {"sessionId": "` + liveID + `"}}`
		}
		if err := os.WriteFile(target.Index, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "is a link" {
			if err := errors.Join(os.Rename(path, path+".x"), os.Symlink(path+".x", path)); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Take(t.Context(), cfg, target, Alone(), lock.Local(), at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Shorten(s, "agent:ops:a", Shortening{Path: path, Info: info}, at)
		var denied *Denied
		var none *NoRow
		if !errors.As(err, &denied) && !(row == "" && errors.As(err, &none)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
