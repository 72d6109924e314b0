package compaction

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

// A Rotation is the transcript that follows one whose active branch was compacted, as truncateAfterCompaction makes it
// (spec/transcript.md 1.11, release 2026.7.35): without the messages that the summary stands for, but for the last answer among them and
// its results; without state that a later row sets again, labels of what goes, and what a user said twice within a minute. Other branches
// stay. The row of the active leaf stands last. Of a transcript in a database only the active branch goes on: the others stay where they are, since
// rows would hang on another one there behind a reset.
type Rotation struct {
	Beside []int // rows of the active branch, by number, that stay though the summary stands for them

	rows   []turned
	load   func(transcript.Place) (transcript.Entry, error)
	marker transcript.Place // of the compaction
	first  []byte           // what it keeps from now; nil where that is as before
}

// turned is a row that stays.
type turned struct {
	transcript.Place
	parent []byte // its id; nil for a root
	bare   bool   // signatures of its thoughts go
}

// What cannot be rotated: a conversation that no summary stands in, and one without a beginning.
var (
	ErrNoCompaction = errors.New("its active branch has no compaction")
	ErrCircle       = errors.New("the rows of its active branch go in a circle")
)

// Rotate plans the rotation of a transcript, all rows of which are in the tree; load reads one of them. It keeps about 100 bytes a row.
func Rotate(tree *transcript.Tree, load func(transcript.Place) (transcript.Entry, error)) (*Rotation, error) {
	rows, branch := tree.Links()
	seen := tree.Seen()
	switch {
	case seen.Loop:
		return nil, ErrCircle
	case seen.Boundary < 0 || seen.Kinds[seen.Boundary] != transcript.Compaction:
		return nil, ErrNoCompaction
	}
	r := &Rotation{load: load, marker: seen.Branch[seen.Boundary]}
	x := rotating{Rotation: r, tree: tree, rows: rows, branch: branch, gone: make([]bool, len(rows)), bare: make([]bool, len(rows)), boundary: seen.Boundary, kept: seen.From, answer: -1}
	for _, step := range []func() error{x.summarised, x.state, x.twice, x.labels} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if tree.Rules == transcript.DatabaseRules {
		x.alone()
	}
	x.firstKept()
	x.order()
	return r, nil
}

// Len is how many rows are written, without the header.
func (r *Rotation) Len() int { return len(r.rows) }

