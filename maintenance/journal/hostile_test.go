package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// forged makes a finished run and lets the test rewrite its manifest.
func forged(t testing.TB, change func(manifest string, outside string) string) (j *Journal, id, outside string) {
	t.Helper()
	top := scratch(t)
	base := filepath.Join(top, "state")
	outside = filepath.Join(top, "outside")
	plan := scene(t, base)
	put(t, filepath.Join(outside, "precious"), "precious\n", 0o600, time.Hour)
	j = open(t, base, nil)
	r, err := j.Apply(bg, plan())
	if err != nil {
		t.Fatal(err)
	}
	path := j.manifest(r.ID)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(b), outside)), 0o600); err != nil {
		t.Fatal(err)
	}
	return j, r.ID, outside
}

func TestHostileManifests(t *testing.T) {
	in := func(old, new string) func(string, string) string {
		return func(m, outside string) string {
			if !strings.Contains(m, old) {
				t.Fatalf("no %q in %s", old, m)
			}
			return strings.ReplaceAll(m, old, strings.ReplaceAll(new, "OUTSIDE", outside))
		}
	}
	whole := func(s string) func(string, string) string { return func(string, string) string { return s } }
	for name, change := range map[string]func(string, string) string{
		"a path outside":           in("agents/main/sessions/c.jsonl", "OUTSIDE/precious"),
		"a path upwards":           in("/sessions/c.jsonl", "/sessions/../../../../outside/precious"),
		"a path out of it":         in("agents/main/sessions/c.jsonl", "../outside/precious"),
		"a path that is not clean": in("agents/main/sessions/c.jsonl", "./agents/main/sessions/c.jsonl"),
		"a path of oc's":           in("agents/main/sessions/c.jsonl", ".oc/lock"),
		"a path with NUL":          in("/sessions/c.jsonl", `/sessions/c\u0000.jsonl`),
		"a bad coded path":         in(`"agents/main/sessions/c.jsonl`, `"\u0000!!`),
		"a coded path out of it":   in(`"path":"agents/main/sessions/c.jsonl"`, `"path":"\u0000Li4veA=="`),
		"a move outside":           in(`"to":"agents`, `"to":"OUTSIDE/agents`),
		"a temp outside":           in(`"temp":"agents`, `"temp":"OUTSIDE/agents`),
		"a temp that is a file":    in(".tmp\"", "\""),
		"a vault outside":          in(`"dir":".oc`, `"dir":"OUTSIDE/.oc`),
		"a vault of another":       in(`/undo/`, `/undo/x`),
		"a vault not there":        in(`"vault":0`, `"vault":7`),
		"a negative vault":         in(`"vault":0`, `"vault":-1`),
		"a folder outside":         in(`"folders":[{"path":"`, `"folders":[{"path":"/etc"},{"path":"`),
		"two steps for a file":     in("/empty.jsonl\"", "/c.jsonl\""),
		"an unknown kind":          in(`"kind":"remove"`, `"kind":"run"`),
		"an unknown phase":         in(`"phase":2`, `"phase":9`),
		"an unknown version":       in(`{"version":1`, `{"version":2`),
		"no version":               in(`{"version":1,`, `{`),
		"an unknown state":         in(`"state":"done"`, `"state":"great"`),
		"another id":               in(`"id":"2`, `"id":"3`),
		"too many steps":           in(`"total":10`, `"total":3`),
		"cut off":                  func(m, _ string) string { return m[:len(m)/2] },
		"cut off at the end":       func(m, _ string) string { return m[:len(m)-3] },
		"something after":          func(m, _ string) string { return m + "{}" },
		"empty":                    whole(""),
		"a list":                   whole("[]"),
		"no steps":                 whole(`{"version":1}`),
		"deep":                     whole(`{"x":` + strings.Repeat("[", 200000)),
		"text":                     whole("hello"),
		"a bad step":               in(`"phase":2`, `"phase":"x"`),
		"steps of text":            func(m, _ string) string { return m[:strings.Index(m, `"steps":`)] + `"steps":"x"}` },
	} {
		j, id, outside := forged(t, change)
		before := tree(t, filepath.Dir(outside))
		_, err := j.Load(id)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), id+".json") {
			t.Errorf("%s: load: %v", name, err)
		}
		if _, _, err := j.Undo(bg, id, UndoOptions{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: undo: %v", name, err)
		}
		if _, err := j.Expire(bg, id); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: expire: %v", name, err)
		}
		if _, _, err := j.ExpireOlder(bg, 0); err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: expire the old: %v", name, err)
		}
		if d := diff(tree(t, filepath.Dir(outside)), before); d != "" {
			t.Errorf("%s: something was touched:\n%s", name, d)
		}
		if runs, errs := j.List(); len(runs)+len(errs) != 1 {
			t.Errorf("%s: list: %v %v", name, runs, errs)
		}
		// Another run is not kept from its work by that one.
		if r, err := j.Apply(bg, Plan{Steps: []Step{{Kind: Create, Path: filepath.Join(j.base, "agents/new")}}}); err != nil || r.State != Done {
			t.Errorf("%s: a new run: %v", name, err)
		}
	}
}

