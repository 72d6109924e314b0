package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"oc/store/span"
	"oc/transcript"
	"oc/transcript/compaction"
	"oc/transcript/provider"
	"oc/transcript/visible"
)

// A Shortening is a compaction of a conversation in the making: what is summarised, what is kept, and then the summary. It follows
// spec/transcript.md 3.2 to 3.7 (release 2026.7.35), with oc's own words, and with one summary for a turn that is cut in two.
type Shortening struct {
	*Fill
	compaction.Cut
	Hard bool // nothing is kept beside the summary

	Chunks []compaction.Span // what a provider gets at once: rows of the branch
	parts  [][]compaction.Span

	Summary string
	By      provider.Provider // who wrote it last; nil where there was nothing to ask about
	Notes   []string          // what went wrong on the way, or was mended

	tokens         int // of the summary
	beside         int // of what stays though it is summarised
	failed         int // providers
	first          string
	files, changed []string // that tools read, and changed
}

// A Short conversation needs no compaction, or none is possible; Why says which, and Stuck that it is too large all the same.
type Short struct {
	Why   string
	Stuck bool
}

func (s *Short) Error() string { return s.Why }

// ErrOldVersion is a transcript whose rows have no ids.
var ErrOldVersion = errors.New("its rows have no ids; OpenClaw brings it up to date when it opens the session")

// Shorten cuts the conversation so that about keep tokens of its end stay, none of them where keep is 0. window and share say how much
// a provider gets at once. The error is a *Short or ErrOldVersion.
func (f *Fill) Shorten(keep, window int) (*Shortening, error) {
	if f.version < 2 && f.Of.Rules == transcript.FileRules {
		return nil, ErrOldVersion
	}
	x := &Shortening{Fill: f, Hard: keep <= 0}
	var ok bool
	if x.Hard {
		x.Cut, ok = compaction.Whole(f.Branch, f.Last, f.Kept)
	} else {
		x.Cut, ok = compaction.Find(f.Branch, f.Last, f.Kept, keep)
	}
	switch {
	case len(f.Branch) == 0:
		return nil, &Short{Why: "nothing was said in it"}
	case !ok:
		return nil, &Short{Why: "it ends with a compaction already"}
	}
	messages, at := make([]compaction.Message, 0, x.Keep-x.From), make([]int, 0, x.Keep-x.From)
	for i := x.From; i < x.Keep; i++ {
		if speaks(f.Branch[i]) {
			messages, at = append(messages, compaction.Message{Role: f.Branch[i].Role, Tokens: int(f.Branch[i].Tokens)}), append(at, i)
		}
	}
	if len(messages) == 0 {
		n := x.kept()
		if x.Hard || n <= keep {
			return nil, &Short{Why: fmt.Sprintf("its %d tokens are no more than what would be kept of it", n)}
		}
		return nil, &Short{Why: fmt.Sprintf("its end cannot be cut: %d tokens hang together, by one long message or by results of tools", n), Stuck: true}
	}
	limit, _ := compaction.ChunkLimit(messages, compaction.Window(float64(window)))
	if err := x.calls(messages, at, limit); err != nil {
		return nil, err
	}
	for _, part := range compaction.Parts(messages, inParts, limit) {
		var chunks []compaction.Span
		for _, s := range part {
			chunks = append(chunks, compaction.Span{From: at[s.From], To: at[s.To-1] + 1})
		}
		x.parts, x.Chunks = append(x.parts, chunks), append(x.Chunks, chunks...)
	}
	return x, nil
}

// inParts are the parts that a conversation is summarised in where it is too much for one request.
const inParts = 2

// calls learns which tools are called and which calls are answered where messages are to be parted: from the answer before the middle to
// the next one behind it. Nowhere else does it matter, and a large transcript is not read twice for it.
func (x *Shortening) calls(messages []compaction.Message, at []int, limit int) error {
	total := 0
	for i := range messages {
		total += messages[i].Tokens
	}
	if total <= limit {
		return nil
	}
	middle, sum := 0, 0
	for middle < len(messages)-1 && inParts*(sum+messages[middle].Tokens) <= total {
		sum += messages[middle].Tokens
		middle++
	}
	from, to := middle, middle+1
	for from > 0 && messages[from].Role != compaction.Assistant {
		from--
	}
	for to < len(messages) && messages[to].Role != compaction.Assistant {
		to++
	}
	k := from
	return x.rows(context.Background(), at[from], at[to-1]+1, func(i int, e *transcript.Entry) error {
		if !speaks(x.Branch[i]) {
			return nil
		}
		if role, raw := voice(e); raw != nil {
			tokens := messages[k].Tokens
			messages[k] = compaction.MessageOf(role, raw)
			messages[k].Tokens = tokens
		}
		k++
		return nil
	})
}

