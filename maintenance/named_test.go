package maintenance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which files a row that stays keeps where its sessionFile, its id and what it
// refers to do not agree (spec/maintenance.md 2.8, 2.10; random stores held
// against release 2026.7.35).
func TestNamed(t *testing.T) {
	old := int64(60 * day)
	text := strings.Repeat("skill ", 200)
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	prompt := fmt.Sprintf(`{"path":"%sskills-prompts/sha256/%s/%s.txt","ageMs":%d,"content":%q}`, sessions, hash[:2], hash, old, text)
	skills := func(version, bytes int) string {
		return fmt.Sprintf(`"sessionId":"s1","skillsSnapshot":{"promptRef":{"version":%d,"algorithm":"sha256","hash":%q,"bytes":%d}}`, version, hash, bytes)
	}
	for name, c := range map[string]struct {
		row   string
		files []string
		want  []string
	}{
		"another agent's file: the pointer beside its own id is nobody's, the transcript stays": {
			`"sessionId":"s1","sessionFile":"{{STATE}}/agents/work/sessions/s1.jsonl"`,
			[]string{talk("s1.jsonl", old), sized("s1.trajectory-path.json", old, 9), sized("s1.trajectory.jsonl", old, 9)},
			[]string{"remove unlinked s1.trajectory-path.json", "remove unlinked s1.trajectory.jsonl"},
		},
		"a row that goes takes what lies beside its file in a folder along": {
			`"sessionId":"s1","updatedAt":1,"sessionFile":"sub/s1.jsonl"`,
			[]string{talk("sub/s1.jsonl", old), sized("sub/s1.trajectory-path.json", 2500, 9), sized("sub/s1.trajectory.jsonl", 2500, 9), sized("sub/other.trajectory.jsonl", old, 9)},
			[]string{"drop-row stale agent:main:x", "move stale s1.jsonl", "remove stale s1.trajectory-path.json", "remove stale s1.trajectory.jsonl"},
		},
		"and one that stays keeps it": {
			`"sessionId":"s1","sessionFile":"sub/s1.jsonl"`,
			[]string{talk("sub/s1.jsonl", old), sized("sub/s1.trajectory.jsonl", old, 9)},
			nil,
		},
		"its own file keeps what lies beside it": {
			`"sessionId":"s1"`, []string{talk("s1.jsonl", old), sized("s1.trajectory-path.json", old, 9)}, nil,
		},
		"a file without an id names what it says": {
			`"sessionFile":"custom.jsonl"`, []string{talk("custom.jsonl", old)}, nil,
		},
		"a prompt's file that the row refers to":             {skills(1, len(text)), []string{prompt}, nil},
		"a reference with another size is none to OpenClaw":  {skills(1, len(text)-1), []string{prompt}, []string{"remove unlinked " + hash + ".txt"}},
		"and so is one of a version that it does not know":   {skills(2, len(text)), []string{prompt}, []string{"remove unlinked " + hash + ".txt"}},
		"a time in seconds makes no row old":                 {`"sessionId":"s1","updatedAt":1780000000`, nil, []string{"stays unknown-age agent:main:x"}},
		"a millisecond after 1970 is old, as with OpenClaw":  {`"sessionId":"s1","updatedAt":1`, nil, []string{"drop-row stale agent:main:x"}},
		"and so is a time that OpenClaw could not read as 0": {`"sessionId":"s1","updatedAt":0`, nil, []string{"drop-row stale agent:main:x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte("{" + c.row + "}")) {
				t.Fatal(c.row)
			}
			e := entry("agent:main:x", 60_000, c.row)
			if strings.Contains(c.row, "updatedAt") {
				e = fmt.Sprintf(`{"key":"agent:main:x","entry":{%s}}`, c.row)
			}
			plan, _ := lay(t, state("", []string{e}, c.files...), Orders{})
			if d := cmp.Diff(c.want, told(plan)); d != "" {
				t.Error(d)
			}
		})
	}
}
