package commands

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

func sessionsSearch() *Command {
	return &Command{
		Name:  "search",
		Args:  "[TEXT]",
		Short: "find a text in every transcript",
		Long: "Looks for a text, or with --regexp for a regular expression (RE2), in all transcripts of all agents: those of sessions, those that a reset or a deletion put away, " +
			"history that no session names, databases and their archives, and what an import left behind. What was said, thought, called, answered and summed up is searched; ids, " +
			"signatures and images are not, nor is an answer that is nothing but NO_REPLY or the like, which nobody saw. Where both eras hold sessions, places that are only in the one that OpenClaw does not read are counted, and shown with --both-eras. What is found comes newest first, once for all its copies, with the session's key and what stands around it; credentials are masked.\n\n" +
			"A text or expression without a capital letter is found in any case, one with a capital only as it is written. --ignore-case and --case-sensitive say it themselves. " +
			"Letters are the same where Unicode's simple case folding says so. A match lies within one text and may contain line breaks. Give -- before a text that begins with a dash.\n\n" +
			"A line that is no JSON is searched as it is written and marked as damaged.",
		Flags: []Flag{
			{Name: "regexp", Value: "EXPR", Help: "look for a regular expression instead of a text"},
			{Name: "ignore-case", Help: "capitals and small letters are the same"},
			{Name: "case-sensitive", Help: "they are not"},
			anyAgentFlag, allAgentsFlag, storeFlag, bothErasFlag,
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "only in sessions of this kind, or of one of these", Choices: kinds},
			{Name: "since", Value: "TIME", Help: "only what was written at this time or later", Takes: momentHelp, Check: isMoment},
			{Name: "limit", Value: "N|all", Default: "50", Help: "how many to show, the newest", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
			{Name: "files-with-matches", Help: "name the transcripts that hold it, instead of the places"},
			asFlag,
		},
		Examples: []Example{
			{`oc sessions search "connection refused"`, "who said that, and when"},
			{`oc sessions search --regexp "(?i)ticket-[0-9]+" --since 7d --json`, "every mention of a ticket in the last week"},
			{"oc sessions search invoice --agent main --kind group --files-with-matches", "which transcripts of its groups speak of invoices"},
		},
		Run: searchSessions,
	}
}

// Units of UTF-16 that an excerpt shows on either side of what was found.
const excerptUnits = 80

// needle is what the line says to look for.
func (c *Call) needle() (*transcript.Needle, error) {
	given := c.Given("regexp")
	if given == (len(c.Args) > 0) {
		return nil, Usagef("oc sessions search takes a text or --regexp EXPR, one of them")
	}
	mode := transcript.SmartCase
	switch insensitive, exact := c.Bool("ignore-case"), c.Bool("case-sensitive"); {
	case insensitive && exact:
		return nil, Usagef("--ignore-case and --case-sensitive exclude each other; give one of them")
	case insensitive:
		mode = transcript.IgnoreCase
	case exact:
		mode = transcript.ExactCase
	}
	if given {
		n, err := transcript.NewPattern(c.String("regexp"), mode)
		if err != nil {
			return nil, Usagef("--regexp: %w", err)
		}
		return n, nil
	}
	n, err := transcript.NewNeedle(c.Arg(0), mode)
	if err != nil {
		return nil, Usagef("TEXT: %w", err)
	}
	return n, nil
}

// library is every transcript that the flags mean.
type library struct {
	*listing
	*store.Corpus
}

// library reads the stores and lists their transcripts. Without --agent and --store those of agents count too that the configuration
// does not name, or not any more.
func (c *Call) library(ctx context.Context) (*library, error) {
	l, err := c.gather(ctx, !c.Given("agent") && !c.Given("store"))
	if err != nil {
		return nil, err
	}
	opened := slices.Clone(l.opened)
	if !c.Given("agent") && !c.Given("store") {
		for _, t := range store.StrangerTargets(l.cfg) {
			s, err := store.Open(ctx, l.cfg, t)
			if l.failed.add(s, err); err == nil {
				opened = append(opened, s)
			}
		}
	}
	return &library{l, store.ReadCorpus(ctx, l.cfg, opened)}, ctx.Err()
}

// end tells what an answer is missing, and makes it a partial one.
func (l *library) end(c *Call) error {
	for _, err := range l.Problems {
		c.Warnf("%v", err)
	}
	if err := c.tell(l.failed); err != nil {
		return err
	}
	if len(l.Problems) > 0 {
		return Status(ExitFailed)
	}
	return nil
}

// chosen are the volumes of sessions of some kinds, or of all, that are for the one who asks. A transcript that no row names has no
// kind, unless its key tells.
func (l *library) chosen(kinds []string, seen *sight) (all []*store.Volume) {
	for _, v := range l.Volumes {
		if len(kinds) > 0 && !(v.Row != nil && slices.Contains(kinds, v.Row.ListKind()) || v.Key != "" && slices.Contains(kinds, string(row.ClassOf(v.Key)))) {
			continue
		}
		if seen.searches(v) {
			all = append(all, v)
		}
	}
	return all
}

