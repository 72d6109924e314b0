package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/store"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

// What OpenClaw's history tool reads and gives at most (spec/session-tools.md 2.2 and 2.7, release 2026.7.35).
const (
	historyLimit = 1000
	historyBytes = 80 << 10
	chatBytes    = 6 << 20
)

var sinceFlag, beforeFlag = Flag{Name: "since", Value: "TIME", Help: "only those at this time or later", Takes: momentHelp, Check: isMoment},
	Flag{Name: "before", Value: "TIME", Help: "only those before this time", Takes: momentHelp, Check: isMoment}

// partFlags say which messages of a conversation are meant.
var partFlags = []Flag{
	anyAgentFlag, allAgentsFlag, storeFlag,
	{Name: "branch", Value: "ENTRY", Help: "the branch that ends at this entry, instead of the active one"},
	{Name: "all-branches", Help: "every message, in the order of writing"},
	{Name: "archives", Help: "also what earlier transcripts of the session hold, the oldest first"},
	sinceFlag, beforeFlag, asFlag,
}

func sessionsMessages() *Command {
	return &Command{
		Name:  "history",
		Args:  "KEY",
		Short: "read what was said in a session",
		Long: "Shows the newest messages of a session: what people and the model said, cleaned of what the model wrote for machines, with credentials masked, and calls of tools " +
			"in one line. What is not shown is counted.\n\n" +
			"It follows OpenClaw's own history tool in what it reads and in its limits: results of tools count towards --limit and show only with --include-tools; long texts are " +
			"cut to 4000 characters, and with --json a page holds at most 80 KiB. Where OpenClaw masks no credentials and leaves markup in, oc does not: in the arguments of calls " +
			"and in results, and in the prose of the model (--raw-prose leaves that as it is).\n\n" +
			"KEY is a session key, a session id (also of a transcript that no session names any more), a label, or a file: a transcript, an archive or a copy of one. What Claude's " +
			"own program keeps of a session that it answers stands among the newest messages, each once. With --offset the answer is the page that ends so many messages before the newest; nextOffset is what to give for the page before it.\n\n" +
			"With --both-eras what the other era has of the session stands among the rest by its time, each message once; one that both have is marked as of the era that OpenClaw reads.",
		Flags: append([]Flag{
			{Name: "limit", Value: "N", Default: "200", Help: "how many messages, at most 1000", Takes: "a positive whole number, for example --limit 50", Check: IsCount},
			{Name: "offset", Value: "N", Help: "pass over so many of the newest messages", Takes: "a whole number of at least 0, for example --offset 200", Check: IsWhole},
			{Name: "around", Value: "ID", Help: "the message with this id, and what was said before and behind it"},
			{Name: "include-tools", Help: "show the results of tools too"},
			{Name: "raw-prose", Help: "leave the markup in what the model said"},
			bothErasFlag,
		}, partFlags...),
		Examples: []Example{
			{"oc sessions history main", "the newest messages of the main session"},
			{"oc sessions history main --limit 50 --offset 50 --json", "the second newest fifty, as a document"},
			{"oc sessions history main --archives --since 7d", "the last week, with what resets put away"},
		},
		Run: showHistory,
	}
}

// history is a page of a conversation, ready to be shown.
type history struct {
	talk  *talk
	page  *store.Page
	bound *store.Conversation // what Claude's command line program keeps of the session; nil for nothing

	waiting *waiting                       // nil where the store does not keep what waits
	sources map[*store.Conversation]string // what clients know a transcript by
	sender  bool                           // who sent a message is told as an object

	messages [][]byte // compact JSON, the oldest first
	times    []int64  // of the rows, epoch ms
	of       []*store.Conversation
	beside   [][]part // calls of tools that stood beside the words of a message, which alone OpenClaw shows of it
	bytes    int      // of the messages as a JSON array

	around  bool // the page is that around a message
	newer   int  // messages behind that page
	limited bool // an offset was given
	offset  int
	next    int // the offset of the page before this one
	more    bool

	dropped   bool // messages that belong to the page did not fit
	truncated bool // texts were cut
	redacted  bool
	cleaned   bool
	tools     int // results of tools that are not shown
	calls     int // calls of tools that are not shown
	hidden    int // messages that only steer OpenClaw, copies, empty ones
	oversized int // messages in whose place a stand-in is
}

