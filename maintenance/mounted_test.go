package maintenance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/config"
	"oc/store"
	"oc/store/lock"
)

// A transcript behind a link to a disk that is not mounted, or one that cannot be looked at, is not gone: --fix-missing leaves its row.
// One that is simply not there is.
func TestUnmountedIsNotMissing(t *testing.T) {
	dir := t.TempDir()
	text := `{"link": {"sessionId": "aaaa", "updatedAt": 1}, "loop": {"sessionId": "bbbb", "updatedAt": 1}, "gone": {"sessionId": "cccc", "updatedAt": 1}}`
	if err := os.WriteFile(filepath.Join(dir, "sessions.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"aaaa.jsonl": filepath.Join(dir, "volume", "aaaa.jsonl"), "bbbb.jsonl": filepath.Join(dir, "bbbb.jsonl")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: dir, Home: dir, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_790_000_000_000)
	p, _, err := ReadPolicy(c, Orders{FixMissing: true, Named: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Take(t.Context(), c, store.Target{Agent: "main", Index: filepath.Join(dir, "sessions.json")}, p, lock.Local(), now)
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	for _, a := range Make(p, s, now).Actions {
		if a.Kind == DropRow && a.Rule == FixMissing {
			dropped = append(dropped, a.Key)
		}
	}
	if got := strings.Join(dropped, " "); got != "gone" {
		t.Errorf("dropped as missing: %q", got)
	}
}
