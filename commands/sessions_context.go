package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/compaction"
	"oc/transcript/visible"
)

func sessionsContext() *Command {
	return &Command{
		Name:  "context",
		Args:  "[KEY]",
		Short: "say what fills a session's context, and when it is compacted",
		Long: "Says how large the model's window is and where that comes from, what the context is made of, what must stay free, how far it is to the next flush of the memory and to " +
			"compaction, and which settings make compaction come too often. Everything is estimated as OpenClaw 2026.7.35 does it: four characters a token, an image 1,200; what the last " +
			"answer reported counts more. What only a run knows, such as a system prompt that no report was kept of, is unknown. Without KEY all sessions are listed.",
		Flags: []Flag{
			agentFlag, allAgentsFlag, storeFlag, asFlag,
			{Name: "entries", Help: "list what the model sees, with secrets masked"},
		},
		Examples: []Example{
			{"oc sessions context main", "how full the main session is"},
			{"oc sessions context", "how full the sessions of the default agent are"},
			{"oc sessions context main --entries", "what the model sees, one message a line"},
		},
		Exits: []int{ExitBusy},
		Run:   contextOfSession,
	}
}

// filled is a session, what fills its context, and what is decided by it.
type filled struct {
	*store.Fill
	row      *store.Row
	window   int
	from     string // where the window comes from
	seen     int    // rows that the model sees
	system   int    // tokens of the system prompt and the tools; -1: unknown
	settings compaction.Settings
	counters compaction.Counters
	gate     compaction.Gate
	precheck compaction.Precheck
	texts    []string
	notes    []string
}

func contextOfSession(ctx context.Context, c *Call) error {
	if c.Arg(0) == "" {
		if c.Bool("entries") {
			return Usagef("--entries lists what the model sees of one session; name it")
		}
		return contexts(ctx, c)
	}
	l, r, err := c.readable(ctx)
	if err != nil {
		return err
	}
	one, err := r.Conversation(ctx)
	if err != nil {
		return storeError(r.Store(), err)
	}
	if one.Missing {
		return Failf("the transcript of %s is not there: %s", r.Key, one.Path)
	}
	fill, err := one.Fill(ctx)
	if err != nil {
		return Failf("the transcript of %s cannot be read: %w", r.Key, err)
	}
	x := weighed(l.cfg, r, fill, l.acp)
	if c.Bool("entries") {
		redactor := c.redactor(l.cfg)
		x.texts = make([]string, len(fill.Rows))
		err := fill.Texts(ctx, func(i int, text string) error {
			x.texts[i] = strings.Join(strings.Fields(redactor.Show(text)), " ")
			return nil
		})
		if err != nil {
			return Failf("the transcript of %s cannot be read: %w", r.Key, err)
		}
	}
	if c.JSON() {
		err = c.Document(x.document)
	} else {
		x.text(c)
	}
	if err != nil {
		return err
	}
	if fill.Broken > 0 {
		c.Warnf("%s of the transcript cannot be read, and %s left out; oc doctor locates them", plural(fill.Broken, "row", "rows"), map[bool]string{true: "is", false: "are"}[fill.Broken == 1])
	}
	c.remark(r.Store())
	return c.tell(l.failed)
}

// weighed decides on a session by what fills its context.
func weighed(cfg *config.Config, r *store.Row, fill *store.Fill, acp store.ACP) *filled {
	x := &filled{Fill: fill, row: r, seen: len(fill.Rows), system: -1}
	v := r.View(acp)
	x.window, x.from = int(v.Model.ContextTokens), windowFrom(v.Model.ContextSource)
	if n, ok := r.Number(row.ContextTokens); ok && r.HasContextTokens() && n > 0 && n < 1<<40 {
		x.window, x.from = int(n), "its last run"
	}
	if n, ok := r.SystemTokens(); ok {
		x.system = n
	}
	defaults, _ := cfg.Value("agents", "defaults")
	x.settings = compaction.Read(defaults, x.window)
	total, known, fresh := r.Tokens()
	x.counters = compaction.Counters{Fresh: known && fresh}
	if known {
		x.counters.Total = total
	}
	x.counters.Compactions, _ = r.Number(row.CompactionCount)
	x.counters.Flushed, x.counters.HasFlushed = r.Number(row.MemoryFlushCompactionCount)
	if n, ok := span.Float(span.Path(r.Val, "memoryFlush", "compactionCount")); ok && !x.counters.HasFlushed { // in a database
		x.counters.Flushed, x.counters.HasFlushed = n, true
	}
	x.gate = compaction.Check(x.counters, x.window, x.settings.Floor, x.settings.Flush.Soft, float64(fill.Estimate))
	x.precheck = compaction.Weigh(fill.Pressure+max(x.system, 0), x.window, x.settings.Reserve, 0)
	x.blame()
	return x
}

