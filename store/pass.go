package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"oc/store/agentdb"
	"oc/transcript"
)

// A pass goes over the raw lines of volumes that may hold a needle, on all
// processors. Files are cut into pieces, databases into ranges of windows.
type pass struct {
	needle  *transcript.Needle
	volumes []*Volume
	skip    func(i int) bool           // the rest of a volume is not needed; may be nil
	done    func(bytes, volumes int64) // how far it is; called from several goroutines; may be nil
}

// A taker is what one processor takes from a pass.
type taker interface {
	line(i int, line []byte, at, seq int64) error // of volume i: at a byte of a file, or as a row of a database; else -1
	fail(i int, err error)
	looked(bytes int64)
	fresh() taker // an empty one, for what may prove void
	take(taker)   // adds what such a one has taken
}

// piece is how much of a file one worker takes at a time.
const pieceSize = 32 << 20

// run makes a taker for each processor and lets them take everything. The error
// is that of ctx.
func (p *pass) run(ctx context.Context, start func() taker) ([]taker, error) {
	jobs := p.jobs()
	takers := make([]taker, max(1, min(runtime.GOMAXPROCS(0), len(jobs))))
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for i := range takers {
		takers[i] = start()
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(jobs) {
					return
				}
				jobs[n](ctx, takers[i])
			}
		})
	}
	wg.Wait()
	return takers, ctx.Err()
}

// A job is a part of the work.
type job func(ctx context.Context, t taker)

// jobs cut the work into parts, the largest first.
func (p *pass) jobs() []job {
	type sized struct {
		job
		bytes int64
	}
	var all []sized
	databases := map[string][]int{}
	for i, v := range p.volumes {
		v.order = i
		switch {
		case v.kept == inWindow:
			databases[v.Path] = append(databases[v.Path], i)
		case v.kept == inFile && !v.expand:
			for from := int64(0); from == 0 || from < v.Bytes; from += pieceSize {
				to := from + pieceSize
				if to >= v.Bytes {
					to = toEnd // and what has been added since
				}
				all = append(all, sized{func(_ context.Context, t taker) { p.file(t, i, from, to) }, min(pieceSize, v.Bytes-from)})
			}
		default:
			all = append(all, sized{func(ctx context.Context, t taker) { p.stream(ctx, t, i) }, 8 * v.Bytes})
		}
	}
	for path, at := range databases {
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(p.volumes[a].ID, p.volumes[b].ID) })
		parts := min(len(at), 4*runtime.GOMAXPROCS(0))
		for n := range parts {
			part := at[n*len(at)/parts : (n+1)*len(at)/parts]
			all = append(all, sized{func(ctx context.Context, t taker) { p.database(ctx, t, path, part) }, 1 << 60})
		}
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Compare(b.bytes, a.bytes) })
	jobs := make([]job, len(all))
	for i := range all {
		jobs[i] = all[i].job
	}
	return jobs
}

const toEnd = 1 << 62

func (p *pass) looked(t taker, bytes, volumes int64) {
	t.looked(bytes)
	if p.done != nil {
		p.done(bytes, volumes)
	}
}

func (p *pass) file(t taker, i int, from, to int64) {
	if p.skip != nil && p.skip(i) {
		return
	}
	f, err := p.volumes[i].open()
	if err != nil {
		t.fail(i, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.fail(i, err)
		return
	}
	t.fail(i, p.needle.Sift(f, from, to, func(line []byte, at int64) error { return t.line(i, line, at, -1) }))
	p.looked(t, min(info.Size(), to)-min(info.Size(), from), int64(b2i(to == toEnd)))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *pass) stream(ctx context.Context, t taker, i int) {
	v := p.volumes[i]
	var from io.Reader
	if v.kept == inArchive {
		blob, err := v.blob(ctx)
		if err != nil {
			t.fail(i, err)
			return
		}
		from = bytes.NewReader(blob)
	} else {
		f, err := os.Open(v.Path)
		if err != nil {
			t.fail(i, err)
			return
		}
		defer f.Close()
		from = f
	}
	plain, err := transcript.Decompress(from)
	if err != nil {
		t.fail(i, err)
		return
	}
	defer plain.Close()
	count := &counting{r: plain}
	t.fail(i, p.needle.SiftStream(count, func(line []byte, at int64) error { return t.line(i, line, at, -1) }))
	p.looked(t, count.n, 1)
}

type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// database passes some windows of a database, whose ids follow each other.
func (p *pass) database(ctx context.Context, t taker, path string, part []int) {
	byID := make(map[string]int, len(part))
	for _, i := range part {
		byID[p.volumes[i].ID] = i
	}
	var held taker // what an attempt has taken, until its snapshot is known to hold
	stopped := map[int]bool{}
	size := int64(0)
	err := agentdb.Read(ctx, path, func(db *agentdb.DB) error {
		held, size = t.fresh(), 0
		clear(stopped)
		return db.Sweep(p.volumes[part[0]].ID, p.volumes[part[len(part)-1]].ID, func(id string, e agentdb.Event) error {
			i, ok := byID[id]
			switch {
			case !ok || stopped[i]:
				return nil
			case e.Damage != nil:
				held.fail(i, fmt.Errorf("event %d: %w", e.Seq, e.Damage))
				return nil
			}
			size += int64(len(e.Line)) + 1
			if !p.needle.May(e.Line) {
				return nil
			}
			err := held.line(i, e.Line, -1, e.Seq)
			if errors.Is(err, transcript.ErrStop) {
				stopped[i] = true
				return nil
			}
			return err
		})
	})
	if err != nil {
		t.fail(part[0], err)
		return
	}
	t.take(held)
	p.looked(t, size, int64(len(part)))
}
