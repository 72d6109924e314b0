package store

import (
	"os"
	"path/filepath"
	"testing"

	"oc/transcript"
)

// A transcript that got another name between the look at the directory and the search is searched all the same; one that is gone is told.
func TestSearchOfWhatIsRenamedMeanwhile(t *testing.T) {
	const line = `{"type":"message","id":"a","message":{"role":"user","content":"a needle"}}` + "\n"
	for name, c := range map[string]struct {
		listed string
		there  map[string]string
		found  int
	}{
		"deleted":               {"x.jsonl", map[string]string{"x.jsonl.deleted.2026-01-01T00-00-00.000Z": line}, 1},
		"reset":                 {"x.jsonl", map[string]string{"x.jsonl.reset.2026-01-01T00-00-00.000Z": line}, 1},
		"restored":              {"x.jsonl.deleted.2026-01-01T00-00-00.000Z", map[string]string{"x.jsonl": line}, 1},
		"the newest archive":    {"x.jsonl", map[string]string{"x.jsonl.reset.2025-01-01T00-00-00.000Z": "{}\n", "x.jsonl.reset.2026-01-01T00-00-00.000Z": line}, 1},
		"only an older archive": {"x.jsonl", map[string]string{"x.jsonl.reset.2025-01-01T00-00-00.000Z": "{}\n"}, 0},
		"another session":       {"x.jsonl", map[string]string{"xy.jsonl": line, "x.jsonl.zst": line, "x.jsonl.deleted.2026-01-01T00-00-00.000Z.zst": line}, 0},
		"nothing":               {"x.jsonl", nil, 0},
	} {
		dir := t.TempDir()
		for file, text := range c.there {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n, err := transcript.NewNeedle("needle", transcript.SmartCase)
		if err != nil {
			t.Fatal(err)
		}
		q := Search{Needle: n}
		v := &Volume{Conversation: Conversation{ID: "x", Path: filepath.Join(dir, c.listed), Bytes: int64(len(line))}}
		found, err := q.Run(t.Context(), []*Volume{v})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Hits) != c.found || len(found.Failed) != 1-c.found {
			t.Errorf("%s: %d hits, failed: %v", name, len(found.Hits), found.Failed)
		}
	}
}
