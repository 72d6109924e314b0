package doctor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"oc/store/row"
)

// behind is how much later than its row a transcript may have been written.
const behind = 3_600_000

// aboutRow compares a transcript with the row that names it.
func (x *exam) aboutRow(j *job) {
	s := j.s
	if s.beside != nil {
		s = s.beside
	}
	if j.key == "" || s.live() == nil {
		return
	}
	r, ok := s.index.Row(j.key)
	if !ok {
		return
	}
	f := Finding{Subject: Subject{Agent: s.Agent, Store: s.path, File: j.path, Byte: -1, Key: j.key, ID: r.ID}}
	if id := j.look.headerID; id != "" && r.ID != "" && !strings.EqualFold(id, r.ID) {
		f.Code, f.Line, f.Evidence = TranscriptOtherID, 1, []string{fmt.Sprintf("the header says %s, the row %s", id, r.ID)}
		x.find(f)
	}
	if ms, ok := r.Stamp(row.UpdatedAt); ok && ms >= 1e12 && j.live == "" && float64(j.look.last) > ms+behind {
		f.Code, f.Line = TranscriptAhead, 0
		f.Evidence = []string{fmt.Sprintf("its last entry is of %s, the row of %s", when(float64(j.look.last)), when(ms))}
		x.find(f)
	}
}

// prefixes looks for transcripts that begin with the same entries: forks, and
// copies under another name.
func (x *exam) prefixes(s *site, jobs []job) {
	same := map[uint64][]*job{}
	for i := range jobs {
		if h := jobs[i].look.first; h != 0 {
			same[h] = append(same[h], &jobs[i])
		}
	}
	for i := range jobs {
		g := same[jobs[i].look.first]
		if len(g) < 2 || g[0] != &jobs[i] {
			continue
		}
		bytes, names := int64(0), []string{}
		for _, j := range g[1:] {
			bytes += common(g[0].path, j.path)
		}
		for _, j := range g[:min(len(g), 5)] {
			names = append(names, filepath.Base(j.path))
		}
		if bytes < 64<<10 && !x.Deep {
			continue // not worth a word
		}
		at := s.at(g[0].path)
		at.Key = g[0].key
		x.find(Finding{Code: SharedPrefix, Subject: at, Evidence: []string{fmt.Sprintf("%d transcripts, %s of copies: %s", len(g), bytesOf(bytes), strings.Join(names, ", "))}})
	}
}

// common is how many bytes of entries two transcripts begin with alike, the
// headers left out.
func common(a, b string) (n int64) {
	fa, err := openFile(a)
	if err != nil {
		return 0
	}
	defer fa.Close()
	fb, err := openFile(b)
	if err != nil {
		return 0
	}
	defer fb.Close()
	ra, rb := bufio.NewReaderSize(fa, 64<<10), bufio.NewReaderSize(fb, 64<<10)
	for skip := true; ; skip = false {
		same, size, err := line(ra, rb)
		if !skip {
			if !same {
				return n
			}
			n += size
		}
		if err != nil {
			return n
		}
	}
}

// line passes one line of each of two files and tells whether they are alike,
// and how long the first one is.
func line(a, b *bufio.Reader) (same bool, size int64, err error) {
	same = true
	doneA, doneB := false, false
	for !doneA || !doneB {
		var pa, pb []byte
		var ea, eb error
		if !doneA {
			pa, ea = a.ReadSlice('\n')
			doneA = !errors.Is(ea, bufio.ErrBufferFull)
		}
		if !doneB {
			pb, eb = b.ReadSlice('\n')
			doneB = !errors.Is(eb, bufio.ErrBufferFull)
		}
		same = same && bytes.Equal(pa, pb)
		size += int64(len(pa))
		for _, e := range []error{ea, eb} {
			if e != nil && !errors.Is(e, bufio.ErrBufferFull) {
				err = e
			}
		}
	}
	if errors.Is(err, io.EOF) && size == 0 {
		same = false
	}
	return same, size, err
}