func speaks(r compaction.Row) bool {
	return r.Kind == transcript.Message && r.Role != compaction.Nobody || r.Kind == transcript.CustomMessage || r.Kind == transcript.BranchSummary
}

// kept is what the rows that stay cost.
func (x *Shortening) kept() (n int) {
	for _, r := range x.Branch[x.Keep:] {
		if speaks(r) {
			n += int(r.Tokens)
		}
	}
	return n
}

// Messages counts those that are summarised and those that stay.
func (x *Shortening) Messages() (summarised, kept int) {
	for i, r := range x.Branch {
		switch {
		case i < x.From || !speaks(r):
		case i < x.Keep:
			summarised++
		default:
			kept++
		}
	}
	return summarised, kept
}

// Before is how full the context was, in tokens.
func (x *Shortening) Before() int { return x.Estimate }

// After is how full it is with the summary; ok is false where the estimate contradicts what was reported, so that nothing is known.
func (x *Shortening) After() (n int, ok bool) {
	n = x.tokens + x.beside + x.kept()
	if x.Reported > 0 {
		return n, n <= x.Estimate
	}
	return n, float64(n) <= 1.1*float64(x.Estimate)
}

// Leaf is the id of the row that the conversation ends with; "" for none.
func (x *Shortening) Leaf() string { return x.tree.Leaf() }

// A Summarizer has a summary written.
type Summarizer struct {
	Providers []provider.Provider // one after the other, until one answers
	Settings  compaction.Settings
	Window    int                 // tokens; 0 where it is not known
	Rules     string              // sections of the workspace's AGENTS.md that a summary must hold
	Mask      func(string) string // hides what no provider and no summary may have
}

