package store

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"oc/transcript"
)

// A Search looks for a needle in the volumes of a corpus.
type Search struct {
	Needle *transcript.Needle
	Since  int64                      // only what was written from then on, epoch ms; 0: whenever
	Limit  int                        // how many hits to keep, the newest ones; 0: all
	First  bool                       // one hit of a volume will do
	Both   bool                       // what only the other era holds is a hit too; else it is counted
	Done   func(bytes, volumes int64) // how far it is; called from several goroutines; may be nil
}

// A Hit is an entry that holds the needle, counted once for all its copies.
type Hit struct {
	Volume *Volume // where it was found; the best of its copies
	At     int64   // when it was written, epoch ms; 0 where that is not known
	ID     string  // of the entry; "" for none
	Role   string
	Part   string // see transcript.Passage; "damaged" for a line that is not JSON
	Byte   int64  // where the line begins, in what the file holds; -1 in a database
	Seq    int64  // its number in a database; -1 in a file
	Snip   transcript.Snip

	hash uint64
}

// Found is what a search has found.
type Found struct {
	Hits    []Hit // the newest first, those without a time last
	Total   int   // all, also those that Limit cut off
	Copies  int   // further copies of them
	Untimed int   // left out because Since was asked for and they have no time
	Volumes map[*Volume]bool
	Other   int // entries that hold the needle in the era that OpenClaw does not read, and there alone; hits if Both
	Others  map[*Volume]bool
	Bytes   int64 // that were looked at
	Failed  []error
	Unread  map[*Volume]bool // those that could not be read to their end
}

// Run searches the volumes on all processors. An error is that of ctx; what
// could not be read is in Found.
func (q *Search) Run(ctx context.Context, volumes []*Volume) (*Found, error) {
	all := &searching{Search: q, seed: maphash.MakeSeed(), volumes: volumes, found: make([]atomic.Bool, len(volumes))}
	p := pass{needle: q.Needle, volumes: volumes, done: q.Done}
	if q.First {
		p.skip = func(i int) bool { return all.found[i].Load() }
	}
	takers, err := p.run(ctx, all.start)
	if err != nil {
		return nil, err
	}
	return q.merge(takers), nil
}

// merge puts together what the workers have found.
func (q *Search) merge(takers []taker) *Found {
	all := &Found{Volumes: map[*Volume]bool{}, Others: map[*Volume]bool{}, Unread: map[*Volume]bool{}}
	best := top{limit: q.Limit, at: map[uint64]int{}}
	seen, others, lines := map[uint64]bool{}, map[uint64]bool{}, 0
	for _, x := range takers {
		w := x.(*searcher)
		all.Bytes += w.f.Bytes
		all.Untimed += w.f.Untimed
		all.Failed = append(all.Failed, w.f.Failed...)
		lines += w.lines
		for v := range w.f.Volumes {
			all.Volumes[v] = true
		}
		for v := range w.f.Unread {
			all.Unread[v] = true
		}
		for v := range w.f.Others {
			all.Others[v] = true
		}
		for h := range w.seen {
			seen[h] = true
		}
		for h := range w.others {
			others[h] = true
		}
		for _, h := range w.top.hits {
			best.add(h)
		}
	}
	for h := range others {
		if !seen[h] {
			all.Other++
		}
	}
	if q.Both {
		all.Total = all.Other
		maps.Copy(all.Volumes, all.Others)
	}
	all.Hits, all.Total = best.hits, all.Total+len(seen)
	all.Copies = lines - all.Total
	slices.SortStableFunc(all.Hits, func(a, b Hit) int { return newest(&a, &b) })
	slices.SortFunc(all.Failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return all
}

// newest orders hits: by time, then by volume and place.
func newest(a, b *Hit) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Volume.order, b.Volume.order), cmp.Compare(b.Byte, a.Byte), cmp.Compare(b.Seq, a.Seq))
}

// searching is what the workers share.
type searching struct {
	*Search
	seed    maphash.Seed
	volumes []*Volume
	found   []atomic.Bool // by volume, for First
}

// A searcher is one worker.
type searcher struct {
	*searching
	top    top
	seen   map[uint64]bool
	others map[uint64]bool // of the era that OpenClaw does not read
	lines  int             // that hold the needle, copies included
	f      Found
}

func (s *searching) start() taker {
	return &searcher{
		searching: s, top: top{limit: s.Limit, at: map[uint64]int{}}, seen: map[uint64]bool{}, others: map[uint64]bool{},
		f: Found{Volumes: map[*Volume]bool{}, Others: map[*Volume]bool{}, Unread: map[*Volume]bool{}},
	}
}

func (w *searcher) fresh() taker { return w.start() }

func (w *searcher) looked(bytes int64) { w.f.Bytes += bytes }