// release gives up what only the decisions were made from: a list keeps no rows.
func (x *filled) release() {
	x.Fill = x.Fill.Numbers()
}

func windowFrom(source string) string {
	switch source {
	case "defaults":
		return "agents.defaults.contextTokens"
	case "model", "default-model":
		return "the model's entry in the configuration"
	}
	return "OpenClaw's default"
}

// blame finds what makes compaction come too often, or useless.
func (x *filled) blame() {
	note := func(format string, args ...any) { x.notes = append(x.notes, fmt.Sprintf(format, args...)) }
	s, w := x.settings, x.window
	threshold := w - s.Floor - s.Flush.Soft
	switch {
	case w <= 0:
		note("the window is not known, so nothing can be said about when it is full")
		return
	case threshold <= 0:
		note("the window of %s is smaller than what must stay free (reserveTokensFloor %s and softThresholdTokens %s): the memory is never flushed; give the model's true window, or lower "+
			"agents.defaults.compaction.reserveTokensFloor", term.Count(int64(w)), term.Count(int64(s.Floor)), term.Count(int64(s.Flush.Soft)))
	case threshold < w/2:
		note("more than half of the window must stay free (agents.defaults.compaction.reserveTokens, reserveTokensFloor and memoryFlush.softThresholdTokens): compaction comes early")
	}
	if threshold > 0 && s.Keep >= threshold {
		note("keepRecentTokens %s is not less than the threshold %s: a compaction frees nothing, and comes again at once", term.Count(int64(s.Keep)), term.Count(int64(threshold)))
	}
	if w < 32_000 {
		note("a window of %s tokens is small for an agent: see that the model's contextWindow is right", term.Count(int64(w)))
	}
	if x.system > w/2 {
		note("the system prompt and the tools take more than half of the window: fewer tools, skills or workspace files help, compaction does not")
	}
	if n := x.Tokens[store.OnResults]; x.Total > 2000 && n > x.Total/2 {
		note("results of tools are %d %% of what the model sees: tools that answer in less, or contextPruning, help more than compaction", n*100/x.Total)
	}
	if n := x.Tokens[store.OnImages]; x.Total > 2000 && n > x.Total/2 {
		note("images are %d %% of what the model sees", n*100/x.Total)
	}
	if !x.counters.Fresh && x.counters.Total > 0 {
		note("the row's own number of tokens is stale: it was carried over since the last run")
	}
	if s.MaxBytes > 0 && x.Of.Bytes > s.MaxBytes {
		note("the transcript is larger than maxActiveTranscriptBytes: the next turn compacts it for its size")
	}
	if s.Flush.Enabled && s.Flush.Bytes > 0 && x.Of.Bytes >= s.Flush.Bytes && !x.counters.Done() {
		note("the transcript has reached %s (memoryFlush.forceFlushTranscriptBytes): the memory is flushed at the next turn whatever its tokens", term.Bytes(s.Flush.Bytes))
	}
	if x.Compactions >= 3 && x.Last >= 0 && len(x.Branch)-x.Last < 5 {
		note("%d compactions, and hardly a message since the last one: it seems to compact again and again", x.Compactions)
	}
}

// share is a part of the window in percent.
func (x *filled) share(n int) string {
	if x.window <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%d %%)", n*100/x.window)
}