func showHistory(ctx context.Context, c *Call) error {
	t, err := c.talk(ctx, c.Arg(0), c.Bool("archives"))
	if err != nil {
		return err
	}
	limit := int(min(c.Int("limit"), historyLimit))
	if c.Int("limit") > historyLimit {
		c.Notef("--limit: %d messages at most", historyLimit)
	}
	h := &history{talk: t, limited: c.Given("offset"), offset: int(min(c.Int("offset"), 1<<40))}
	part := c.part()
	part.ByTime = len(t.era) > 0 && len(t.all) > 1
	if part.Limit, part.Offset, part.Bytes, part.Whole = limit, h.offset, store.PageBytes, h.limited; h.offset == 0 {
		part.Limit = limit*20 + 20 // some of them do not show
	}
	if part.Around = c.String("around"); part.Around != "" {
		if h.limited {
			return Usagef("--around and --offset exclude each other; give one of them")
		}
		part.Limit = limit
	}
	if h.page, err = store.ReadPart(ctx, t.all, part); err != nil {
		return c.partError(t, err)
	}
	if h.around = part.Around != ""; h.around && h.page.Anchor == 0 {
		return &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("--around: no message of %s that is shown has the id %q; oc sessions history --json gives ids, and --all-branches or --archives more messages", t.name(), part.Around)}
	}
	if err := h.join(ctx, part); err != nil {
		return err
	}
	view := visible.View{RawProse: c.Bool("raw-prose"), Redactor: c.redactor(t.l.cfg)}
	if err := h.wait(ctx, view); err != nil {
		return storeError(t.row.Store(), err)
	}
	h.place(ctx)
	h.show(limit, c.Bool("include-tools"), view, c.JSON())
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { h.document(c, p); return nil }); err != nil {
			return err
		}
	} else {
		h.text(ctx, c)
	}
	c.remarkTalk(t)
	return cmp.Or(c.tellFlaws(h.page), c.tell(t.l.failed))
}

// join adds what Claude's command line program keeps of the session. What of it cannot be read is told, and the rest shown.
func (h *history) join(ctx context.Context, part store.Part) error {
	if h.talk.row == nil {
		return nil
	}
	if h.bound = h.talk.row.Bound(); h.bound == nil {
		return nil
	}
	if err := h.page.Join(ctx, h.talk.row, h.bound, part); err != nil {
		if ctx.Err() != nil {
			return err
		}
		h.page.Unread = append(h.page.Unread, store.Unread{Of: h.bound, Err: err})
	}
	return nil
}

// place finds out what the release of the store says of where messages stood.
func (h *history) place(ctx context.Context) {
	if r := h.talk.row; r != nil && r.Later() {
		h.sender, h.sources = true, map[*store.Conversation]string{}
		for _, one := range h.talk.all {
			h.sources[one] = r.Source(ctx, one)
		}
	}
}

// part reads partFlags.
func (c *Call) part() (p store.Part) {
	p.AllBranches, p.Branch = c.Bool("all-branches"), c.String("branch")
	p.Since, _ = parseMoment(c.String("since"), c.Now())
	p.Before, _ = parseMoment(c.String("before"), c.Now())
	return p
}

// partError is what an error of reading messages means.
func (c *Call) partError(t *talk, err error) error {
	var none *store.NoBranch
	if errors.As(err, &none) {
		tips := none.Tips
		if len(tips) > 5 {
			tips = tips[len(tips)-5:]
		}
		return Usagef("--branch: no entry of %s has the id %q; its newest branches end at %s", t.name(), none.ID, strings.Join(tips, ", "))
	}
	if t.row != nil {
		return storeError(t.row.Store(), err)
	}
	return err
}