// searched is a search and what it has found.
type searched struct {
	*store.Found
	call     *Call
	lib      *library
	needle   *transcript.Needle
	volumes  []*store.Volume
	redactor *visible.Redactor
	sight    *sight
}

func searchSessions(ctx context.Context, c *Call) error {
	n, err := c.needle()
	if err != nil {
		return err
	}
	lib, err := c.library(ctx)
	if err != nil {
		return err
	}
	s := &searched{call: c, lib: lib, needle: n, redactor: c.redactor(lib.cfg)}
	if s.sight, err = c.sight(lib.cfg, lib.Stores); err != nil {
		return err
	}
	s.volumes = lib.chosen(c.Strings("kind"), s.sight)
	q := store.Search{Needle: n, First: c.Bool("files-with-matches"), Both: c.Bool("both-eras")}
	q.Since, _ = parseMoment(c.String("since"), c.Now())
	if limit, all := c.CountOrAll("limit"); !all {
		q.Limit = int(min(limit, 1<<31))
	}
	p := c.Progress("searching")
	var done atomic.Int64
	total := int64(0)
	for _, v := range s.volumes {
		total += max(v.Bytes, 0)
	}
	q.Done = func(bytes, _ int64) { p.Set(done.Add(bytes), total) }
	s.Found, err = q.Run(ctx, s.volumes)
	if p.Done(); err != nil {
		return err
	}
	lib.Problems = append(lib.Problems, s.Failed...)
	if c.JSON() {
		err = c.Document(s.document)
	} else if q.First {
		s.files()
	} else {
		s.text()
	}
	if err != nil {
		return err
	}
	return s.end()
}

// end says what was not searched, and which status that is.
func (s *searched) end() error {
	c := s.call
	if s.Untimed > 0 {
		c.Notef("%s found that have no time, and so are not known to be from --since on; they are not shown", plural(s.Untimed, "more was", "more were"))
	}
	if s.Total > len(s.Hits) && !c.Bool("files-with-matches") {
		c.Notef("%s older; give --limit all to see them", plural(s.Total-len(s.Hits), "more is", "more are"))
	}
	if !c.Bool("both-eras") {
		switch n := s.others(); {
		case n > 0 && c.Bool("files-with-matches"):
			c.Warnf("%s of the era that OpenClaw does not read; see them with --both-eras", plural(n, "more transcript holds it, that", "more transcripts hold it, those"))
		case n > 0:
			c.Warnf("%s only in the era that OpenClaw does not read; see them with --both-eras", plural(n, "more is", "more are"))
		}
	}
	s.sight.tell(c)
	return s.lib.end(c)
}

// others is how much is found in the era that is not read alone: places, or transcripts.
func (s *searched) others() int {
	if s.call.Bool("files-with-matches") {
		return len(s.Others)
	}
	return s.Other
}

func (s *searched) text() {
	o := s.call.Out
	if s.Total == 0 {
		o.Printf("Not found in %s, %s.\n", plural(len(s.volumes), "transcript", "transcripts"), term.Bytes(s.Bytes))
		return
	}
	for i := range s.Hits {
		h := &s.Hits[i]
		x := s.needle.Excerpt(h.Snip, excerptUnits, s.redactor)
		at := term.Unknown
		if h.At > 0 {
			at = term.Time(h.At)
		}
		name, rest := term.Escape(volumeName(h.Volume)), "  "+at+"  "+term.Escape(who(h))
		from := term.Escape(whence(h.Volume)) + s.era(h.Volume)
		if o.Terminal() {
			name = term.CutMiddle(name, max(16, o.Width()-term.Columns(rest+from)), "…")
		}
		o.Printf("%s%s%s\n", o.Paint(term.Bold, name), term.Styled(rest), o.Paint(term.Dim, from))
		if x.Match == "" {
			place(o, x.Before, "(masked)", x.After, term.Dim)
		} else {
			place(o, x.Before, x.Match, x.After, term.Bold|term.Yellow)
		}
	}
	o.Printf("\n%s in %s, of %s searched (%s).\n", plural(s.Total, "place", "places"), plural(len(s.Volumes), "transcript", "transcripts"), term.Count(int64(len(s.volumes))), term.Bytes(s.Bytes))
}

// place shows what was found between what stands around it, wrapped to the terminal.
func place(o *term.Out, before, match, after string, style term.Style) {
	const indent = "    "
	before, match, after = strings.TrimLeft(term.Escape(before), " "), term.Escape(match), strings.TrimRight(term.Escape(after), " ")
	at := 0 // where a line begins in the whole
	for line := range strings.SplitSeq(term.Wrap(before+match+after, o.Width(), indent), "\n") {
		line = strings.TrimPrefix(line, indent)
		from := min(max(len(before)-at, 0), len(line))
		to := min(max(len(before)+len(match)-at, from), len(line))
		o.Printf("%s%s%s%s\n", indent, line[:from], o.Paint(style, line[from:to]), line[to:])
		at += len(line) + 1
	}
}