// take adds what another searcher has found.
func (w *searcher) take(x taker) {
	o := x.(*searcher)
	w.lines += o.lines
	w.f.Untimed += o.f.Untimed
	w.f.Failed = append(w.f.Failed, o.f.Failed...)
	for v := range o.f.Volumes {
		w.f.Volumes[v] = true
	}
	maps.Copy(w.f.Others, o.f.Others)
	for v := range o.f.Unread {
		w.f.Unread[v] = true
	}
	for h := range o.seen {
		w.seen[h] = true
	}
	maps.Copy(w.others, o.others)
	for _, h := range o.top.hits {
		w.top.add(h)
	}
}

func (w *searcher) fail(i int, err error) {
	if err == nil || errors.Is(err, transcript.ErrStop) || errors.Is(err, context.Canceled) {
		return
	}
	v := w.volumes[i]
	w.f.Unread[v] = true
	w.f.Failed = append(w.f.Failed, fmt.Errorf("search %s: %w", &v.Conversation, err))
}

var bom = []byte{0xef, 0xbb, 0xbf}

// line looks at a line that may hold the needle.
func (w *searcher) line(i int, line []byte, at, seq int64) error {
	v := w.volumes[i]
	if at == 0 {
		line = bytes.TrimPrefix(line, bom)
	}
	h := Hit{Volume: v, Byte: at, Seq: seq}
	e, err := transcript.Parse(line)
	ok := false
	if err == nil {
		ok = w.Needle.Holds(&e)
	} else if len(line) > 0 { // a broken line is searched as it is written
		_, _, ok = w.Needle.Find(string(line))
	}
	if !ok {
		return nil
	}
	if h.At, ok = e.Time(); ok && h.At < 0 {
		h.At = 0
	}
	if w.Since > 0 && h.At < w.Since {
		if h.At == 0 && (w.Both || !v.Beside()) {
			w.f.Untimed++
		}
		return nil
	}
	h.hash = identity(w.seed, &e, line)
	if v.Beside() {
		w.others[h.hash], w.f.Others[v] = true, true
	} else {
		w.seen[h.hash], w.f.Volumes[v] = true, true
	}
	shown := w.Both || !v.Beside()
	if shown {
		w.lines++
	}
	if shown && w.top.wants(&h) {
		var p transcript.Passage
		var start, end int
		if err == nil {
			p, start, end, _ = w.Needle.In(&e)
		} else {
			p = transcript.Passage{Part: "damaged", Text: string(line)}
			start, end, _ = w.Needle.Find(p.Text)
		}
		h.ID, h.Role, h.Part = string(e.ID), p.Role, p.Part
		h.Snip = w.Needle.Cut(p.Text, start, end)
		w.top.add(h)
	}
	if w.First {
		w.found[i].Store(true)
		return transcript.ErrStop
	}
	return nil
}

// identity is the same for copies of one entry. Ids alone are too short to tell
// a million entries apart, so the time counts too.
func identity(seed maphash.Seed, e *transcript.Entry, line []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if e.ID == nil || e.Stamp == nil {
		h.Write(line) //nolint:errcheck // never fails
		return h.Sum64()
	}
	h.Write(e.ID)    //nolint:errcheck // never fails
	h.WriteByte(0)   //nolint:errcheck // never fails
	h.Write(e.Stamp) //nolint:errcheck // never fails
	return h.Sum64()
}

// top keeps the newest hits, one of each entry.
type top struct {
	limit int
	hits  []Hit          // a heap, the oldest first
	at    map[uint64]int // where the hit of an entry is
}

func (t *top) wants(h *Hit) bool {
	if i, ok := t.at[h.hash]; ok {
		return newest(h, &t.hits[i]) < 0
	}
	return t.limit == 0 || len(t.hits) < t.limit || newest(h, &t.hits[0]) < 0
}

func (t *top) add(h Hit) {
	if !t.wants(&h) {
		return
	}
	if i, ok := t.at[h.hash]; ok {
		t.hits[i] = h
		heap.Fix(t, i)
		return
	}
	heap.Push(t, h)
	if t.limit > 0 && len(t.hits) > t.limit {
		heap.Pop(t)
	}
}

// Len, Less, Swap, Push and Pop make it a heap.
func (t *top) Len() int           { return len(t.hits) }
func (t *top) Less(i, j int) bool { return newest(&t.hits[i], &t.hits[j]) > 0 }
func (t *top) Swap(i, j int) {
	t.hits[i], t.hits[j] = t.hits[j], t.hits[i]
	t.at[t.hits[i].hash], t.at[t.hits[j].hash] = i, j
}

func (t *top) Push(x any) {
	h := x.(Hit)
	t.at[h.hash] = len(t.hits)
	t.hits = append(t.hits, h)
}

func (t *top) Pop() any {
	h := t.hits[len(t.hits)-1]
	t.hits = t.hits[:len(t.hits)-1]
	delete(t.at, h.hash)
	return h
}