var partNames = map[store.FillPart]string{
	store.OnSummary: "summaries", store.OnUser: "the user", store.OnAnswers: "answers", store.OnCalls: "calls of tools",
	store.OnResults: "results of tools", store.OnImages: "images", store.OnOther: "other",
}

func (x *filled) text(c *Call) {
	n := func(n int) string { return term.Count(int64(n)) }
	window := term.Unknown
	if x.window > 0 {
		window = fmt.Sprintf("%s tokens, from %s", n(x.window), x.from)
	}
	system := term.Unknown + " (no run has left a report)"
	if x.system >= 0 {
		system = n(x.system) + " tokens, with the schemas of tools" + x.share(x.system)
	}
	estimate := fmt.Sprintf("%s tokens%s, estimated", n(x.Estimate), x.share(x.Estimate))
	if x.Reported > 0 {
		estimate = fmt.Sprintf("%s tokens%s: %s by the last answer, %s since", n(x.Estimate), x.share(x.Estimate), n(x.Reported), n(x.Estimate-x.Reported))
	}
	last := term.Unknown
	if x.counters.Total > 0 {
		last = fmt.Sprintf("%s tokens (%s)", n(int(x.counters.Total)), map[bool]string{true: "fresh", false: "stale"}[x.counters.Fresh])
	}
	distance := func(never, done string) string {
		switch left := x.gate.Threshold - x.gate.Tokens; {
		case x.window <= x.settings.Floor+x.settings.Flush.Soft:
			return never + ": the window is too small"
		case !x.gate.Known:
			return term.Unknown
		case left > 0:
			return fmt.Sprintf("from %s tokens: %s to go", n(x.gate.Threshold), n(left))
		}
		return done
	}
	flush := distance("never", fmt.Sprintf("at the next turn: %s tokens are reached", n(x.gate.Threshold)))
	switch {
	case !x.settings.Flush.Enabled:
		flush = "off (agents.defaults.compaction.memoryFlush.enabled)"
	case x.counters.Done():
		flush = "done since the last compaction"
	}
	facts := []term.Fact{
		{Label: "Session", Value: x.row.Key, Style: term.Bold},
		{Label: "Window", Value: window},
		{Label: "In context", Value: estimate},
		{Label: "By the row", Value: last},
		{Label: "System prompt", Value: system},
		{Label: "Must stay free", Value: fmt.Sprintf("%s tokens", n(x.settings.Reserve))},
		{Label: "Memory flush", Value: flush},
		{Label: "Compaction", Value: distance("only when a prompt does not fit", fmt.Sprintf("at the next turn: %s tokens are reached", n(x.gate.Threshold)))},
		{Label: "Next prompt", Value: x.routeLine()},
		{Label: "Compactions", Value: fmt.Sprintf("%d on the active branch", x.Compactions)},
		{Label: "Transcript", Value: x.bytesLine()},
	}
	c.Out.Facts(facts...)
	c.Out.Printf("\nWhat the model sees: %s, %s tokens by rule of thumb\n", plural(len(x.Rows), "message", "messages"), n(x.Total))
	t := c.Out.Table(term.Column{Head: "What"}, term.Column{Head: "Tokens", Right: true}, term.Column{Head: "Share", Right: true})
	for _, p := range store.FillParts {
		if v := x.Tokens[p]; v > 0 {
			t.Row(partNames[p], n(v), fmt.Sprintf("%d %%", v*100/max(x.Total, 1)))
		}
	}
	t.End()
	if x.Hidden > 0 {
		c.Out.Printf("%s of the branch before that are summed up or left out\n", plural(x.Hidden, "message", "messages"))
	}
	if len(x.notes) > 0 {
		c.Out.Printf("\nNoticed:\n")
		reasons(c.Out, "", x.notes)
	}
	if x.texts == nil {
		return
	}
	c.Out.Printf("\n")
	t = c.Out.Table(term.Column{Head: "Line", Right: true}, term.Column{Head: "Who"}, term.Column{Head: "Tokens", Right: true}, term.Column{Head: "Text", Cut: term.End, Min: 20})
	for i, r := range x.Rows {
		text, _ := visible.Cut(x.texts[i], 200)
		t.Row(fmt.Sprint(r.Line), voice(r), n(int(r.Tokens)), text)
	}
	t.End()
}