// who said it: the role, and the part of the message where it is not what was said.
func who(h *store.Hit) string {
	switch h.Part {
	case "text", "summary", "result", "output":
		if h.Role != "" {
			return h.Role
		}
	case "damaged":
		return "damaged line"
	}
	return strings.TrimSpace(h.Role + " " + h.Part)
}

// volumeName is the key of the session, else the id, else the file.
func volumeName(v *store.Volume) string {
	switch {
	case v.Key != "":
		return v.Key
	case v.ID != "":
		return v.ID
	}
	return v.String()
}

// whence says where the transcript comes from, unless it is the one that the session goes on with.
func whence(v *store.Volume) string {
	if v.Reason == store.Current {
		return ""
	}
	if v.Key == "" {
		return "  " + v.Reason + ", agent " + v.Agent
	}
	return "  " + v.Reason
}

// era marks what was found where both eras are searched.
func (s *searched) era(v *store.Volume) string {
	if !s.call.Bool("both-eras") {
		return ""
	}
	return "  " + string(v.Era) + " era"
}

func (s *searched) files() {
	t := s.call.Out.Table(term.Column{Head: "Session", Cut: term.Middle, Min: 16}, term.Column{Head: "What"}, term.Column{Head: "Transcript", Cut: term.Middle, Min: 24})
	all := s.holding()
	for _, v := range all {
		t.Row(volumeName(v), v.Reason+s.era(v), v.String())
	}
	t.End()
	if len(all) < len(s.Volumes) {
		s.call.Notef("%s; give --limit all to see them", plural(len(s.Volumes)-len(all), "more transcript", "more transcripts"))
	}
	if len(s.Volumes) == 0 {
		s.text()
	}
}

// holding are the volumes that hold it, in the order of the corpus: those of sessions first, each sort the newest first.
func (s *searched) holding() (all []*store.Volume) {
	for _, v := range s.volumes {
		if s.Volumes[v] {
			all = append(all, v)
		}
	}
	if n, every := s.call.CountOrAll("limit"); !every {
		all = all[:min(int64(len(all)), n)]
	}
	return all
}

func (s *searched) document(p *span.Printer) error {
	files := s.call.Bool("files-with-matches")
	p.Object()
	if files {
		p.Key("count").Int(int64(len(s.holding())))
		p.Key("totalCount").Int(int64(len(s.Volumes)))
	} else {
		p.Key("count").Int(int64(len(s.Hits)))
		p.Key("totalCount").Int(int64(s.Total))
		p.Key("copies").Int(int64(s.Copies))
	}
	p.Key("untimed").Int(int64(s.Untimed))
	p.Key("bothEras").Bool(s.call.Bool("both-eras"))
	p.Key("onlyInOtherEra").Int(int64(s.others()))
	p.Key("ignoreCase").Bool(s.needle.IgnoresCase())
	p.Key("searched").Object()
	p.Key("transcripts").Int(int64(len(s.volumes)))
	p.Key("bytes").Int(s.Bytes)
	p.Key("unread").Int(int64(len(s.Unread)))
	p.End()
	if files {
		p.Key("transcripts").Array()
		for _, v := range s.holding() {
			p.Object()
			printVolume(p, v)
			p.End()
		}
		p.End()
	} else {
		p.Key("hits").Array()
		for i := range s.Hits {
			s.hit(p, &s.Hits[i])
		}
		p.End()
	}
	s.sight.print(p)
	s.lib.printProblems(p)
	p.End()
	return nil
}

func (s *searched) hit(p *span.Printer, h *store.Hit) {
	x := s.needle.Excerpt(h.Snip, excerptUnits, s.redactor)
	p.Object()
	printVolume(p, h.Volume)
	if h.ID != "" {
		p.Key("id").String(h.ID)
	}
	stamp(p, "at", h.At)
	p.Key("role").String(h.Role)
	p.Key("part").String(h.Part)
	if h.Byte >= 0 {
		p.Key("byte").Int(h.Byte)
	}
	if h.Seq >= 0 {
		p.Key("seq").Int(h.Seq)
	}
	p.Key("excerpt").String(x.Before + x.Match + x.After)
	p.Key("match").String(x.Match)
	p.Key("redacted").Bool(x.Redacted)
	p.End()
}

// printVolume writes what a transcript is.
func printVolume(p *span.Printer, v *store.Volume) {
	if p.Key("key"); v.Key != "" {
		p.String(v.Key)
	} else {
		p.Null()
	}
	p.Key("agentId").String(v.Agent)
	p.Key("sessionId").String(v.ID)
	p.Key("source").String(v.Reason)
	p.Key("era").String(string(v.Era))
	p.Key("path").String(v.Path)
}

// printProblems writes errors[] of an answer that stores or transcripts are missing from.
func (l *library) printProblems(p *span.Printer) {
	all := slices.Clone(l.failed)
	for _, err := range l.Problems {
		all = append(all, failure{err: err})
	}
	all.print(p)
}

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return term.Count(int64(n)) + " " + many
}
