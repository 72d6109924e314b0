package maintenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"oc/store/span"
)

// A recipe is a state directory told by ages, as the recorded cases have it.
type recipe struct {
	Config json.RawMessage `json:"config"`
	Stores []struct {
		Path    string            `json:"path"`
		Raw     *string           `json:"raw"`
		Entries []json.RawMessage `json:"entries"`
		Format  string            `json:"format"`
		AgeMs   *float64          `json:"ageMs"`
	} `json:"stores"`
	Files []json.RawMessage `json:"files"`
}

// builder lays a recipe out on disk at a frozen time.
type builder struct {
	t     *testing.T
	state string
	now   int64
}

var placeholder = regexp.MustCompile(`\{\{(NOW|ISO|TS)-(-?\d+)\}\}`)

func (b *builder) sub(s string) string {
	s = strings.ReplaceAll(s, "{{STATE}}", b.state)
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		p := placeholder.FindStringSubmatch(m)
		age, _ := strconv.ParseInt(p[2], 10, 64)
		at := time.UnixMilli(b.now - age)
		switch p[1] {
		case "NOW":
			return strconv.FormatInt(b.now-age, 10)
		case "ISO":
			return at.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return Stamp(at)
	})
}

// deep replaces placeholders in a raw value, {"$ago": ms} by a time.
func (b *builder) deep(raw []byte) []byte {
	switch span.KindOf(raw) {
	case span.String:
		s, _ := span.Text(raw)
		return span.Quote(nil, b.sub(s))
	case span.Array:
		out := []byte{'['}
		span.Items(raw, 0, func(v []byte) error { //nolint:errcheck // recorded
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, b.deep(v)...)
			return nil
		})
		return append(out, ']')
	case span.Object:
		ms := span.Members(raw)
		if len(ms) == 1 && ms[0].Name == "$ago" {
			age, _ := span.Float(ms[0].Val)
			return span.AppendFloat(nil, float64(b.now)-age)
		}
		out := []byte{'{'}
		for i, m := range ms {
			if i > 0 {
				out = append(out, ',')
			}
			out = span.Quote(out, b.sub(m.Name))
			out = append(append(out, ':'), b.deep(m.Val)...)
		}
		return append(out, '}')
	}
	return raw
}

// many expands a row or a file that is told once for several.
func many(t *testing.T, raws []json.RawMessage) (out []json.RawMessage) {
	for _, raw := range raws {
		var r struct {
			Repeat    int      `json:"repeat"`
			AgeMs     *float64 `json:"ageMs"`
			AgeStepMs float64  `json:"ageStepMs"`
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		if r.Repeat == 0 {
			out = append(out, raw)
			continue
		}
		age := 0.0
		if r.AgeMs != nil {
			age = *r.AgeMs
		}
		for i := range r.Repeat {
			text := bytes.ReplaceAll(raw, []byte("{i}"), []byte(strconv.Itoa(i)))
			text = append(bytes.TrimSuffix(bytes.TrimSpace(text), []byte("}")), fmt.Sprintf(`,"ageMs":%s}`, span.AppendFloat(nil, age+float64(i)*r.AgeStepMs))...)
			out = append(out, text)
		}
	}
	return out
}

func (b *builder) path(rel string) string { return filepath.Join(b.state, b.sub(rel)) }

func (b *builder) write(path, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) touch(path string, age *float64) {
	if age == nil {
		return
	}
	at := time.UnixMilli(b.now - int64(*age))
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return // a link keeps the time of its making
	}
	if err := os.Chtimes(path, at, at); err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) build(r *recipe) {
	b.t.Helper()
	if err := os.MkdirAll(b.state, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if r.Config != nil && string(r.Config) != "null" {
		b.write(filepath.Join(b.state, "openclaw.json"), string(b.deep(r.Config)))
	}
	for _, s := range r.Stores {
		text := ""
		if s.Raw != nil {
			text = b.sub(*s.Raw)
		} else {
			text = b.store(many(b.t, s.Entries), s.Format)
		}
		path := b.path(s.Path)
		b.write(path, text)
		age := s.AgeMs
		if age == nil {
			age = new(float64)
			*age = 60000
		}
		b.touch(path, age)
	}
	for _, raw := range many(b.t, r.Files) {
		b.file(raw)
	}
}

func (b *builder) store(entries []json.RawMessage, format string) string {
	type pair struct{ key, val []byte }
	var rows []pair
	for _, raw := range entries {
		key, _ := span.Text(span.Member(raw, "key"))
		val := []byte("{}")
		if v := span.Member(raw, "entry"); v != nil {
			val = b.deep(v)
		}
		if age, ok := span.Float(span.Member(raw, "ageMs")); ok && span.KindOf(val) == span.Object {
			kept := []byte{'{'}
			for _, m := range span.Members(val) {
				if m.Name != "updatedAt" {
					kept = append(append(append(span.Quote(kept, m.Name), ':'), m.Val...), ',')
				}
			}
			val = append(span.AppendFloat(append(kept, `"updatedAt":`...), float64(b.now)-age), '}')
		}
		rows = append(rows, pair{span.Quote(nil, b.sub(key)), val})
	}
	var out []byte
	switch {
	case format == "compact":
		out = append(out, '{')
		for i, r := range rows {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, r.key...), ':'), r.val...)
		}
		return string(append(out, '}'))
	case len(rows) == 0:
		out = append(out, "{}"...)
	default:
		out = append(out, '{')
		for i, r := range rows {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, "\n  "...), r.key...), ": "...)
			out = span.AppendValue(out, r.val, 1)
		}
		out = append(out, "\n}"...)
	}
	if format == "newline" {
		out = append(out, '\n')
	}
	return string(out)
}

