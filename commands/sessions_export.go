package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

func sessionsExport() *Command {
	return &Command{
		Name:  "export",
		Args:  "KEY",
		Short: "take a conversation out as a document",
		Long: "Writes what was said in a session to a file or to standard output: as Markdown, as one self-contained HTML page, or as the JSON lines of the transcript itself.\n\n" +
			"Credentials are masked, and what the model wrote for machines is taken out, unless --raw is given. As jsonl every row keeps its bytes, but for those in which something " +
			"was masked; with --raw all of them do. Markdown and HTML show calls and results of tools too. Images that " +
			"stand in the transcript are in the page; Markdown says of which kind and how large they are. Nobody looks at what is in them, so a credential in a picture is not masked.\n\n" +
			"A file is made with the rights 0600, whole or not at all. One that is there is never replaced without --overwrite.",
		Flags: append([]Flag{
			{Name: "format", Value: "FORMAT", Default: "md", Help: "what to write", Choices: []string{"md", "html", "jsonl"}},
			{Name: "output", Short: "o", Value: "PATH", Help: "the file to write; without it, or with -, standard output"},
			{Name: "overwrite", Help: "replace the file if it is there"},
			{Name: "raw", Help: "mask nothing and leave out nothing"},
		}, partFlags...),
		Examples: []Example{
			{"oc sessions export main --format html --output main.html", "a page to read or to print"},
			{"oc sessions export main --archives > main.md", "all that was ever said in the main session"},
			{"oc sessions export main --format jsonl --raw --output main.jsonl", "the transcript, byte for byte"},
		},
		Exits: []int{ExitRefused},
		Run:   exportSession,
	}
}

// exported is what an export did.
type exported struct {
	talk   *talk
	page   *store.Page
	format string
	output
	raw bool

	messages int
	hidden   int // messages that only steer OpenClaw, empty ones
	masked   int // messages or rows in which something was masked
	damaged  int // rows of a database that cannot be read
	bytes    int64
}

func exportSession(ctx context.Context, c *Call) error {
	x := &exported{format: c.String("format"), raw: c.Bool("raw")}
	var err error
	if x.output, err = c.output("output"); err != nil {
		return err
	}
	x.overwrite, x.instead = c.Bool("overwrite"), "give another name, or --overwrite to replace it"
	if x.format == "jsonl" {
		for _, name := range []string{"branch", "all-branches", "archives", "since", "before"} {
			if c.Given(name) {
				return Usagef("--format jsonl is the transcript as it stands and cannot be combined with --%s; md and html can", name)
			}
		}
		if x.path == "" && c.Out.Terminal() {
			return Usagef("--format jsonl is not for a terminal; give --output, or send it to a file or another program")
		}
	}
	if c.JSON() && x.path == "" {
		return Usagef("--json says what was exported and needs standard output for itself; give --output PATH for the export")
	}
	if x.talk, err = c.talk(ctx, c.Arg(0), c.Bool("archives")); err != nil {
		return err
	}
	own := []string{x.talk.l.cfg.StateDir}
	if x.talk.row != nil {
		own = append(own, x.talk.row.Store().Dir())
	}
	if err := x.place("a transcript", own...); err != nil {
		return err
	}
	if x.path == "" {
		w := &counting{w: c.Out}
		err = x.content(ctx, c, w)
		x.bytes = w.n
	} else {
		x.bytes, err = x.write(func(w io.Writer) error { return x.content(ctx, c, w) })
	}
	if err != nil {
		return c.partError(x.talk, err)
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { x.document(c, p); return nil }); err != nil {
			return err
		}
	} else if x.path != "" {
		c.Out.Printf("%s: %s, %s.\n", x.path, x.summary(), term.Bytes(x.bytes))
	}
	c.remarkTalk(x.talk)
	if x.masked > 0 {
		c.Notef("messages in which credentials were masked: %d; --raw leaves them", x.masked)
	}
	if x.hidden > 0 {
		c.Notef("messages that are not for reading and not in it: %d; --raw has them", x.hidden)
	}
	if x.damaged > 0 {
		c.Warnf("rows of the database that cannot be read and are not in it: %d", x.damaged)
	}
	err = cmp.Or(c.tellFlaws(x.page), c.tell(x.talk.l.failed))
	if err == nil && x.damaged > 0 {
		err = Status(ExitFailed)
	}
	return err
}

func (x *exported) summary() string {
	if x.format == "jsonl" {
		return fmt.Sprintf("%d rows", x.messages)
	}
	return fmt.Sprintf("%d messages", x.messages)
}

