package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/fixtures"
	"oc/gateway"
	"oc/store"
	"oc/store/lock"
)

// now is the moment at which the made states stand.
var now = time.UnixMilli(fixtures.Now)

// examine looks at every agent of a state, whose gateway is not there.
func examine(t *testing.T, state string, change ...func(*Options)) *Report {
	t.Helper()
	before := tree(t, state)
	r := examined(t, state, change...)
	if d := cmp.Diff(before, tree(t, state)); d != "" {
		t.Errorf("looking changed the state:\n%s", d)
	}
	return r
}

// examined is examine without the proof that nothing was changed.
func examined(t *testing.T, state string, change ...func(*Options)) *Report {
	t.Helper()
	c, err := config.Load(config.Options{StateDir: state, Cwd: t.TempDir(), Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{All: true})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: c, Targets: append(targets, store.StrangerTargets(c)...), State: true, Deep: true,
		Machine: lock.Local(), Owner: gateway.Ownership{Life: gateway.None}, Now: now,
	}
	for _, f := range change {
		f(&o)
	}
	r, err := Examine(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if len(f.Evidence) == 0 || f.Consequence == "" || f.Remedy == "" || f.Severity == "" {
			t.Errorf("%s says too little: %+v", f.Code, f)
		}
		if (f.Command == "") != (f.Remedy == None) {
			t.Errorf("%s: remedy %s and command %q", f.Code, f.Remedy, f.Command)
		}
	}
	return r
}

// tree is all that can be seen of a directory without opening pipes.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a directory that cannot be read is one of the tests
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			b, _ := os.ReadFile(path)
			text = string(b)
		}
		lines = append(lines, strings.Join([]string{path, info.Mode().String(), info.ModTime().String(), text}, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// found are the findings with a code.
func found(r *Report, code Code) (out []Finding) {
	for _, f := range r.Findings {
		if f.Code == code {
			out = append(out, f)
		}
	}
	return out
}

// one is the one finding with a code.
func one(t *testing.T, r *Report, code Code) Finding {
	t.Helper()
	all := found(r, code)
	if len(all) != 1 {
		t.Fatalf("%d findings %s, want 1; there are %v", len(all), code, codes(r))
	}
	return all[0]
}

// codes are the codes of a report with their number.
func codes(r *Report) map[Code]int {
	out := map[Code]int{}
	for _, f := range r.Findings {
		out[f.Code] += 1 + f.More
	}
	return out
}

// only are the codes of a report without notes.
func worse(r *Report) map[Code]int {
	out := map[Code]int{}
	for _, f := range r.Findings {
		if f.Severity != Info {
			out[f.Code] += 1 + f.More
		}
	}
	return out
}

func says(t *testing.T, f Finding, words ...string) {
	t.Helper()
	text := strings.Join(f.Evidence, "; ")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q: %s", f.Code, w, text)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Codes are unique, written alike, and each says what it finds.
func TestChecks(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Checks() {
		if seen[c.Code] || c.Code == "" || string(c.Code) != strings.Trim(strings.ToLower(string(c.Code)), "-") {
			t.Errorf("code %q: twice, or odd", c.Code)
		}
		seen[c.Code] = true
		if c.Says == "" || strings.HasSuffix(c.Says, ".") || !strings.HasSuffix(c.Matters, ".") {
			t.Errorf("%s: says %q, matters %q", c.Code, c.Says, c.Matters)
		}
		if !slices.Contains([]Severity{Error, Warn, Info}, c.Severity) || !slices.Contains([]Remedy{Safe, Preview, ByHand, None}, c.Remedy) {
			t.Errorf("%s: severity %q, remedy %q", c.Code, c.Severity, c.Remedy)
		}
		if (c.Remedy == None) != (c.Command == "") {
			t.Errorf("%s: remedy %s and command %q", c.Code, c.Remedy, c.Command)
		}
	}
	if _, err := Select("locks,config-note"); err != nil {
		t.Error(err)
	}
	if _, err := Select("lock-dear"); err == nil {
		t.Error("a code that is none was taken")
	}
}