func (b *builder) file(raw []byte) {
	b.t.Helper()
	var f struct {
		Path       string   `json:"path"`
		Dir        bool     `json:"dir"`
		SymlinkTo  *string  `json:"symlinkTo"`
		HardlinkTo *string  `json:"hardlinkTo"`
		Content    *string  `json:"content"`
		Size       int      `json:"size"`
		AgeMs      *float64 `json:"ageMs"`
		Transcript *struct {
			ID       string `json:"id"`
			Messages *int   `json:"messages"`
			Pad      *int   `json:"pad"`
		} `json:"transcript"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		b.t.Fatal(err)
	}
	path := b.path(f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	switch {
	case f.Dir:
		if err := os.MkdirAll(path, 0o700); err != nil {
			b.t.Fatal(err)
		}
	case f.SymlinkTo != nil:
		if err := os.Symlink(b.sub(*f.SymlinkTo), path); err != nil {
			b.t.Fatal(err)
		}
	case f.HardlinkTo != nil:
		if err := os.Link(b.path(*f.HardlinkTo), path); err != nil {
			b.t.Fatal(err)
		}
	case f.Transcript != nil:
		messages, pad := 1, 20
		if f.Transcript.Messages != nil {
			messages = *f.Transcript.Messages
		}
		if f.Transcript.Pad != nil {
			pad = *f.Transcript.Pad
		}
		b.write(path, conversationText(f.Transcript.ID, messages, pad))
	case f.Content != nil:
		b.write(path, b.sub(*f.Content))
	default:
		b.write(path, strings.Repeat(".", f.Size))
	}
	b.touch(path, f.AgeMs)
}

// conversationText is a transcript with the bytes that the recorded cases have.
func conversationText(id string, messages, pad int) string {
	var out strings.Builder
	fmt.Fprintf(&out, `{"type":"session","version":3,"id":%s,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp"}`+"\n", asciiJSON(id))
	parent := "null"
	for i := range messages {
		role, n := "user", 20
		if i%2 == 1 {
			role = "assistant"
		}
		if i == 0 {
			n = pad
		}
		fmt.Fprintf(&out, `{"type":"message","id":"m%07d","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"%s","content":[{"type":"text","text":"%s"}]}}`+"\n", i, parent, role, strings.Repeat("x", n))
		parent = fmt.Sprintf(`"m%07d"`, i)
	}
	return out.String()
}

// asciiJSON is a text as the recorder wrote it: in plain ASCII.
func asciiJSON(s string) string {
	out := []byte{'"'}
	for _, u := range utf16.Encode([]rune(s)) {
		if u < 0x80 {
			q, _ := json.Marshal(string(rune(u)))
			out = append(out, q[1:len(q)-1]...)
		} else {
			out = fmt.Appendf(out, "\\u%04x", u)
		}
	}
	return string(append(out, '"'))
}

// plain lists the files below a directory, without links, relative to it.
func plain(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			rel, _ := filepath.Rel(root, path)
			out[rel] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