// Turns passes what a provider would get to f, chunk by chunk.
func (x *Shortening) Turns(ctx context.Context, how Summarizer, f func(chunk int, turns []provider.Turn) error) error {
	for i, c := range x.Chunks {
		r, err := x.read(ctx, how, c)
		if err == nil {
			err = f(i, r.turns)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Summarize has the summary written, in stages where the conversation is too much for one request. What fails is told in Notes, and the
// next provider is asked; the error is that of the last one, of ctx, or of the transcript.
func (x *Shortening) Summarize(ctx context.Context, how Summarizer) error {
	w := writing{Shortening: x, ctx: ctx, how: how, audit: compaction.Audit{Strict: how.Settings.Identifiers == "strict"}, times: make([]times, len(x.parts)), recent: x.recent(how.Settings)}
	previous, err := x.previous(&w.files)
	if err != nil {
		return err
	}
	previous = how.Mask(previous)
	summary, err := compaction.InStages(x.parts, previous, w.stage)
	if err != nil {
		return err
	}
	if summary == "" || x.By == nil { // nothing was worth asking about
		summary = compaction.Fallback(summary)
	}
	if missing := w.audit.Missing(summary); w.audit.Strict && len(missing) > 0 {
		for _, id := range missing {
			summary += "\n- " + id
		}
		x.Notes = append(x.Notes, fmt.Sprintf("%d identifiers that the summary lacked were added to its end", len(missing)))
	}
	x.files, x.changed = w.files.Lists()
	for _, list := range [][]string{x.files, x.changed, w.turn, w.lines} {
		for i := range list {
			list[i] = how.Mask(list[i])
		}
	}
	suffix := compaction.Suffix{InProgress: w.turn, Recent: w.lines, Failures: &w.failures, Read: x.files, Changed: x.changed, Rules: how.Rules}
	x.Summary = compaction.CapWith(how.Mask(summary), how.Mask(suffix.String()), compaction.MaxSummary)
	x.tokens = (visible.Units(x.Summary) + 3) / 4
	return nil
}

// recent are the rows of the turns that a safeguarded summary keeps on a line each, of those that it stands for.
func (x *Shortening) recent(s compaction.Settings) map[int]bool {
	if !s.Safeguard {
		return nil
	}
	var said []compaction.Said
	var at []int
	for i := x.From; i < x.History(); i++ {
		if speaks(x.Branch[i]) {
			role := ""
			if x.Branch[i].Role == compaction.User {
				role = "user"
			}
			said, at = append(said, compaction.Said{Role: role}), append(at, i)
		}
	}
	rows := map[int]bool{}
	for _, i := range compaction.Preserved(said, s.RecentTurns) {
		rows[at[i]] = true
	}
	return rows
}

// writing is a summary in the making.
type writing struct {
	*Shortening
	ctx context.Context
	how Summarizer

	recent      map[int]bool // rows that are kept on a line
	files       compaction.Files
	failures    compaction.Failures
	audit       compaction.Audit
	real        compaction.Real
	times       []times  // of the parts
	texts       []string // the last that were said
	turn, lines []string
}

// times are when the first and the last message of a part were written, in epoch milliseconds.
type times struct{ first, last int64 }

// stage asks for the summary of one stage.
func (w *writing) stage(s compaction.Stage) (string, error) {
	r := provider.Request{Instructions: compaction.Instructions(w.how.Settings), Previous: s.Previous, MaxTokens: max(256, w.how.Settings.Reserve*8/10)}
	if s.Merge != nil {
		r.Instructions = compaction.MergeInstructions(w.how.Settings)
		for i, summary := range s.Merge {
			when := ""
			if len(s.Merge) == len(w.times) {
				when = compaction.TimeRange(w.times[i].first, w.times[i].last)
			}
			r.Conversation = append(r.Conversation, provider.Turn{Role: provider.Summary, Text: compaction.ChunkHeading(i, len(s.Merge), when) + "\n" + summary})
		}
		return w.ask(w.ctx, w.how, r, w.audit, true)
	}
	got, err := w.read(w.ctx, w.how, s.Span)
	if err != nil {
		return "", err
	}
	worth := false
	for _, m := range got.said {
		worth = w.real.Is(m.Role, m.Raw) || worth
		w.note(m, s.Part)
	}
	for _, t := range got.turns {
		if w.texts = append(w.texts, t.Text); len(w.texts) > 10 {
			w.texts = w.texts[1:]
		}
	}
	if w.audit.Strict {
		w.audit.Identifiers = compaction.Identifiers(strings.Join(w.texts, "\n"))
	}
	if len(got.turns) == 0 || !worth {
		return s.Previous, nil
	}
	r.Conversation = got.turns
	return w.ask(w.ctx, w.how, r, w.audit, s.Last)
}

// note takes from a message what stands behind the summary, and what it is held against.
func (w *writing) note(m heard, part int) {
	if m.Role == "assistant" {
		w.files.Add(m.Raw)
	}
	w.failures.Add(m.Raw)
	if m.Role == "user" && len(m.Raw) > 0 && !w.recent[m.row] { // those stand in the summary as they are
		w.audit.Ask = ""
		for _, t := range compaction.Turns(m.Role, m.Raw) {
			w.audit.Ask = w.how.Mask(t.Text)
		}
	}
	if w.Split() && m.row >= w.Turn || w.recent[m.row] {
		if l := compaction.Line(m.Role, m.Raw); l != "" && w.recent[m.row] {
			w.lines = append(w.lines, l)
		} else if l != "" {
			w.turn = append(w.turn, l)
		}
	}
	if at, ok := span.Float(span.Member(m.Raw, "timestamp")); ok && at > 0 && at < 1<<53 {
		t := &w.times[part]
		if t.first == 0 {
			t.first, t.last = int64(at), int64(at)
		}
		t.first, t.last = min(t.first, int64(at)), max(t.last, int64(at))
	}
}

// ask asks for one summary. One without the sections is no answer; one that fails the rest of the audit is taken after some tries.
func (x *Shortening) ask(ctx context.Context, how Summarizer, r provider.Request, audit compaction.Audit, last bool) (string, error) {
	c := provider.Chain{Failed: func(_ provider.Provider, err error) { x.Notes = append(x.Notes, err.Error()) }}
	for _, p := range how.Providers[x.failed:] { // one that failed is not asked for the next part
		c.Providers = append(c.Providers, watched{p, how.Settings, audit, last})
	}
	notes := len(x.Notes)
	said, by, err := c.Summarize(ctx, r)
	if err != nil {
		return "", err
	}
	x.By = by.(watched).Provider
	x.failed += len(x.Notes) - notes
	return how.Mask(said), nil
}

// watched is a provider whose answers are audited.
type watched struct {
	provider.Provider
	settings compaction.Settings
	audit    compaction.Audit
	last     bool // it is the whole summary, not one of a part
}

func (w watched) Summarize(ctx context.Context, r provider.Request) (string, error) {
	said, err := w.Provider.Summarize(ctx, r)
	if w.settings.Safeguard && !w.settings.Audit { // qualityGuard is switched off: whatever is answered will do
		return said, err
	}
	tries := w.settings.Retries
	if _, quotes := w.Provider.(provider.Extract); quotes || !w.settings.Audit {
		tries = 0 // it says the same again
	}
	instructions := r.Instructions
	for err == nil && strings.TrimSpace(said) != "" {
		audit := w.audit
		if !w.last {
			audit = compaction.Audit{}
		}
		reasons := audit.Check(said)
		if len(reasons) == 0 {
			break
		}
		if tries == 0 {
			for _, why := range reasons {
				if heading, ok := strings.CutPrefix(why, "missing_section:"); ok {
					return "", fmt.Errorf("its answer lacks the section %q", heading)
				}
			}
			break
		}
		tries--
		r.Instructions = instructions + compaction.Feedback(reasons)
		again, e := w.Provider.Summarize(ctx, r)
		if e != nil || strings.TrimSpace(again) == "" {
			if ctx.Err() != nil {
				return "", e
			}
			tries = 0
			continue
		}
		said = again
	}
	return said, err
}

// previous is the summary of the compaction before, whose lists of files go on.
func (x *Shortening) previous(files *compaction.Files) (string, error) {
	if x.Last < 0 {
		return "", nil
	}
	summary := ""
	err := x.rows(context.Background(), x.Last, x.Last+1, func(_ int, e *transcript.Entry) error {
		summary, _ = span.Text(span.Member(e.Raw, "summary"))
		if string(span.Member(e.Raw, "fromHook")) != "true" {
			files.AddDetails(span.Member(e.Raw, "details"))
		}
		return nil
	})
	return summary, err
}

// heard is a message as it was read, and its row.
type heard struct {
	compaction.Said
	row int
}

// portion is what one request is about: what is said to a provider, and the messages.
type portion struct {
	turns []provider.Turn
	said  []heard
}

// read reads rows that are summarised. A message that is too large for any summary is named in its place.
func (x *Shortening) read(ctx context.Context, how Summarizer, c compaction.Span) (p portion, err error) {
	window := compaction.Window(float64(how.Window))
	err = x.rows(ctx, c.From, c.To, func(k int, e *transcript.Entry) error {
		if !speaks(x.Branch[k]) { // an earlier summary among them
			return nil
		}
		role, raw := voice(e)
		m := heard{compaction.Said{Role: role, Raw: raw}, k}
		if note, large := (compaction.Message{Tokens: int(x.Branch[k].Tokens)}).Oversized(role, window); large {
			p.turns = append(p.turns, provider.Turn{Role: "tool", Text: note})
			m.Raw = nil
		} else {
			for _, t := range compaction.Turns(role, raw) {
				t.Text = how.Mask(t.Text)
				p.turns = append(p.turns, t)
			}
		}
		p.said = append(p.said, m)
		return nil
	})
	return p, err
}

// rows reads some rows of the branch again.
func (f *Fill) rows(ctx context.Context, from, to int, each func(i int, e *transcript.Entry) error) error {
	if f.Of.InDatabase() {
		return f.events(ctx, from, to, each)
	}
	file, err := os.Open(f.Of.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	load := transcript.Load(file)
	for i := from; i < to; i++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		e, err := load(f.Places[i])
		if err != nil {
			return fmt.Errorf("line %d of %s is not what it was: %w", f.Places[i].Line, f.Of, err)
		}
		if err := each(i, &e); err != nil {
			return err
		}
	}
	return nil
}

// Row is the row of the compaction, without a line break. id must be new; the error is that of a row that cannot be read, or of an id
// that is not.
func (x *Shortening) Row(id string, now time.Time) ([]byte, error) {
	if _, taken := x.tree.Find(id); taken {
		return nil, fmt.Errorf("the transcript has a row %s already", id)
	}
	x.first = id
	if !x.Hard {
		err := x.rows(context.Background(), x.Keep, x.Keep+1, func(_ int, e *transcript.Entry) error {
			x.first = string(e.ID)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var b []byte
	member := func(name string, val []byte) {
		b = append(append(append(b, ','), span.Quote(nil, name)...), ':')
		b = append(b, val...)
	}
	text := func(name, val string) { member(name, span.Quote(nil, val)) }
	b = append(b, `{"type":"compaction"`...)
	text("id", id)
	text("parentId", x.tree.Leaf())
	text("timestamp", now.UTC().Format("2006-01-02T15:04:05.000Z"))
	text("summary", x.Summary)
	text("firstKeptEntryId", x.first)
	member("tokensBefore", strconv.AppendInt(nil, int64(x.Estimate), 10))
	list := func(paths []string) []byte {
		out := []byte{'['}
		for i, p := range paths {
			if i > 0 {
				out = append(out, ',')
			}
			out = span.Quote(out, p)
		}
		return append(out, ']')
	}
	details := append([]byte(`{"readFiles":`), list(x.files)...)
	details = append(append(details, `,"modifiedFiles":`...), list(x.changed)...)
	member("details", append(details, '}'))
	return append(b, '}'), nil
}

// Appended writes a file and one more line behind it.
func Appended(path string, line []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		t, err := longer(file, line)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, io.MultiReader(io.NewSectionReader(file, 0, t.size), bytes.NewReader(t.line), strings.NewReader("\n")))
		return err
	}
}

// tailed is a file and a line behind it, without its line break.
type tailed struct {
	file *os.File
	size int64
	line []byte // with a line break in front, where the file does not end with one
}

func longer(file *os.File, line []byte) (*tailed, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	t := &tailed{file, info.Size(), line}
	end := []byte{'\n'}
	if t.size > 0 {
		if _, err := file.ReadAt(end, t.size-1); err != nil {
			return nil, err
		}
	}
	if end[0] != '\n' {
		t.line = append([]byte{'\n'}, line...)
	}
	return t, nil
}

// ReadAt reads from either. No row lies in both.
func (t *tailed) ReadAt(b []byte, at int64) (int, error) {
	if at < t.size {
		return t.file.ReadAt(b, at)
	}
	return bytes.NewReader(t.line).ReadAt(b, at-t.size)
}

// Successor is the content of the transcript that goes on where this one was compacted (see compaction.Rotation), with a new session id.
// row is what Row gave; nothing else may be asked of the Shortening afterwards. The error is that of a transcript that cannot be rotated.
func (x *Shortening) Successor(row []byte, id string, now time.Time) (func(io.Writer) error, error) {
	file, err := os.Open(x.Of.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := longer(file, row)
	if err != nil {
		return nil, err
	}
	e, err := transcript.Parse(row)
	if err != nil {
		return nil, err
	}
	x.tree.Add(&e, transcript.Place{Offset: t.size + int64(len(t.line)-len(row)), Size: len(row)})
	r, err := compaction.Rotate(x.tree, transcript.Load(t))
	if err != nil {
		return nil, err
	}
	for _, i := range r.Beside {
		x.beside += int(x.Branch[i].Tokens)
	}
	var old []byte
	err = new(transcript.Scanner).Read(file, func(r *transcript.Row) error {
		if r.Err == nil && r.Kind == transcript.Header && r.ID != nil {
			old = bytes.Clone(r.Raw)
			return transcript.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	header := compaction.Header(old, id, x.Of.Path, now)
	return func(w io.Writer) error {
		file, err := os.Open(x.Of.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		t.file = file
		out := bufio.NewWriterSize(w, 64<<10)
		if err := r.Write(out, header); err != nil {
			return err
		}
		return out.Flush()
	}, nil
}

// Stat is the file of the conversation as it stands: what a change of it is made from. It must be Plain.
func (c *Conversation) Stat() (os.FileInfo, error) { return os.Lstat(c.Path) }

// Trim plans to keep n lines of the conversation, which must be Plain, and gives the content that it then has.
func (c *Conversation) Trim(ctx context.Context, n int) (*compaction.Trimming, func(io.Writer) error, error) {
	t, err := compaction.Trim(n, func(each func(*transcript.Row) error) error {
		return c.Scan(ctx, &transcript.Scanner{}, each)
	})
	return t, func(w io.Writer) error {
		file, err := os.Open(c.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		return t.Write(w, file)
	}, err
}