// show makes the messages of the page fit to be read, in OpenClaw's order: what a chat shows of them, the newest limit of these, then
// without results of tools, cleaned, masked and cut, and at last as many as fit. For people nothing is dropped for its size.
func (h *history) show(limit int, tools bool, view visible.View, fit bool) {
	raws := make([][]byte, len(h.page.Messages))
	for i := range h.page.Messages {
		m := &h.page.Messages[i]
		mark := visible.Mark{ID: m.ID, Time: m.Time, Seq: m.Seq, Source: h.sources[m.Of], Event: m.Event, Sender: h.sender}
		if len(h.talk.all) > 1 {
			mark.Of = m.Of.ID
		}
		mark.Era = string(h.talk.era[m.Of])
		switch {
		case m.Of.Reason == store.ClaudeCLI && m.Long:
			raws[i] = visible.Oversized(m.Raw, m.Time)
		case m.Of.Reason == store.ClaudeCLI:
			raws[i] = m.Raw
		case m.Kind == transcript.Compaction && m.Raw == nil:
			raws[i] = mark.Compaction()
		case m.Long:
			raws[i] = visible.Oversized(mark.With(m.Raw), m.Time)
		default:
			raws[i] = mark.With(m.Raw)
		}
	}
	started := int64(0)
	if r := h.talk.row; r != nil {
		if ms, ok := r.Stamp(row.SessionStartedAt); ok {
			started = int64(ms)
		}
	}
	if len(h.talk.all) > 1 {
		started = 0 // what is older than the session is asked for
	}
	shown := visible.Thread(raws, visible.ChatUnits, started)
	if h.around {
		shown = aroundOf(shown, h.page.Anchor-1, limit)
	} else if n := len(shown) - limit; n > 0 {
		shown = shown[n:]
	}
	oldest := 0
	if h.offset == 0 && !h.around && len(shown) > 0 && len(shown) == limit {
		oldest = shown[0].From // what is before it belongs to the next page
	}
	of := map[int]bool{}
	for i := range shown {
		m := &h.page.Messages[shown[i].From]
		of[shown[i].From] = true
		if len(shown[i].Message) > visible.MessageBytes {
			shown[i].Message = visible.Oversized(shown[i].Message, m.Time)
			h.oversized++
		} else if m.Long && !shown[i].Reply {
			h.oversized++
		}
	}
	h.hidden = len(raws) - oldest - len(of)
	if n := len(shown) - 1; h.around && n >= 0 { // what was read on either side and belongs to other pages is not hidden
		h.hidden = shown[n].From - shown[0].From + 1 - len(of)
		h.newer = h.page.Total - h.page.Messages[shown[n].From].Seq
	}
	var list [][]byte
	anchor := 0
	for _, s := range shown {
		if s.From < h.page.Anchor {
			anchor = len(list)
		}
		if role := transcript.Role(s.Message); (role == "toolResult" || role == "tool") && !tools {
			h.tools++
			continue
		}
		list = append(list, s.Message)
		h.times, h.of = append(h.times, h.page.Messages[s.From].Time), append(h.of, h.page.Messages[s.From].Of)
		var beside []part
		if n := len(transcript.Calls(raws[s.From])); n > 0 && !s.Reply && !h.page.Messages[s.From].Long && len(transcript.Calls(s.Message)) == 0 {
			h.calls += n
			masked, _ := view.Show(raws[s.From])
			for _, p := range parts(masked) {
				if strings.HasPrefix(p.aside, callSign) {
					beside = append(beside, p)
				}
			}
		}
		h.beside = append(h.beside, beside)
	}
	selected := len(list)
	if fit && !h.around {
		list, _, _ = visible.Fit(list, chatBytes)
	}
	for i := range list {
		var changed visible.Changed
		list[i], changed = view.Show(list[i])
		h.truncated = h.truncated || changed.Truncated
		h.redacted = h.redacted || changed.Redacted
		h.cleaned = h.cleaned || changed.Cleaned
	}
	standIn := false
	room := historyBytes
	if h.waiting != nil {
		room -= len(h.waiting.json)
	}
	if fit && h.around {
		from, to := fitAround(list, min(anchor, max(0, len(list)-1)), room)
		list, h.times, h.of, h.beside = list[from:to], h.times[:to], h.of[:to], h.beside[:to]
	}
	if h.messages, h.bytes, standIn = visible.Fit(list, room); !fit && len(h.messages) < len(list) {
		h.messages, standIn = list, false
	}
	cut := len(h.times) - len(h.messages)
	h.times, h.of, h.beside = h.times[cut:], h.of[cut:], h.beside[cut:]
	h.dropped = standIn || len(h.messages) < selected
	h.turn(shown)
}

// turn works out where the page before this one begins.
func (h *history) turn(shown []visible.Shown) {
	end := h.page.Total
	if end < 0 {
		end = len(h.page.Messages)
	}
	read := h.page.Offset + len(h.page.Messages)
	h.next = read
	if len(shown) > 0 && len(h.messages) == 0 {
		h.next = end - h.page.Messages[shown[0].From].Seq + 1
	}
	for _, m := range h.messages {
		if seq, ok := span.Float(span.Path(m, "__openclaw", "seq")); ok && seq > 0 {
			h.next = end - int(seq) + 1
			break
		}
	}
	h.next = max(h.next, h.offset)
	h.more = h.next < end || h.page.Total < 0
}

// aroundOf are limit messages around the one that was asked for, as many on either side where there are so many.
func aroundOf(shown []visible.Shown, anchor, limit int) []visible.Shown {
	at := slices.IndexFunc(shown, func(s visible.Shown) bool { return s.From >= anchor })
	if at < 0 {
		at = max(0, len(shown)-1)
	}
	start, end := at, min(len(shown), at+1)
	for end-start < limit && (start > 0 || end < len(shown)) {
		if start > 0 {
			start--
		}
		if end < len(shown) && end-start < limit {
			end++
		}
	}
	return shown[start:end]
}

