package compaction

import (
	"errors"
	"io"
	"slices"

	"oc/store/span"
	"oc/transcript"
)

// A Trimming keeps the first line of a transcript and so many of its last that there are Lines in all, as `sessions compact --max-lines`
// does (spec/transcript.md 7). Blank lines count as none.
type Trimming struct {
	Compacted bool // something goes
	Kept      int  // lines that stay

	rows []row // those that stay
}

// row is a row that stays.
type row struct {
	transcript.Place
	kind      transcript.Kind
	id        string
	changes   []change
	kept      string // firstKeptEntryId; "" for none
	canonical bool
}

type change struct {
	name string
	val  []byte
}

// ErrNoHeader is a transcript that does not begin with the row of a session.
var ErrNoHeader = errors.New("its first line is no header of a session")

// Trim plans to keep n lines, at least 1, of a transcript that read passes row by row, as often as it is called. Links to
// what goes are mended: rows whose parent goes begin the conversation; a leaf whose target goes points at nothing; a compaction whose
// first kept row goes keeps from the first row of its branch that stays.
func Trim(n int, read func(each func(*transcript.Row) error) error) (*Trimming, error) {
	t := &Trimming{}
	count := 0
	header := false
	err := read(func(r *transcript.Row) error {
		if !r.Blank {
			if count++; count == 1 {
				id, ok := span.Text(span.Member(r.Raw, "id"))
				header = r.Err == nil && r.Kind == transcript.Header && ok && id != ""
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if t.Kept = count; count <= n {
		return t, nil
	}
	if !header {
		t.Kept = 0
		return t, ErrNoHeader
	}
	t.Compacted, t.Kept = true, 0
	skip, seen := count-n+1, 0 // of the lines with something on them: the header stays, and what follows from number skip+1 on
	where := map[string]int{}
	var parents []string
	err = read(func(r *transcript.Row) error {
		if r.Blank {
			return nil
		}
		seen++
		if seen > 1 && seen <= skip || r.Err != nil {
			return nil
		}
		x := row{Place: r.Place, kind: r.Kind, id: string(r.ID)}
		parent := ""
		if seen > 1 {
			if r.Parent.OK() {
				parent = string(r.Parent.ID)
			}
			if x.id != "" {
				where[x.id] = len(t.rows)
			}
			if r.Kind == transcript.Compaction && r.FirstKept.OK() {
				x.kept = string(r.FirstKept.ID)
			}
			x.canonical = r.Kind >= transcript.Message && r.Kind <= transcript.SessionInfo
		}
		t.rows, parents = append(t.rows, x), append(parents, parent)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Kept = len(t.rows)
	i := -1
	seen = 0
	null := []byte("null")
	err = read(func(r *transcript.Row) error {
		if i+1 >= len(t.rows) || r.Line != t.rows[i+1].Line {
			return nil
		}
		i++
		if i == 0 {
			return nil
		}
		x := &t.rows[i]
		set := func(name string, val []byte) { x.changes = append(x.changes, change{name, val}) }
		gone := func(ref transcript.Ref) bool { _, ok := where[string(ref.ID)]; return ref.OK() && !ok }
		if gone(r.Parent) {
			set("parentId", null)
		}
		if x.kind == transcript.Leaf {
			switch {
			case gone(r.Target):
				set("targetId", null)
				set("appendParentId", null)
			case gone(r.AppendTo):
				set("appendParentId", span.Quote(nil, string(r.Target.ID)))
			}
		}
		if x.kept != "" {
			// The way from the compaction to its root among what stays.
			first, met := x.id, map[int]bool{i: true}
			found := false
			for at := i; ; {
				next, ok := where[parents[at]]
				if parents[at] == "" || !ok || met[next] {
					break
				}
				met[next] = true
				at = next
				if t.rows[at].canonical {
					first = t.rows[at].id
				}
				found = found || t.rows[at].id == x.kept
			}
			if !found && first != x.kept {
				set("firstKeptEntryId", span.Quote(nil, first))
			}
		}
		return nil
	})
	return t, err
}

// Rows passes the lines that stay to f, in their order: the line as it is numbered in the transcript, and what changes in it, which is nil
// where its bytes stay. An error of f ends it.
func (t *Trimming) Rows(f func(line int, edit func(raw []byte) []byte) error) error {
	for _, x := range t.rows {
		var edit func([]byte) []byte
		if len(x.changes) > 0 {
			edit = func(raw []byte) []byte { return edited(raw, x.changes) }
		}
		if err := f(x.Line, edit); err != nil {
			return err
		}
	}
	return nil
}

// Write writes what stays, read from the transcript once more.
func (t *Trimming) Write(w io.Writer, from io.ReaderAt) error {
	for _, x := range t.rows {
		raw := make([]byte, x.Size)
		if _, err := from.ReadAt(raw, x.Offset); err != nil {
			return err
		}
		if _, err := w.Write(append(edited(raw, x.changes), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// edited is a row with some members changed where they stand, or added at its end.
func edited(raw []byte, changes []change) []byte {
	type at struct {
		from, to int
		val      []byte
	}
	var cuts []at
	for _, c := range changes {
		if old := span.Member(raw, c.name); old != nil {
			from := span.At(raw, old)
			cuts = append(cuts, at{from, from + len(old), c.val})
			continue
		}
		end := len(raw) - 1
		for raw[end] != '}' {
			end--
		}
		cuts = append(cuts, at{end, end, append(append(append([]byte{','}, span.Quote(nil, c.name)...), ':'), c.val...)})
	}
	slices.SortFunc(cuts, func(a, b at) int { return b.from - a.from })
	for _, c := range cuts {
		raw = slices.Concat(raw[:c.from], c.val, raw[c.to:])
	}
	return raw
}