func (x *filled) routeLine() string {
	switch {
	case x.window <= 0:
		return term.Unknown
	case x.precheck.Over == 0:
		return fmt.Sprintf("fits: about %s of %s tokens", term.Count(int64(x.Pressure+max(x.system, 0))), term.Count(int64(x.precheck.Budget)))
	}
	return fmt.Sprintf("too large by about %s tokens: OpenClaw compacts before it sends it", term.Count(int64(x.precheck.Over)))
}

func (x *filled) bytesLine() string {
	s := term.Unknown
	if x.Of.Bytes >= 0 {
		s = term.Bytes(x.Of.Bytes)
	}
	if x.settings.MaxBytes > 0 {
		return fmt.Sprintf("%s of %s (maxActiveTranscriptBytes)", s, term.Bytes(x.settings.MaxBytes))
	}
	return s + ", no limit of bytes"
}

// voice is who speaks in a row, in OpenClaw's words.
func voice(r store.FillRow) string {
	switch r.Kind {
	case transcript.Compaction, transcript.BranchSummary:
		return "summary"
	case transcript.CustomMessage:
		return "custom"
	}
	switch r.Role {
	case compaction.User:
		return "user"
	case compaction.Assistant:
		return "assistant"
	case compaction.Result:
		return "toolResult"
	case compaction.Bash:
		return "bashExecution"
	}
	return "other"
}

func (x *filled) document(p *span.Printer) error {
	number := func(key string, n int, known bool) {
		if p.Key(key); known {
			p.Int(int64(n))
		} else {
			p.Null()
		}
	}
	p.Object()
	p.Key("key").String(x.row.Key)
	number("contextWindow", x.window, x.window > 0)
	p.Key("contextWindowFrom").String(x.from)
	p.Key("estimatedTokens").Int(int64(x.Estimate))
	number("reportedTokens", x.Reported, x.Reported > 0)
	number("totalTokens", int(x.counters.Total), x.counters.Total > 0)
	p.Key("totalTokensFresh").Bool(x.counters.Fresh)
	number("systemTokens", x.system, x.system >= 0)
	p.Key("parts").Object()
	for _, part := range store.FillParts {
		p.Key(string(part)).Int(int64(x.Tokens[part]))
	}
	p.End()
	p.Key("messages").Int(int64(x.seen))
	p.Key("hiddenMessages").Int(int64(x.Hidden))
	p.Key("reserveTokens").Int(int64(x.settings.Reserve))
	p.Key("keepRecentTokens").Int(int64(x.settings.Keep))
	number("threshold", x.gate.Threshold, x.gate.Known)
	p.Key("compactsNext").Bool(x.gate.Compact)
	p.Key("flushesNext").Bool(x.gate.Flush && x.settings.Flush.Enabled)
	p.Key("flushedThisCycle").Bool(x.counters.Done())
	p.Key("route").String(string(x.precheck.Route))
	p.Key("overflowTokens").Int(int64(x.precheck.Over))
	p.Key("compactionMode").String(map[bool]string{true: "safeguard", false: "default"}[x.settings.Safeguard])
	p.Key("compactions").Int(int64(x.Compactions))
	number("transcriptBytes", int(x.Of.Bytes), x.Of.Bytes >= 0)
	number("maxActiveTranscriptBytes", int(x.settings.MaxBytes), x.settings.MaxBytes > 0)
	p.Key("brokenRows").Int(int64(x.Broken))
	p.Key("findings").Array()
	for _, note := range x.notes {
		p.String(note)
	}
	p.End()
	if x.texts != nil {
		p.Key("entries").Array()
		for i, r := range x.Rows {
			p.Object()
			p.Key("line").Int(int64(r.Line))
			p.Key("who").String(voice(r))
			p.Key("tokens").Int(int64(r.Tokens))
			p.Key("text").String(x.texts[i])
			p.End()
		}
		p.End()
	}
	p.End()
	return nil
}
