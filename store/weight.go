package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"oc/store/span"
	"oc/transcript"
)

// A Share is a part of the space: bytes, and how many things they are.
type Share struct {
	Name  string
	Bytes int64
	Count int
}

// A Weight says where the space of sessions goes. All bytes are those of JSON,
// before compression and without the pages of a database.
type Weight struct {
	Fields   []Share // of rows, by the name of the field
	Sources  []Share // of transcripts, by what they are: current, reset, deleted, unlinked ...
	Contents []Share // of transcripts, by content: text, thinking, calls, results, images ...
	Media    []Share // inline, by type
	Repeated Share   // entries that another transcript has too, the first of each left out
	Forked   Share   // of them, those that sessions in use share: prefixes of forks
	Longest  []Line
	Bytes    int64 // of all transcripts
	Failed   []error
	Unread   map[*Volume]bool
}

// A Line is a long line of a transcript.
type Line struct {
	Volume *Volume
	Byte   int64 // where it begins; -1 in a database
	Seq    int64
	Size   int
}

const longestLines = 5

// Weigh reads all volumes and adds up what is in them, and the rows of stores
// that are wanted. An error is that of ctx.
func Weigh(ctx context.Context, volumes []*Volume, stores []*Sessions, wanted func(*Row) bool, done func(bytes, volumes int64)) (*Weight, error) {
	all := &weighing{seed: maphash.MakeSeed(), volumes: volumes}
	p := pass{needle: transcript.Everything(), volumes: volumes, done: done}
	takers, err := p.run(ctx, func() taker { return all.start() })
	if err != nil {
		return nil, err
	}
	sum := all.start()
	for _, t := range takers {
		sum.take(t)
		sum.bytes += t.(*scales).bytes
	}
	w := &Weight{
		Fields: fieldShares(stores, wanted), Sources: sum.sources.list(), Contents: sum.contents.list(), Media: sum.media.list(), Bytes: sum.bytes, Failed: sum.failed, Unread: sum.unread,
		Longest: sum.longest,
	}
	slices.SortFunc(w.Failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	slices.SortFunc(sum.entries, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.order, b.order))
	})
	for i := 1; i < len(sum.entries); i++ {
		e, before := &sum.entries[i], &sum.entries[i-1]
		if e.hash != before.hash {
			continue
		}
		w.Repeated.Bytes, w.Repeated.Count = w.Repeated.Bytes+int64(e.size), w.Repeated.Count+1
		if volumes[e.order].rank == rankCurrent && e.order != before.order {
			w.Forked.Bytes, w.Forked.Count = w.Forked.Bytes+int64(e.size), w.Forked.Count+1
		}
	}
	return w, nil
}

type weighing struct {
	seed    maphash.Seed
	volumes []*Volume
}

// A weighed entry: 16 bytes a row.
type weighed struct {
	hash        uint64
	order, size int32
}

type shares map[string]*Share

func (s shares) add(name string, bytes int64, n int) {
	x := s[name]
	if x == nil {
		x = &Share{Name: name}
		s[name] = x
	}
	x.Bytes, x.Count = x.Bytes+bytes, x.Count+n
}

func (s shares) list() (all []Share) {
	for _, x := range s {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	return all
}

// scales are one worker of a weighing.
type scales struct {
	*weighing
	entries                  []weighed
	sources, contents, media shares
	longest                  []Line
	bytes                    int64
	failed                   []error
	unread                   map[*Volume]bool
}

func (w *weighing) start() *scales {
	return &scales{weighing: w, sources: shares{}, contents: shares{}, media: shares{}, unread: map[*Volume]bool{}}
}

func (w *scales) fresh() taker       { return w.start() }
func (w *scales) looked(bytes int64) { w.bytes += bytes }

func (w *scales) take(x taker) {
	o := x.(*scales)
	w.entries, w.failed = append(w.entries, o.entries...), append(w.failed, o.failed...)
	for _, pair := range [][2]shares{{w.sources, o.sources}, {w.contents, o.contents}, {w.media, o.media}} {
		for name, s := range pair[1] {
			pair[0].add(name, s.Bytes, s.Count)
		}
	}
	for v := range o.unread {
		w.unread[v] = true
	}
	for _, l := range o.longest {
		w.long(l)
	}
}

func (w *scales) long(l Line) {
	w.longest = append(w.longest, l)
	slices.SortFunc(w.longest, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Volume.order, b.Volume.order), cmp.Compare(a.Byte, b.Byte), cmp.Compare(a.Seq, b.Seq))
	})
	w.longest = w.longest[:min(len(w.longest), longestLines)]
}