// fitAround are the bounds of as many messages around one as an array of that many bytes holds.
func fitAround(list [][]byte, at, room int) (from, to int) {
	if len(list) == 0 {
		return 0, 0
	}
	from, to = at, at+1
	size := len(list[at]) + 2
	for older, newer := true, true; older || newer; {
		if older = older && from > 0 && size+len(list[from-1])+1 <= room; older {
			from--
			size += len(list[from]) + 1
		}
		if newer = newer && to < len(list) && size+len(list[to])+1 <= room; newer {
			size += len(list[to]) + 1
			to++
		}
	}
	return from, to
}

// left says in words what the page does not show.
func (h *history) left() (parts []string) {
	p := h.page
	for _, x := range []struct {
		n         int
		one, more string
	}{
		{h.tools, "1 result of a tool (--include-tools shows it)", "%d results of tools (--include-tools shows them)"},
		{h.newer, "1 newer message", "%d newer messages"},
		{h.hidden, "1 message that is not for reading", "%d messages that are not for reading"},
		{h.oversized, "the content of 1 message that is too long", "the content of %d messages that are too long"},
		{p.OffBranch, "1 message on another branch (--all-branches)", "%d messages on other branches (--all-branches)"},
		{p.Before, "1 message from before a reset (--all-branches)", "%d messages from before a reset (--all-branches)"},
		{p.Outside, "1 message of another time", "%d messages of other times"},
		{p.Repeats, "1 message that stood in two transcripts", "%d messages that stood in two transcripts"},
		{p.Elsewhere, "1 message that Claude's own program keeps", "%d messages that Claude's own program keeps"},
		{p.Broken, "1 row that cannot be read", "%d rows that cannot be read"},
	} {
		switch {
		case x.n == 1:
			parts = append(parts, x.one)
		case x.n > 1:
			parts = append(parts, fmt.Sprintf(x.more, x.n))
		}
	}
	return parts
}

func (h *history) document(c *Call, p *span.Printer) {
	t := h.talk
	p.Object()
	if p.Key("sessionKey"); t.key != "" {
		p.String(t.key)
	} else {
		p.Null()
	}
	p.Key("sessionId").String(t.id)
	if t.row != nil {
		p.Key("agentId").String(t.row.Store().Agent)
		p.Key("era").String(string(t.row.Era()))
	}
	p.Key("messages").Array()
	for _, m := range h.messages {
		p.Raw(m)
	}
	p.End()
	p.Key("truncated").Bool(h.dropped || h.truncated)
	p.Key("droppedMessages").Bool(h.dropped)
	p.Key("contentTruncated").Bool(h.truncated)
	p.Key("contentRedacted").Bool(h.redacted)
	p.Key("contentCleaned").Bool(h.cleaned)
	if h.waiting == nil {
		p.Key("bytes").Int(int64(h.bytes))
	} else {
		p.Key("bytes").Int(int64(h.bytes + len(h.waiting.json)))
		p.Key("pendingInputs").Raw(h.waiting.json)
	}
	if !h.around {
		p.Key("offset").Int(int64(h.offset))
	}
	for _, name := range []string{"total", "totalMessages"} {
		if p.Key(name); h.page.Total < 0 {
			p.Null()
		} else {
			p.Int(int64(h.page.Total))
		}
	}
	if !h.around {
		if p.Key("hasMore").Bool(h.more); h.more {
			p.Key("nextOffset").Int(int64(h.next))
		}
	}
	p.Key("notShown").Object()
	for _, x := range []struct {
		name string
		n    int
	}{
		{"toolResults", h.tools},
		{"toolCalls", h.calls},
		{"hidden", h.hidden},
		{"newer", max(0, h.newer)},
		{"oversized", h.oversized},
		{"otherBranches", h.page.OffBranch},
		{"beforeReset", h.page.Before},
		{"otherTimes", h.page.Outside},
		{"withoutTime", h.page.Untimed},
		{"repeated", h.page.Repeats},
		{"claudeCli", h.page.Elsewhere},
		{"broken", h.page.Broken},
	} {
		p.Key(x.name).Int(int64(x.n))
	}
	p.End()
	c.printTalk(p, t, h.bound)
	if t.row != nil && t.row.Store().Other != nil {
		p.Key("otherEra").Object()
		otherEra(p, t.row.Store().Other)
		p.Key("included").Bool(t.era != nil)
		p.End()
	}
	t.sight.print(p)
	printFlaws(p, h.page)
	t.l.failed.print(p)
	p.End()
}