// Write writes a header and the rows behind it, line by line.
func (r *Rotation) Write(w io.Writer, header []byte) error {
	if _, err := w.Write(append(slices.Clone(header), '\n')); err != nil {
		return err
	}
	for i := range r.rows {
		x := &r.rows[i]
		e, err := r.load(x.Place)
		if err != nil {
			return err
		}
		var changes []change
		switch {
		case x.parent == nil && !e.Parent.Null():
			changes = append(changes, change{"parentId", []byte("null")})
		case x.parent != nil && !bytes.Equal(e.Parent.ID, x.parent):
			changes = append(changes, change{"parentId", span.Quote(nil, string(x.parent))})
		}
		if x.Place == r.marker && r.first != nil {
			changes = append(changes, change{"firstKeptEntryId", span.Quote(nil, string(r.first))})
		}
		if bare := unsigned(e.Message); x.bare && bare != nil {
			changes = append(changes, change{"message", bare})
		}
		raw := e.Raw
		if changes != nil {
			raw = edited(slices.Clone(raw), changes)
		}
		if _, err := w.Write(append(raw[:len(raw):len(raw)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

// rotating is a Rotation in the making.
type rotating struct {
	*Rotation
	tree           *transcript.Tree
	rows           []transcript.Link
	branch         []int32
	gone           []bool // by row
	bare           []bool
	boundary, kept int // on the branch: the compaction, and the first row that it keeps
	answer         int // the last answer that it does not
}

// summarised drops what the summary stands for.
func (x *rotating) summarised() error {
	marker, err := x.load(x.marker)
	if err != nil {
		return err
	}
	if !marker.FirstKept.OK() || !bytes.Equal(marker.FirstKept.ID, marker.ID) { // else not even the last answer stays
		if err := x.lastAnswer(); err != nil {
			return err
		}
	}
	for i, row := range x.branch[:x.kept] {
		switch x.rows[row].Kind {
		case transcript.Message:
			x.gone[row] = !x.bare[row]
		case transcript.CustomMessage, transcript.BranchSummary:
			x.gone[row] = i > x.answer
		case transcript.Reset:
			x.gone[row] = x.tree.Rules == transcript.DatabaseRules
		}
	}
	for _, row := range x.branch[x.kept:x.boundary] {
		x.bare[row] = true
	}
	return nil
}

// alone drops all rows that are not on the active branch.
func (x *rotating) alone() {
	on := make([]bool, len(x.rows))
	for _, row := range x.branch {
		on[row] = true
	}
	for i := range x.gone {
		x.gone[i] = x.gone[i] || !on[i]
	}
}

// lastAnswer keeps the last answer before what is kept, and its results. What was said before a reset is over.
func (x *rotating) lastAnswer() error {
	var calls []transcript.Call
	for i := x.kept - 1; i >= 0 && x.answer < 0; i-- {
		row := x.branch[i]
		if x.rows[row].Kind == transcript.Reset && x.tree.Rules == transcript.DatabaseRules {
			break
		}
		if x.rows[row].Kind != transcript.Message {
			continue
		}
		e, err := x.load(x.rows[row].Place)
		if err != nil {
			return err
		}
		if transcript.Role(e.Message) == "assistant" {
			x.answer, x.first, x.bare[row] = i, x.rows[row].ID, true
			x.Beside = append(x.Beside, i)
			calls = transcript.Calls(e.Message)
		}
	}
	for i := x.answer + 1; i < x.kept && len(calls) > 0; i++ {
		row := x.branch[i]
		if x.rows[row].Kind != transcript.Message {
			continue
		}
		e, err := x.load(x.rows[row].Place)
		if err != nil {
			return err
		}
		id := transcript.ResultID(e.Message)
		if transcript.Role(e.Message) == "toolResult" && slices.ContainsFunc(calls, func(c transcript.Call) bool { return c.ID != "" && c.ID == id }) {
			x.bare[row] = true
			x.Beside = append(x.Beside, i)
		}
	}
	return nil
}

// state drops what a later row before the compaction sets again.
func (x *rotating) state() error {
	set := map[transcript.Kind]bool{}
	for _, row := range slices.Backward(x.branch[:x.boundary]) {
		switch k := x.rows[row].Kind; k {
		case transcript.ModelChange, transcript.ThinkingChange, transcript.SessionInfo:
			x.gone[row] = set[k]
			set[k] = true
		}
	}
	return nil
}

// twice drops what a user said a second time, before the compaction or after it.
func (x *rotating) twice() error {
	for _, part := range [][]int32{x.branch[x.kept:x.boundary], x.branch[x.boundary+1:]} {
		said := map[string]float64{}
		for _, row := range part {
			if x.rows[row].Kind != transcript.Message {
				continue
			}
			e, err := x.load(x.rows[row].Place)
			if err != nil {
				return err
			}
			what, at := repeatable(e.Message)
			if what == "" {
				continue
			}
			if before, ok := said[what]; ok && at-before <= float64(time.Minute/time.Millisecond) {
				x.gone[row] = true
			}
			said[what] = at
		}
	}
	return nil
}

// leastRepeat is how long what is said twice must be, in UTF-16 units: a "yes" may well be meant twice.
const leastRepeat = 24

// repeatable is what a user says in a message, and when; "" where saying it again counts.
func repeatable(message []byte) (what string, at float64) {
	at, ok := span.Float(span.Member(message, "timestamp"))
	content := span.Member(message, "content")
	if !ok || transcript.Role(message) != "user" || transcript.ImageTokens(message) > 0 {
		return "", 0
	}
	text := plain(message, "\n", "text")
	if k := span.KindOf(content); k != span.String && k != span.Array {
		return "", 0
	}
	if text = strings.Join(visible.Fields(text), " "); visible.Units(text) < leastRepeat {
		return "", 0
	}
	sender, _ := span.Text(span.Path(message, "__openclaw", "senderId"))
	return sender + "\x00" + span.Lower(norm.NFC.String(text)), at
}

// firstKept mends a compaction that keeps from a row of state which goes: OpenClaw leaves it, and the model then sees nothing of what was
// kept.
func (x *rotating) firstKept() {
	if x.first != nil || x.kept == x.boundary || !x.gone[x.branch[x.kept]] {
		return
	}
	for _, row := range x.branch[x.kept:x.boundary] {
		if !x.gone[row] {
			x.first = x.rows[row].ID
			return
		}
	}
}

// labels drops those of rows that go.
func (x *rotating) labels() error {
	for i := range x.rows {
		if x.rows[i].Kind != transcript.Label {
			continue
		}
		e, err := x.load(x.rows[i].Place)
		if err != nil {
			return err
		}
		at, known := x.tree.Find(string(e.Target.ID))
		target, found := slices.BinarySearchFunc(x.rows, at.Offset, func(l transcript.Link, offset int64) int { return cmp.Compare(l.Offset, offset) })
		x.gone[i] = x.gone[i] || known && found && x.gone[target]
	}
	return nil
}

// order puts what stays behind what it hangs on: other branches in the order of the file, and the active one last.
func (x *rotating) order() {
	n := len(x.rows)
	active, next, child := make([]bool, n), make([]int32, n), make([]int32, n+1) // of each row and, at n, of the roots
	for _, row := range x.branch {
		active[row] = true
	}
	parent := make([]int32, n)
	for i := range child {
		child[i] = -1
	}
	for i := range x.rows {
		p := x.rows[i].Parent
		for steps := 0; p >= 0 && x.gone[p]; steps++ {
			if p = x.rows[p].Parent; steps > n {
				p = -1
			}
		}
		parent[i] = p
		if p < 0 {
			p = int32(n)
		}
		if !x.gone[i] {
			next[i], child[p] = child[p], int32(i)
		}
	}
	out := make([]bool, n)
	var stack []int32
	below := func(p int32) {
		for i := child[p]; i >= 0; i = next[i] {
			if active[i] {
				stack = append(stack, i) // comes last
			}
		}
		for i := child[p]; i >= 0; i = next[i] {
			if !active[i] {
				stack = append(stack, i)
			}
		}
	}
	emit := func() {
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if out[i] {
				continue
			}
			out[i] = true
			t := turned{Place: x.rows[i].Place, bare: x.bare[i]}
			if p := parent[i]; p >= 0 {
				t.parent = x.rows[p].ID
			}
			x.Rotation.rows = append(x.Rotation.rows, t)
			below(i)
		}
	}
	below(int32(n))
	emit()
	// Rows that go in a circle hang on no root. They come first: the active leaf must stay the last.
	rooted := x.Rotation.rows
	x.Rotation.rows = nil
	for i := range x.rows {
		if !out[i] && !x.gone[i] {
			stack = append(stack, int32(i))
			emit()
		}
	}
	x.Rotation.rows = append(x.Rotation.rows, rooted...)
}

// unsigned is a raw message without the signatures of its thoughts, which hold only in front of what they were made for; nil where it has none.
func unsigned(message []byte) []byte {
	content := span.Member(message, "content")
	if span.KindOf(content) != span.Array || transcript.Role(message) != "assistant" {
		return nil
	}
	var out []byte
	signed := false
	_, err := span.Items(content, 0, func(block []byte) error {
		switch kind, _ := span.Text(span.Member(block, "type")); kind {
		case "redacted_thinking":
			block = without(block, "data", &signed)
			fallthrough
		case "thinking":
			for _, name := range []string{"thinkingSignature", "signature", "thought_signature"} {
				block = without(block, name, &signed)
			}
		}
		out = append(append(out, ','), block...)
		return nil
	})
	if err != nil || !signed {
		return nil
	}
	return edited(slices.Clone(message), []change{{"content", append(append([]byte{'['}, out[1:]...), ']')}})
}

// without is a raw object without a member.
func without(obj []byte, name string, was *bool) []byte {
	if span.Member(obj, name) == nil {
		return obj
	}
	*was = true
	out := []byte{'{'}
	_, _ = span.Each(obj, 0, func(key, val []byte) error {
		if !span.Is(key, name) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, key...), ':'), val...)
		}
		return nil
	})
	return append(out, '}')
}

// Header is the header of a transcript that begins behind another: old is the raw header of that, which may be nil, and parent its path, or its id in
// a database.
func Header(old []byte, id, parent string, now time.Time) []byte {
	version := span.Member(old, "version")
	if version == nil {
		version = []byte("3")
	}
	cwd, _ := span.Text(span.Member(old, "cwd"))
	return fmt.Appendf(nil, `{"type":"session","version":%s,"id":%s,"timestamp":"%s","cwd":%s,"parentSession":%s}`,
		version, span.Quote(nil, id), now.UTC().Format("2006-01-02T15:04:05.000Z"), span.Quote(nil, cwd), span.Quote(nil, parent))
}