// Places of oc's that are links, belong to others or are open to them.
func TestHostilePlaces(t *testing.T) {
	for name, change := range map[string]func(base, outside, id string) error{
		"a linked .oc":       func(b, out, _ string) error { return swapForLink(filepath.Join(b, own), out) },
		"linked runs":        func(b, out, _ string) error { return swapForLink(filepath.Join(b, own, "runs"), out) },
		"a linked undo":      func(b, out, _ string) error { return swapForLink(filepath.Join(b, own, "undo"), out) },
		"a linked vault":     func(b, out, id string) error { return swapForLink(filepath.Join(b, own, "undo", id), out) },
		"a linked manifest":  func(b, out, id string) error { return swapForLink(filepath.Join(b, own, "runs", id+".json"), out) },
		"an open manifest":   func(b, _, id string) error { return os.Chmod(filepath.Join(b, own, "runs", id+".json"), 0o666) },
		"an open .oc":        func(b, _, _ string) error { return os.Chmod(filepath.Join(b, own), 0o777) },
		"another's manifest": func(b, _, id string) error { return os.Chown(filepath.Join(b, own, "runs", id+".json"), 4242, 4242) },
		"another's vault":    func(b, _, id string) error { return os.Chown(filepath.Join(b, own, "undo", id), 4242, 4242) },
		"a linked directory": func(b, out, _ string) error { return swapForLink(filepath.Join(b, "agents/main"), out) },
		"a pipe": func(b, _, id string) error {
			p := filepath.Join(b, own, "runs", id+".json")
			return errors.Join(os.Remove(p), mkfifo(p))
		},
	} {
		j, id, outside := forged(t, func(m, _ string) string { return m })
		if err := change(j.base, filepath.Join(outside, "moved"), id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := tree(t, outside)
		r, outcomes, err := j.Undo(bg, id, UndoOptions{})
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: undo: %v %v", name, err, outcomes)
		}
		if name != "a linked directory" { // there the saved bytes are as they should be
			if _, err := j.Expire(bg, id); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: expire: %v", name, err)
			}
			if r != nil && r.Back > 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if d := diff(tree(t, outside), before); d != "" {
			t.Errorf("%s: something outside was touched:\n%s", name, d)
		}
	}
}

// swapForLink moves what is at path away and leaves a link to it, as if it had been there always.
func swapForLink(path, away string) error {
	return errors.Join(os.Rename(path, away), os.Symlink(away, path))
}