func (w *scales) fail(i int, err error) {
	if err == nil || errors.Is(err, transcript.ErrStop) || errors.Is(err, context.Canceled) {
		return
	}
	w.unread[w.volumes[i]] = true
	w.failed = append(w.failed, fmt.Errorf("weigh %s: %w", &w.volumes[i].Conversation, err))
}

func (w *scales) line(i int, line []byte, at, seq int64) error {
	if at == 0 {
		line = bytes.TrimPrefix(line, bom)
	}
	v, size := w.volumes[i], int64(len(line))+1
	w.sources.add(v.Reason, size, 1)
	if l := (Line{v, at, seq, len(line)}); len(w.longest) < longestLines || l.Size > w.longest[len(w.longest)-1].Size {
		w.long(l)
	}
	e, err := transcript.Parse(line)
	if err != nil {
		w.contents.add("no JSON", size, 1)
		return nil //nolint:nilerr // it is told as such
	}
	w.entries = append(w.entries, weighed{identity(w.seed, &e, line), int32(i), int32(min(size, 1<<31-1))})
	if e.Kind != transcript.Message {
		name := e.Kind.String()
		if name == "" {
			name = "other entries"
		}
		w.contents.add(name, size, 1)
		return nil
	}
	rest := size
	take := func(name string, raw []byte) {
		rest -= int64(len(raw))
		w.contents.add(name, int64(len(raw)), 1)
	}
	part := "text"
	if transcript.Role(e.Message) == "toolResult" {
		part = "result"
	}
	_, _ = span.Each(e.Message, 0, func(key, val []byte) error {
		switch {
		case span.Is(key, "content") && span.KindOf(val) == span.Array:
			_, _ = span.Items(val, 0, func(block []byte) error {
				kind, _ := span.Text(span.Member(block, "type"))
				switch kind {
				case "text", "output_text", "input_text", "":
					take(part, block)
				case "thinking", "redacted_thinking":
					take("thinking", block)
				case "toolCall", "toolUse", "functionCall", "tool_call", "tool_use", "function_call":
					take("call", block)
				case "image":
					take("image", block)
					w.inline(block)
				default:
					take("other blocks", block)
				}
				return nil
			})
		case span.Is(key, "content"), span.Is(key, "text"):
			take(part, val)
		case span.Is(key, "details"):
			take("details", val)
		case span.Is(key, "usage"):
			take("usage", val)
		case span.Is(key, "output"), span.Is(key, "command"):
			take("shell", val)
		}
		return nil
	})
	w.contents.add("frame", rest, 1) // ids, times and names around it
	return nil
}

// inline counts the data of an image.
func (w *scales) inline(block []byte) {
	data, kind := span.Member(block, "data"), span.Member(block, "mimeType")
	if data == nil {
		data, kind = span.Path(block, "source", "data"), span.Path(block, "source", "media_type")
	}
	if span.KindOf(data) != span.String {
		return
	}
	name, _ := span.Text(kind)
	if name == "" {
		name = "image of an unknown type"
	}
	w.media.add(name, int64(len(data)), 1)
}

// fieldShares add up the rows of stores that are wanted, by field.
func fieldShares(stores []*Sessions, wanted func(*Row) bool) []Share {
	all := shares{}
	for _, s := range stores {
		for i := range s.Rows {
			r := &s.Rows[i]
			if !wanted(r) {
				continue
			}
			rest := r.Bytes()
			for _, m := range r.Members() {
				n := int64(len(m.Val) + len(m.Name) + 3)
				all.add(m.Name, n, 1)
				rest -= n
			}
			if rest > 0 && s.Era == SQLiteEra {
				all.add("left in the database", rest, 1) // what a listing does not read
			}
		}
	}
	return all.list()
}
