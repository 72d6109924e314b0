package doctor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"

	"oc/store/jsonfile"

	"oc/store/span"
	"oc/transcript"
)

// look is what a reading of a transcript leaves for the questions that follow.
type look struct {
	headerID string
	first    uint64 // hash of the first entry behind the header; 0 for none
	last     int64  // time of the last entry that tells one, epoch milliseconds

	users, repeats int
	repeatedBytes  int64
	said           map[uint64]struct{}
	images         int
	imageBytes     int64
	compactions    int // in a row
	mostInARow     int

	role, content []byte // of the last message, raw; they last until the next row
	part          bool   // only the ends are read: nothing is added up

	prompt float64 // of the last answer, since the last compaction
	cost   float64
	priced int
}

var seed = maphash.MakeSeed()

// row takes the next row.
func (l *look) row(r *transcript.Row) {
	if r.Blank || r.Err != nil {
		return
	}
	if r.Kind == transcript.Header {
		if l.headerID == "" {
			l.headerID = string(r.ID)
		}
		return
	}
	if l.first == 0 {
		l.first = maphash.Bytes(seed, r.Raw)
	}
	if at, ok := r.Time(); ok {
		l.last = at
	}
	switch r.Kind {
	case transcript.Compaction:
		l.prompt = 0
		l.compactions++
		l.mostInARow = max(l.mostInARow, l.compactions)
	case transcript.Message:
		l.compactions = 0
		l.message(r)
	}
}

// repeatable is how long a text must be, raw, to be worth a comparison: people
// say "yes" many times.
const repeatable = 24

func (l *look) message(r *transcript.Row) {
	l.role, l.content = nil, nil
	var usage, provider []byte
	if span.KindOf(r.Message) != span.Object {
		return
	}
	span.Each(r.Message, 0, func(key, val []byte) error { //nolint:errcheck // it was parsed before
		switch {
		case span.Is(key, "role"):
			l.role = val
		case span.Is(key, "content"):
			l.content = val
		case span.Is(key, "usage"):
			usage = val
		case span.Is(key, "provider"):
			provider = val
		}
		return nil
	})
	switch string(l.role) {
	case `"assistant"`:
		l.answer(usage, provider)
	case `"user"`:
		l.question(r.Size)
	}
	if !l.part && len(l.content) >= 4<<10 && l.content[0] == '[' && bytes.Contains(l.content, []byte(`"image"`)) {
		l.pictures()
	}
}

// answer keeps what an answer tells of tokens and cost.
func (l *look) answer(usage, provider []byte) {
	if usage == nil || string(provider) == `"openclaw"` { // a copy of what was delivered
		return
	}
	u, ok := transcript.ParseUsage(usage)
	if !ok {
		return
	}
	if size, known := u.PromptSize(); known && size > 0 {
		l.prompt = size
	}
	if u.Cost.Known {
		l.cost, l.priced = l.cost+u.Cost.N, l.priced+1
	}
}

// question compares what a user said with what users said before.
func (l *look) question(size int) {
	if l.part || len(l.content) < repeatable {
		return
	}
	if l.users++; l.said == nil {
		l.said = map[uint64]struct{}{}
	}
	h := maphash.Bytes(seed, l.content)
	if _, again := l.said[h]; again {
		l.repeats++
		l.repeatedBytes += int64(size)
	}
	l.said[h] = struct{}{}
}

// pictures adds up the images in a message.
func (l *look) pictures() {
	span.Items(l.content, 0, func(block []byte) error { //nolint:errcheck // it was parsed before
		if kind, _ := span.Text(span.Member(block, "type")); kind == "image" {
			l.images++
			l.imageBytes += int64(len(span.Member(block, "data")))
		}
		return nil
	})
}

// openFile opens a file for reading and never waits for a pipe.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if what := jsonfile.KindOf(info.Mode()); what != "" {
		return nil, errors.New("it is " + what)
	}
	return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// readWhole reads every line.