func (x *exported) content(ctx context.Context, c *Call, w io.Writer) (err error) {
	redactor := c.redactor(x.talk.l.cfg)
	if x.format == "jsonl" {
		x.page = &store.Page{}
		one := x.talk.current()
		x.damaged, err = one.Copy(ctx, w, func(r *transcript.Row) []byte {
			x.messages++
			if x.raw {
				return r.Raw
			}
			var out []byte
			var masked bool
			if r.Err != nil {
				text := visible.Plain(string(r.Raw))
				shown := redactor.Show(text)
				// What is no row stays a line.
				out, masked = []byte(strings.ReplaceAll(shown, "\n", " ")), shown != text
			} else {
				out, masked = redactor.Value(r.Raw)
			}
			if masked {
				x.masked++
				return out
			}
			return r.Raw
		})
		return err
	}
	var doc writer = &markdown{w: w}
	if x.format == "html" {
		doc = &page{w: w}
	}
	doc.begin(x.title(), x.facts(c))
	view := visible.View{Redactor: redactor, Units: math.MaxInt}
	want := c.part()
	want.Long = -1
	write := func(m store.Message) error {
		raw := m.Raw
		var images []picture
		if x.format == "html" {
			raw, images = pictures(raw)
		}
		if raw == nil {
			raw = visible.Mark{ID: m.ID, Time: m.Time, Seq: m.Seq}.Compaction()
		}
		given := false
		for raw := range pieces(withoutData(raw)) {
			var beside []part
			if !x.raw {
				shown, ok := visible.Project(raw, math.MaxInt)
				if !ok {
					continue
				}
				piece, changed := view.Show(shown)
				if !speaksOnly(raw) {
					whole, all := view.Show(raw)
					beside, changed.Redacted = besides(piece, whole), changed.Redacted || all.Redacted
				}
				if raw = piece; changed.Redacted {
					x.masked++
				}
			}
			if err := doc.message(raw, beside, images, m, given); err != nil {
				return err
			}
			given = true
		}
		if given {
			x.messages++
		} else {
			x.hidden++
		}
		return nil
	}
	if err := x.walk(ctx, want, write); err != nil {
		return err
	}
	return doc.end(x.foot())
}

// walk passes the messages to write, with those that Claude's own program keeps of the session among them by their times, each once. To put
// them there all are held; else each is written as it is read.
func (x *exported) walk(ctx context.Context, want store.Part, write func(store.Message) error) (err error) {
	other := history{talk: x.talk}
	bound := (*store.Conversation)(nil)
	if x.talk.row != nil {
		bound = x.talk.row.Bound()
	}
	if bound == nil || bound.Missing || want.Branch != "" || want.AllBranches {
		if other.page, err = store.Walk(ctx, x.talk.all, want, write); err != nil {
			return err
		}
		want.Whole = true // counted, and left where it is
		x.page = other.page
		return other.join(ctx, want)
	}
	if x.page, err = store.ReadPart(ctx, x.talk.all, want); err != nil {
		return err
	}
	other.page = x.page
	if err := other.join(ctx, want); err != nil {
		return err
	}
	for _, m := range x.page.Messages {
		if m.Of.Reason == store.ClaudeCLI && m.Long {
			m.Raw = visible.Oversized(m.Raw, m.Time)
		}
		if err := write(m); err != nil {
			return err
		}
	}
	return nil
}

// besides are the thoughts and calls of a message that a chat does not show beside its words; whole is the message with them, masked.
func besides(shown, whole []byte) (list []part) {
	is := func(p part) bool { return strings.HasPrefix(p.aside, callSign) || strings.HasPrefix(p.aside, thought) }
	if slices.ContainsFunc(parts(shown), is) {
		return nil
	}
	for _, p := range parts(whole) {
		if is(p) {
			list = append(list, p)
		}
	}
	return list
}

// writer is a format that messages are written in.
type writer interface {
	begin(title string, facts [][2]string)
	message(raw []byte, beside []part, images []picture, m store.Message, more bool) error // more: it goes on with the message before
	end(remarks []string) error
}

func (x *exported) title() string {
	if r := x.talk.row; r != nil && !x.raw {
		return visible.ShowLine(r.Key)
	}
	return x.talk.name()
}

func (x *exported) facts(c *Call) [][2]string {
	facts := [][2]string{{"Session id", x.talk.id}}
	for _, one := range x.talk.all {
		facts = append(facts, [2]string{"From", one.String()})
	}
	how := "credentials masked"
	if x.raw {
		how = "as it is, nothing masked"
	}
	return append(facts, [2]string{"Exported", term.Time(c.Now().UnixMilli()) + ", " + how})
}

// foot says what the document does not have.
func (x *exported) foot() []string {
	h := history{page: x.page, hidden: x.hidden}
	left := h.left()
	if len(left) == 0 {
		return nil
	}
	return append([]string{"Not in this document: " + strings.Join(left, "; ") + "."}, flaws(x.page)...)
}

func (x *exported) document(c *Call, p *span.Printer) {
	p.Object()
	p.Key("sessionKey").String(x.talk.key)
	p.Key("sessionId").String(x.talk.id)
	p.Key("format").String(x.format)
	p.Key("path").String(x.path)
	p.Key("bytes").Int(x.bytes)
	p.Key("redacted").Bool(!x.raw)
	if x.format == "jsonl" {
		p.Key("rows").Int(int64(x.messages))
	} else {
		p.Key("messages").Int(int64(x.messages))
	}
	p.Key("masked").Int(int64(x.masked))
	p.Key("notShown").Object()
	for _, v := range []struct {
		name string
		n    int
	}{
		{"hidden", x.hidden},
		{"otherBranches", x.page.OffBranch},
		{"beforeReset", x.page.Before},
		{"otherTimes", x.page.Outside},
		{"repeated", x.page.Repeats},
		{"claudeCli", x.page.Elsewhere},
		{"broken", x.page.Broken + x.damaged},
	} {
		p.Key(v.name).Int(int64(v.n))
	}
	p.End()
	c.printTalk(p, x.talk)
	x.talk.sight.print(p)
	printFlaws(p, x.page)
	x.talk.l.failed.print(p)
	p.End()
}
