package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oc/transcript"
)

// rotated is a transcript's rotation, without its header, and the roles of its context.
func rotated(t interface{ Fatal(...any) }, text string) (lines []string, err error) {
	var tree transcript.Tree
	if err := (&transcript.Scanner{Tree: &tree}).Read(strings.NewReader(text), func(*transcript.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	r, err := Rotate(&tree, transcript.Load(strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := r.Write(&out, []byte(`{"type":"session","version":3,"id":"s"}`)); err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != r.Len()+1 {
		t.Fatal("lines", len(lines), "rows", r.Len())
	}
	return lines, nil
}

func roles(t interface{ Fatal(...any) }, text string) (all []string) {
	var tree transcript.Tree
	if err := (&transcript.Scanner{Tree: &tree}).Read(strings.NewReader(text), func(*transcript.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c, err := tree.Context(transcript.Load(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Messages {
		all = append(all, m.Role)
	}
	return all
}

func TestRotateAsOpenClaw(t *testing.T) {
	lines(t, "rotation.jsonl", func(_ string, line []byte) {
		var c struct {
			Name     string
			Lines    []string
			Expected struct {
				Rotated                          bool
				LeafID                           string
				EntriesWritten                   int
				Lines                            []json.RawMessage
				ContextRoles, ContextRolesBefore []string
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(c.Lines, "\n") + "\n"
		got, err := rotated(t, text)
		if c.Expected.Rotated != (err == nil) || err != nil && !errors.Is(err, ErrNoCompaction) {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if err != nil {
			return
		}
		if len(got) != c.Expected.EntriesWritten+1 || len(got) != len(c.Expected.Lines) {
			t.Fatalf("%s: %d lines:\n%s", c.Name, len(got), strings.Join(got, "\n"))
		}
		for i, want := range c.Expected.Lines[1:] {
			if !equal(t, []byte(got[i+1]), want) {
				t.Errorf("%s:\n got %s\nwant %s", c.Name, got[i+1], want)
			}
		}
		if r := roles(t, text); !reflect.DeepEqual(r, c.Expected.ContextRolesBefore) {
			t.Errorf("%s: before %v, want %v", c.Name, r, c.Expected.ContextRolesBefore)
		}
		if r := roles(t, strings.Join(got, "\n")+"\n"); !reflect.DeepEqual(r, c.Expected.ContextRoles) {
			t.Errorf("%s: after %v, want %v", c.Name, r, c.Expected.ContextRoles)
		}
	})
}

func equal(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// The header names the transcript before it, and keeps its directory and its version.
func TestHeader(t *testing.T) {
	now := time.Date(2026, 1, 6, 1, 2, 3, 456e6, time.UTC)
	for _, c := range []struct{ old, want string }{
		{`{"type":"session","version":3,"id":"o","cwd":"/srv/demo"}`, `{"type":"session","version":3,"id":"n","timestamp":"2026-01-06T01:02:03.456Z","cwd":"/srv/demo","parentSession":"/a/o.jsonl"}`},
		{`{"type":"session","version":2,"id":"o","cwd":"/"}`, `{"type":"session","version":2,"id":"n","timestamp":"2026-01-06T01:02:03.456Z","cwd":"/","parentSession":"/a/o.jsonl"}`},
		{``, `{"type":"session","version":3,"id":"n","timestamp":"2026-01-06T01:02:03.456Z","cwd":"","parentSession":"/a/o.jsonl"}`},
	} {
		if got := string(Header([]byte(c.old), "n", "/a/o.jsonl", now)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.old, got, c.want)
		}
	}
}

// State, signatures, side rows and leaf rows, which the recordings have none of.
func TestRotateRows(t *testing.T) {
	text := strings.Join([]string{
		`{"type":"session","version":3,"id":"s"}`,
		`{"type":"model_change","id":"s1","parentId":null,"provider":"p","modelId":"old"}`,
		`{"type":"model_change","id":"s2","parentId":"s1","provider":"p","modelId":"new"}`,
		`{"type":"message","id":"u1","parentId":"s2","message":{"role":"user","content":"one"}}`,
		`{"type":"message","id":"a1","parentId":"u1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"x"},{"type":"text", "text":"t"}], "stopReason":"stop"}}`,
		`{"type":"custom_message","id":"cm","parentId":"a1","customType":"n","content":"c"}`,
		`{"type":"custom","id":"side","parentId":"cm","appendMode":"side","customType":"n"}`,
		`{"type":"message","id":"u2","parentId":"side","message":{"role":"user","content":"two"}}`,
		`{"type":"message","id":"d1","parentId":"u2","message":{"role":"user","content":"dead"}}`,
		`{"type":"leaf","id":"L","parentId":"d1","targetId":"u2"}`,
		`{"type":"message","id":"a2","parentId":"L","message":{"role":"assistant","content":[{"type":"redacted_thinking","data":"z"},{"type":"thinking","thinking":"k"}]}}`,
		`{"type":"compaction","id":"k","parentId":"a2","summary":"S","firstKeptEntryId":"u2","tokensBefore":9}`,
	}, "\n")
	got, err := rotated(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"model_change","id":"s2","parentId":null,"provider":"p","modelId":"new"}`,
		`{"type":"message","id":"a1","parentId":"s2","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text", "text":"t"}], "stopReason":"stop"}}`,
		`{"type":"custom","id":"side","parentId":"a1","appendMode":"side","customType":"n"}`,
		`{"type":"message","id":"u2","parentId":"a1","message":{"role":"user","content":"two"}}`,
		`{"type":"message","id":"d1","parentId":"u2","message":{"role":"user","content":"dead"}}`,
		`{"type":"message","id":"a2","parentId":"u2","message":{"role":"assistant","content":[{"type":"redacted_thinking"},{"type":"thinking","thinking":"k"}]}}`,
		`{"type":"compaction","id":"k","parentId":"a2","summary":"S","firstKeptEntryId":"a1","tokensBefore":9}`,
	}
	if !reflect.DeepEqual(got[1:], want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got[1:], "\n"), strings.Join(want, "\n"))
	}
	circle := `{"type":"session","version":3,"id":"s"}` + "\n" + `{"type":"message","id":"a","parentId":"b","message":{}}` + "\n" + `{"type":"compaction","id":"b","parentId":"a","summary":"S"}` + "\n"
	if _, err := rotated(t, circle); !errors.Is(err, ErrCircle) {
		t.Errorf("a circle: %v", err)
	}
}

// Whatever a transcript is: its rotation shows the model the same, but for the last answer before what was kept and what was said twice;
// every parent stands in front of its children, and the leaf is the same.
func TestRotateKeepsTheContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := `{"type":"session","version":3,"id":"s"}` + "\n"
		ids := []string{}
		n := rapid.IntRange(2, 25).Draw(t, "rows")
		for i := range n {
			parent := "null"
			if len(ids) > 0 {
				at := len(ids) - 1
				if rapid.IntRange(0, 5).Draw(t, "branches") == 0 {
					at = rapid.IntRange(0, at).Draw(t, "at")
				}
				parent = `"` + ids[at] + `"`
			}
			id := fmt.Sprintf("r%d", i)
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				text += fmt.Sprintf(`{"type":"model_change","id":%q,"parentId":%s,"provider":"p","modelId":"m%d"}`+"\n", id, parent, i)
			case 1:
				text += fmt.Sprintf(`{"type":"custom_message","id":%q,"parentId":%s,"customType":"x","content":"c"}`+"\n", id, parent)
			case 2, 3:
				text += fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":{"role":"user","content":"u%d"}}`+"\n", id, parent, i)
			default:
				text += fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":{"role":"assistant","content":[]}}`+"\n", id, parent)
			}
			ids = append(ids, id)
		}
		kept := ids[rapid.IntRange(0, n-1).Draw(t, "kept")]
		text += fmt.Sprintf(`{"type":"compaction","id":"k","parentId":%q,"summary":"S","firstKeptEntryId":%q}`+"\n", ids[n-1], kept)
		got, err := rotated(t, text)
		if err != nil {
			t.Fatal(err)
		}
		met := map[string]bool{}
		for _, l := range got[1:] {
			e, err := transcript.Parse([]byte(l))
			if err != nil {
				t.Fatal(err)
			}
			if e.Parent.OK() && !met[string(e.Parent.ID)] {
				t.Fatalf("%s stands in front of its parent:\n%s", e.ID, strings.Join(got, "\n"))
			}
			met[string(e.ID)] = true
		}
		if !strings.Contains(got[len(got)-1], `"id":"k"`) {
			t.Fatalf("the leaf is not the last:\n%s", strings.Join(got, "\n"))
		}
		before, after := roles(t, text), roles(t, strings.Join(got, "\n"))
		if len(after) == len(before)+1 && after[1] == "assistant" {
			after = append(after[:1:1], after[2:]...)
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("the model sees %v, not %v:\n%s\n\n%s", after, before, text, strings.Join(got, "\n"))
		}
	})
}