func (j *job) readWhole(f *os.File, s *transcript.Scanner) error {
	var tree transcript.Tree
	var pairs []transcript.Finding
	var linked []transcript.Finding
	p := transcript.Pairs{Report: func(f transcript.Finding) { pairs = append(pairs, f) }}
	s.Reset()
	s.Tree, s.Report = &tree, func(f transcript.Finding) {
		if aboutLinks[f.Code] {
			linked = append(linked, f)
			return
		}
		j.line(f)
	}
	rows := 0
	err := s.Read(f, func(r *transcript.Row) error {
		j.look.row(r)
		if !r.Blank && r.Err == nil && r.Kind != transcript.Header {
			rows++
			if r.Kind == transcript.Message {
				j.audit(r)
			}
			if r.Kind == transcript.Message && string(j.look.role) != `"user"` { // which neither calls nor answers
				p.Add(&r.Entry, r.Place)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	branch, loop := tree.Branch()
	straight := !loop && len(branch) == rows && slices.IsSortedFunc(branch, func(a, b transcript.Place) int { return cmp.Compare(a.Offset, b.Offset) })
	if straight {
		p.Check()
	} else if pairs, err = pairsOf(f, branch); err != nil {
		return err
	}
	if st := s.Stats(); st.Entries+st.Bad == 0 { // OpenClaw writes a header into it without a word
		j.findings, j.counts = nil, nil
	}
	j.links(&tree, linked)
	for _, l := range pairs {
		j.line(l)
	}
	j.whole(s.Stats())
	return nil
}

// links notes what is wrong with the links of a tree.
func (j *job) links(tree *transcript.Tree, linked []transcript.Finding) {
	n := tree.Messages()
	lost := map[string]int64{} // rows that are nowhere, and where the first one that hung on each stands
	for _, l := range linked {
		if _, ok := lost[l.Why]; l.Code == transcript.OrphanParent && !ok {
			lost[l.Why] = l.At.Offset
		}
	}
	for _, l := range linked {
		at, told := lost[l.Why]
		unknown := l.Code == transcript.FirstKept && !(told && at < l.At.Offset)
		l.Why = join(l.Why, linkFacts(l, n))
		j.line(l)
		if k := len(j.findings) - 1; unknown && k >= 0 && j.findings[k].Code == Code(transcript.FirstKept) {
			j.findings[k].Remedy, j.findings[k].Command = ByHand, byHandKept
		}
	}
}

// aboutLinks are the findings that say more with the number of messages that
// can be reached.
var aboutLinks = map[transcript.Code]bool{
	transcript.OrphanParent: true, transcript.Cycle: true, transcript.SecondRoot: true, transcript.DeadCompaction: true,
	transcript.DuplicateSame: true, transcript.DuplicateOther: true, transcript.InvalidLeaf: true, transcript.FirstKept: true,
}

func linkFacts(f transcript.Finding, n transcript.Counts) string {
	facts := ""
	if f.Other.Line > 0 {
		facts = fmt.Sprintf("the other one is in line %d", f.Other.Line)
	}
	if n.Active < n.Stored {
		facts = join(facts, fmt.Sprintf("%d of %d messages are on the active branch", n.Active, n.Stored))
	}
	return facts
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// pairsOf checks calls and results over the rows of a branch.
func pairsOf(r io.ReaderAt, branch []transcript.Place) (out []transcript.Finding, err error) {
	load := transcript.Load(r)
	p := transcript.Pairs{Report: func(f transcript.Finding) { out = append(out, f) }}
	for _, at := range branch {
		e, err := load(at)
		if err != nil {
			return nil, err
		}
		p.Add(&e, at)
	}
	p.Check()
	return out, nil
}

// line notes a finding of oc/transcript.
func (j *job) line(f transcript.Finding) {
	out := Finding{Code: Code(f.Code), Subject: Subject{Line: f.At.Line, Byte: f.Byte, ID: j.id, Entry: f.ID}}
	if f.Why != "" {
		out.Evidence = append(out.Evidence, f.Why)
	}
	if f.Other.Line > 0 && !aboutLinks[f.Code] {
		out.Evidence = append(out.Evidence, fmt.Sprintf("the other row is in line %d", f.Other.Line))
	}
	if f.ID != "" {
		out.Evidence = append(out.Evidence, "entry "+f.ID)
	}
	switch {
	case f.Code == transcript.NoHeader:
		out.Evidence = []string{"none of its records is one"}
	case len(out.Evidence) == 0:
		out.Evidence = []string{fmt.Sprintf("%d bytes", f.At.Size)}
	}
	j.note(out)
}

// whole tells what only a whole reading can.
func (j *job) whole(s transcript.Stats) {
	l := &j.look
	l.said, l.role, l.content = nil, nil, nil
	nowhere := Subject{Byte: -1, ID: j.id}
	if s.Longest.Size >= 8<<20 {
		j.note(Finding{Code: LongLine, Subject: Subject{Line: s.Longest.Line, Byte: s.Longest.Offset, ID: j.id}, Evidence: []string{bytesOf(int64(s.Longest.Size))}})
	}
	if l.imageBytes >= 1<<20 {
		j.note(Finding{Code: InlineImages, Subject: nowhere, Evidence: []string{fmt.Sprintf("%d images, %s", l.images, bytesOf(l.imageBytes))}})
	}
	if l.users >= 50 && l.repeats*2 > l.users {
		j.note(Finding{Code: RepeatedMessages, Subject: nowhere, Evidence: []string{fmt.Sprintf("%d of %d messages of users are copies, %s", l.repeats, l.users, bytesOf(l.repeatedBytes))}})
	}
	if l.mostInARow >= 3 {
		j.note(Finding{Code: RepeatedCompaction, Subject: nowhere, Evidence: []string{fmt.Sprintf("%d compactions follow each other", l.mostInARow)}})
	}
}

// How much of the ends of a transcript is read.
const (
	begins = 8 << 10
	ends   = 16 << 10
)

// readEnds reads the first and the last lines.
func (j *job) readEnds(f *os.File, d *desk) error {
	s := &d.Scanner
	j.look.part = true
	head := d.of(begins)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	if nl := bytes.LastIndexByte(head, '\n'); nl >= 0 {
		s.Reset()
		s.Report = j.line
		if err := s.Read(bytes.NewReader(head[:nl+1]), func(r *transcript.Row) error { j.look.row(r); return nil }); err != nil {
			return err
		}
	}
	tail, at, err := j.tail(f, d)
	if err != nil || len(tail) == 0 {
		return err
	}
	s.Reset()
	s.Report = func(l transcript.Finding) {
		switch l.Code {
		case transcript.NoHeader, transcript.CRLF, transcript.OldVersion, transcript.LateHeader:
			return // what is true of the whole file only
		}
		l.At.Line, l.At.Offset, l.Byte = 0, l.At.Offset+at, l.Byte+at
		j.line(l)
	}
	l := look{headerID: "-", first: 1, part: true}
	if err := s.Read(bytes.NewReader(tail), func(r *transcript.Row) error { l.row(r); return nil }); err != nil {
		return err
	}
	j.look.last, j.look.prompt = max(j.look.last, l.last), l.prompt
	j.look.said, j.look.role, j.look.content = nil, nil, nil
	return nil
}

// tail gives the last lines of a file, and where they begin: whole lines, and
// at least the last one that is not of NUL bytes alone. It is empty where that
// one is too long to be looked at here.
func (j *job) tail(f *os.File, d *desk) (tail []byte, at int64, err error) {
	for want := int64(ends); ; want *= 8 {
		at = max(0, j.size-want)
		tail = d.of(j.size - at)
		if _, err := f.ReadAt(tail, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if at == 0 {
			return tail, 0, nil
		}
		nl := bytes.IndexByte(tail, '\n')
		said := bytes.TrimRight(tail, "\x00")
		if late := bytes.LastIndexByte(said[:max(0, len(said)-ends)], '\n'); late >= 0 { // what comes before was only read to find where a long line begins
			nl = late
		}
		rest := said[min(nl+1, len(said)):]
		if nl >= 0 && (len(rest) > 0 || want >= 1<<20) {
			return tail[nl+1:], at + int64(nl) + 1, nil
		}
		if want >= 1<<20 {
			return nil, 0, nil
		}
	}
}