func TestPlansThatLeaveTheirPlace(t *testing.T) {
	top := scratch(t)
	base := filepath.Join(top, "state")
	put(t, filepath.Join(base, "d/f"), "x", 0o600, time.Hour)
	put(t, filepath.Join(top, "outside/f"), "x", 0o600, time.Hour)
	if err := errors.Join(os.Symlink("../outside", filepath.Join(base, "way")), mkfifo(filepath.Join(base, "pipe")), os.Symlink("d/f", filepath.Join(base, "ln"))); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(base, name) }
	for name, steps := range map[string][]Step{
		"outside":         {{Kind: Remove, Path: filepath.Join(top, "outside/f")}},
		"the root":        {{Kind: RemoveDir, Path: base}},
		"relative":        {{Kind: Remove, Path: "d/f"}},
		"not clean":       {{Kind: Remove, Path: base + "/d/../d/f"}},
		"a move out":      {{Kind: Move, Path: in("d/f"), To: filepath.Join(top, "outside/g")}},
		"a move nowhere":  {{Kind: Move, Path: in("d/f")}},
		"a to too many":   {{Kind: Remove, Path: in("d/f"), To: in("d/g")}},
		"through a link":  {{Kind: Remove, Path: in("way/f")}},
		"into a link":     {{Kind: Create, Path: in("way/g")}},
		"a linked store":  {{Kind: Replace, Path: in("ln")}},
		"chmod of a link": {{Kind: Chmod, Path: in("ln"), Mode: 0o600}},
		"a pipe":          {{Kind: Remove, Path: in("pipe")}},
		"a directory":     {{Kind: Remove, Path: in("d")}},
		"oc's own":        {{Kind: Create, Path: in(".oc/x")}},
		"oc's own, loud":  {{Kind: Create, Path: in("d/.OC/x")}},
		"twice":           {{Kind: Remove, Path: in("d/f")}, {Kind: Chmod, Path: in("d/f")}},
		"no kind":         {{Path: in("d/f")}},
		"a strange mode":  {{Kind: Chmod, Path: in("d/f"), Mode: os.ModeDir}},
	} {
		before := tree(t, top)
		r, err := open(t, base, nil).Apply(bg, Plan{Steps: steps})
		if !errors.Is(err, ErrRefused) || r.ID != "" {
			t.Errorf("%s: %v %+v", name, err, r)
		}
		if d := diff(tree(t, top), before); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, s := range map[string]Step{
		"create over":         {Kind: Create, Path: in("d/f")},
		"create nowhere":      {Kind: Create, Path: in("no/f")},
		"move over":           {Kind: Move, Path: in("d/f"), To: in("ln")},
		"move nowhere":        {Kind: Move, Path: in("d/f"), To: in("no/f")},
		"remove what is not":  {Kind: Remove, Path: in("d/none")},
		"replace what is not": {Kind: Replace, Path: in("none/none")},
		"remove no directory": {Kind: RemoveDir, Path: in("none")},
	} {
		if _, err := open(t, base, nil).Apply(bg, Plan{Steps: []Step{s}}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []Options{{Base: "rel"}, {Base: ""}, {Base: "/a/../b"}, {Base: "/a", Roots: []string{"b"}}} {
		if _, err := Open(o); err == nil {
			t.Errorf("opened %+v", o)
		}
	}
}

// A manifest keeps every name, and comes back as it was written.
func TestManifestRoundTrip(t *testing.T) {
	r := Run{
		Version: version, ID: "20261130-120000-0000abcd", State: Done, Created: -5, Roots: []string{"/a \xff\u2028<b>"},
		Facts:  json.RawMessage(`{"lone":"\ud800","html":"<&>"}`),
		Vaults: []Vault{{Dir: "/a \xff/.oc/undo/x", Dev: 3, Bytes: 7}}, Folders: []FolderTimes{{Path: "/a\xfe", Before: 1, After: 2}},
		Steps: []Step{{
			Kind: Move, Phase: Clear, Path: "/a/\xc3\x28", To: "/a/ü\n\"", Temp: "/a/\x80.tmp", Payload: json.RawMessage(`[1e400]`),
			Before: Stamp{Type: Link, Target: []byte("\xff"), MTime: -1, Ino: 1 << 63, UID: -1},
		}},
	}
	r.count()
	var b, again bytes.Buffer
	if err := r.encode(&b, ""); err != nil {
		t.Fatal(err)
	}
	got, err := decode(bytes.NewReader(b.Bytes()), true, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := got.encode(&again, ""); err != nil {
		t.Fatal(err)
	}
	if b.String() != again.String() || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", r) {
		t.Errorf("have %+v\nwant %+v\n%s", *got, r, b.String())
	}
	head, err := decode(bytes.NewReader(b.Bytes()), false, "")
	if err != nil || head.Steps != nil || head.Roots[0] != r.Roots[0] || string(head.Facts) != string(r.Facts) {
		t.Errorf("header: %v %+v", err, head)
	}
}

func FuzzManifest(f *testing.F) {
	var b bytes.Buffer
	r := Run{Version: version, ID: "20261130-120000-0000abcd", State: Applying, Steps: []Step{{Kind: Remove, Path: "/x/y", Old: &Saved{}}}, Vaults: []Vault{{Dir: "/x/.oc/undo/20261130-120000-0000abcd"}}}
	r.count()
	if err := r.encode(&b, ""); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{b.String(), "", "{", `{"version":1,"steps":[`, `{"steps":[],"version":1}`, `{"version":1,"state":"done","total":1,"steps":[{"path":"\u0000AA=="}]}`, `[]`} {
		f.Add([]byte(seed))
	}
	j, err := Open(Options{Base: "/x", FS: &Faults{FS: OS()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decode(bytes.NewReader(raw), true, "")
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%v", err)
			}
			return
		}
		if j.checkManifest(r) != nil {
			return
		}
		for _, s := range r.Steps {
			for _, path := range []string{s.Path, s.final(), s.Path} {
				if !under(path, "/x") || strings.Contains(path, "..") && filepath.Clean(path) != path {
					t.Errorf("%q leads outside", path)
				}
			}
			if s.Temp != "" && !under(s.tempIn(s.Path), "/x") {
				t.Errorf("%q leads outside", s.Temp)
			}
		}
		var b bytes.Buffer
		if err := r.encode(&b, ""); err != nil {
			t.Error(err)
		}
		if _, err := decode(bytes.NewReader(b.Bytes()), true, ""); err != nil {
			t.Errorf("it does not come back: %v", err)
		}
	})
}
