package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
	"oc/transcript/compaction"
	"oc/transcript/provider"
)

func sessionsCompact() *Command {
	return &Command{
		Name:  "compact",
		Args:  "KEY",
		Short: "put a summary in place of the older part of a conversation",
		Long: "Has the older part of a session's conversation summarised, and adds the summary to the transcript: the model then sees it, and the end of the conversation as it is. Nothing is taken " +
			"out of the transcript, and what it held stays beside it as <name>.bak.<time>, but for one in a database. Who writes the summary is said by --provider, which may be given more than once: where one fails, does not " +
			"answer in time, or leaves out a section, the next is asked, and at last extract, which needs no model and quotes.\n\n" +
			"extract quotes requests, decisions, open items, rules and identifiers. exec:COMMAND runs a command, its words parted by blanks, without a shell: it gets a JSON document with instructions, " +
			"previousSummary and conversation on its standard input, and writes the summary to its standard output. openai:URL#MODEL asks an endpoint that speaks as OpenAI's does, Ollama and llama.cpp " +
			"among them; its key is OC_PROVIDER_KEY.\n\n" +
			"With --successor the session goes on in a new transcript under a new id, which has the summary and what is kept, without what the summary stands for, as OpenClaw's truncateAfterCompaction makes it; the one so far " +
			"stays as it is, and a checkpoint of the row names it. In a database, where OpenClaw has given up that setting, it stays as an earlier transcript of the session, with the other branches of the conversation.\n\n" +
			"Secrets are masked before anybody gets to read the conversation, and in the summary. --max-lines needs no summary: it cuts off all lines but the first and the last. The transcript stays as it " +
			"is where anything fails, where it is in use, and where it was written in the last five minutes. oc undo takes it back. While a gateway of this state lives it is asked to do it, with the session's own model.",
		Flags: slices.Concat([]Flag{
			{Name: "max-lines", Value: "N", Help: "keep the first line and the last N-1, and summarise nothing", Takes: "a positive whole number", Check: isPositive},
			{Name: "keep-recent-tokens", Value: "N", Help: "about how much of the end is kept as it is; 0: nothing but the summary", Takes: "a whole number, 0 or more; the configuration's is else taken, or 20000", Check: IsWhole},
			providerFlag("who writes the summary; may be repeated"),
			{Name: "successor", Help: "go on in a new transcript, and leave this one as it is"},
			{Name: "raw", Help: "mask nothing: providers and the summary get secrets as they are"},
			{Name: "show-plan", Help: "show what a provider would get, and change nothing"},
		}, slices.DeleteFunc(slices.Clone(verbFlags), func(f Flag) bool { return f.Name == yesFlag.Name })),
		Examples: []Example{
			{"oc sessions compact main --main --dry-run", "what would be summarised, and what would stay"},
			{"oc sessions compact main --main --provider openai:http://[::1]:8080/v1#m", "by a model on this machine"},
			{"oc sessions compact agent:main:cron:nightly --max-lines 400", "cut off old lines"},
		},
		Exits: verbExits,
		Run:   compactSession,
	}
}

// compacted is what came of it.
type compacted struct {
	changed
	row      *store.Row
	of       *store.Conversation
	short    *store.Shortening      // nil with --max-lines
	trimming *compaction.Trimming   // nil without
	why      string                 // it was not compacted
	plan     maintenance.Shortening // of the transcript
	cut      maintenance.Cutting    // of one in a database
	settings compaction.Settings
	config   *config.Config
	ask      []provider.Provider
}

func compactSession(ctx context.Context, c *Call) error {
	if c.Given("max-lines") && (c.Given("keep-recent-tokens") || c.Given("provider") || c.Bool("show-plan") || c.Bool("successor")) {
		return Usagef("--max-lines cuts off lines and summarises nothing; leave out --keep-recent-tokens, --provider, --successor and --show-plan")
	}
	if err := c.keeps(); err != nil {
		return err
	}
	cfg, all, err := c.named(ctx, c.Args)
	if err != nil {
		return err
	}
	if err := c.sparesMain(all, "compacted"); err != nil {
		return err
	}
	dry := c.Bool("dry-run") || c.Bool("show-plan")
	x := &compacted{changed: all[0], config: cfg}
	if !dry {
		conn, err := c.way(ctx, cfg, x.target.Index, x.sqlite())
		if err != nil {
			return err
		}
		if conn != nil {
			return c.hand(ctx, conn, cfg, c.compactVerb(), all)
		}
	}
	if !dry {
		if all, err = c.settled(ctx, cfg, all); err != nil {
			return err
		}
		x.changed = all[0]
	}
	i := slices.IndexFunc(x.from.Rows, func(r store.Row) bool { return r.Key == x.keys[0] })
	x.row = &x.from.Rows[i]
	if x.of, err = x.row.Conversation(ctx); err != nil {
		return changeError(storeError(x.from, err), nil)
	}
	if x.of.Missing || x.of.Reason != store.Current || !x.sqlite() && !x.of.Plain() {
		return Failf("the transcript of %s is not there, so there is nothing to compact; oc sessions trace %s says where it went", x.row.Key, x.row.Key)
	}
	if x.sqlite() {
		x.cut.Grown, err = x.of.Grown(ctx)
	} else {
		x.plan.Info, err = x.of.Stat()
	}
	if err == nil {
		err = x.prepare(ctx, c, cfg)
	}
	var short *store.Short
	switch {
	case errors.As(err, &short) && short.Stuck:
		return Failf("the session %s cannot be compacted: %s; nothing was changed. Reset it, or give --keep-recent-tokens 0 to keep a summary alone", x.row.Key, short.Why)
	case errors.As(err, &short):
		x.why = short.Why
		return c.reportCompact(ctx, x, dry)
	case errors.Is(err, store.ErrOldVersion), errors.Is(err, compaction.ErrNoHeader):
		return &Error{Exit: ExitRefused, Err: fmt.Errorf("the transcript %s is not compacted: %w; nothing was changed", x.of.Path, err)}
	case err != nil:
		return changeError(fmt.Errorf("the transcript of %s cannot be read: %w", x.row.Key, err), nil)
	case x.why != "":
		return c.reportCompact(ctx, x, dry)
	}
	x.plan.Path = x.of.Path
	plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
		if x.sqlite() {
			x.cut.Reason, x.cut.Trim = x.plan.Reason, x.trimming
			if next := x.plan.Successor; next != nil {
				x.cut.Next = next.ID
			}
			return maintenance.Cut(s, x.keys[0], x.cut, c.Now())
		}
		return maintenance.Shorten(s, x.keys[0], x.plan, c.Now())
	}
	// Nobody is asked for a summary that could not be put in place.
	if x.sqlite() {
		x.done, err = c.rehearseRows(ctx, &x.changed, plan)
	} else {
		x.done, err = c.rehearsal(ctx, cfg, x.target, maintenance.Alone(), plan)
	}
	if err != nil {
		return changeError(err, nil)
	}
	if dry || x.done.Plan.Empty() {
		return c.reportCompact(ctx, x, dry)
	}
	if x.short != nil {
		how := c.summarizer(cfg, x)
		how.Rules = c.rules(cfg, x.target.Agent, x.settings)
		if err := x.short.Summarize(ctx, how); err != nil {
			if ctx.Err() != nil {
				return &Error{Exit: ExitInterrupted, Err: errors.New("interrupted; nothing was changed")}
			}
			return Failf("no summary was written: %w; nothing was changed", err)
		}
		for _, note := range x.short.Notes {
			c.Warnf("%s", note)
		}
		id := uuid.NewString()[:8]
		row, err := x.short.Row(id, c.Now())
		if err != nil {
			return Failf("%s: %w; nothing was changed", x.of.Path, err)
		}
		x.cut.Line = row
		x.plan.Content = store.Appended(x.of.Path, row)
		if next := x.plan.Successor; next != nil && x.sqlite() {
			after, err := x.short.Following(ctx, row, next.ID, c.Now())
			if err != nil {
				return Failf("%s: %w; nothing was changed", x.of, err)
			}
			x.cut.Rows = after.Rows
		} else if next != nil {
			next.Before, next.Summary, next.Leaf, next.Row = x.short.Before(), x.short.Summary, x.short.Leaf(), id
			if x.plan.Content, err = x.short.Successor(row, next.ID, c.Now()); err != nil {
				return Failf("%s: %w; nothing was changed", x.of.Path, err)
			}
		}
		x.plan.Tokens, x.plan.Known = x.short.After()
		x.cut.Tokens, x.cut.Known = x.plan.Tokens, x.plan.Known
	}
	x.via = viaLocal
	if x.sqlite() {
		x.done, err = c.applyRows(ctx, cfg, &x.changed, plan)
	} else {
		x.done, err = c.worker(cfg).Apply(ctx, x.target, maintenance.Alone(), plan)
	}
	if err != nil {
		return changeError(err, x.done)
	}
	return c.reportCompact(ctx, x, dry)
}

// compactVerb is the same as a request to a gateway, which has its own settings and model.
func (c *Call) compactVerb() verb {
	lines := int(c.Int("max-lines"))
	v := verb{past: "compacted", rewrites: true, plan: func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
		return maintenance.ShortenElsewhere(s, keys[0], lines == 0, c.Now())
	}, ask: func(k asked) gateway.Request { return gateway.Compact{Key: k.key, Agent: k.agent, MaxLines: lines} }}
	for _, flag := range []string{"provider", "keep-recent-tokens", "successor", "raw"} {
		if c.Given(flag) {
			v.ask, v.closed = nil, "it compacts with its own model and settings, not with --"+flag
		}
	}
	return v
}

// prepare decides what stays.
func (x *compacted) prepare(ctx context.Context, c *Call, cfg *config.Config) (err error) {
	if c.Given("max-lines") {
		n := int(c.Int("max-lines"))
		if x.sqlite() {
			x.trimming, err = x.of.TrimRows(ctx, n)
		} else {
			x.trimming, x.plan.Content, err = x.of.Trim(ctx, n)
		}
		if err == nil && !x.trimming.Compacted {
			x.why = fmt.Sprintf("its %d lines are no more than %d", x.trimming.Kept, n)
		}
		x.plan.Reason = fmt.Sprintf("%d lines of the transcript stay", x.trimming.Kept)
		return err
	}
	fill, err := x.of.Outline(ctx)
	if err != nil {
		return err
	}
	w := weighed(cfg, x.row, fill, nil)
	x.settings = w.settings
	keep := x.settings.Keep
	if c.Given("keep-recent-tokens") {
		keep = int(c.Int("keep-recent-tokens"))
	}
	if x.short, err = fill.Shorten(keep, w.window); err != nil {
		return err
	}
	summarised, kept := x.short.Messages()
	if c.Bool("successor") {
		x.plan.Successor = &maintenance.Successor{ID: uuid.NewString(), Checkpoint: uuid.NewString()}
	}
	x.plan.Summary, x.plan.Reason = true, fmt.Sprintf("%s summarised, %d stay", plural(summarised, "message is", "messages are"), kept)
	if x.ask, err = c.providers(x.settings); err != nil {
		return err
	}
	if !slices.ContainsFunc(x.ask, func(p provider.Provider) bool { return p == provider.Provider(provider.Extract{}) }) {
		x.ask = append(x.ask, provider.Extract{})
	}
	return nil
}

func (c *Call) summarizer(cfg *config.Config, x *compacted) store.Summarizer {
	return c.asking(cfg, x.ask, x.settings, weighed(cfg, x.row, x.short.Fill, nil).window)
}

// reportCompact says what was, or would be, done.
func (c *Call) reportCompact(ctx context.Context, x *compacted, dry bool) error {
	exit := ExitDone
	if x.done != nil {
		c.remarkRun(x.done)
		for _, k := range x.done.Plan.Protected {
			c.Warnf("%s was not compacted: %s", or(k.Key, k.Target), k.Reason)
			if exit = ExitRefused; k.Rule == maintenance.Locked {
				exit = ExitBusy
			}
		}
		x.why = or(x.why, map[bool]string{true: "it is in use"}[exit != ExitDone])
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { return x.document(ctx, c, p, dry) }); err != nil {
			return err
		}
	} else if exit == ExitDone {
		if err := x.text(ctx, c, dry); err != nil {
			return err
		}
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

// archived is where the transcript as it was lies.
func (x *compacted) archived() string {
	if made := x.created(); made == "" || x.plan.Successor == nil {
		return made
	}
	return x.of.Path
}

// created is the file that came to be.
func (x *compacted) created() string {
	if x.done == nil {
		return ""
	}
	for i := range x.done.Plan.Actions {
		if a := &x.done.Plan.Actions[i]; a.Kind == maintenance.Create {
			return a.Target
		}
	}
	return ""
}

func (x *compacted) kept() int {
	switch {
	case x.trimming != nil:
		return x.trimming.Kept
	case x.short != nil:
		_, kept := x.short.Messages()
		return kept
	}
	return -1
}

func (x *compacted) document(ctx context.Context, c *Call, p *span.Printer, dry bool) error {
	p.Object()
	p.Key("dryRun").Bool(dry)
	p.Key("agentId").String(x.target.Agent)
	path := x.target.Index
	if x.sqlite() {
		path = x.from.Path
	}
	p.Key("storePath").String(path)
	p.Key("key").String(x.row.Key)
	optional(p, "sessionId", x.row.ID())
	p.Key("compacted").Bool(x.why == "" && !dry)
	optional(p, "reason", x.why)
	if x.short != nil {
		summarised, _ := x.short.Messages()
		p.Key("summarised").Int(int64(summarised))
		p.Key("tokensBefore").Int(int64(x.short.Before()))
		if n, ok := x.short.After(); x.short.Summary != "" {
			if p.Key("tokensAfter"); ok {
				p.Int(int64(n))
			} else {
				p.Null()
			}
		}
		p.Key("splitTurn").Bool(x.short.Split())
		p.Key("parts").Int(int64(len(x.short.Chunks)))
		if x.short.By != nil {
			p.Key("provider").String(x.short.By.Name())
		}
		optional(p, "summary", x.short.Summary)
	}
	if n := x.kept(); n >= 0 {
		p.Key("kept").Int(int64(n))
	}
	if c.Bool("show-plan") && x.short != nil {
		p.Key("providers").Array()
		for _, w := range x.ask {
			p.String(w.Name())
		}
		p.End()
		p.Key("instructions").String(compaction.Instructions(x.settings))
		p.Key("conversation").Array()
		err := x.short.Turns(ctx, c.summarizer(x.config, x), func(_ int, turns []provider.Turn) error {
			p.String(provider.Text(turns))
			return nil
		})
		p.End()
		if err != nil {
			return err
		}
	}
	if x.done != nil {
		optional(p, "archived", x.archived())
		if next := x.plan.Successor; next != nil {
			p.Key("successor").Object()
			p.Key("sessionId").String(next.ID)
			optional(p, "sessionFile", x.created())
			p.End()
		}
		locally(p, x.done, dry)
	}
	p.End()
	return nil
}

// byLine prints a text line by line.
func byLine(out *term.Out, text string) {
	for l := range strings.SplitSeq(text, "\n") {
		out.Printf("%s\n", l)
	}
}

func (x *compacted) text(ctx context.Context, c *Call, dry bool) error {
	out := c.Out
	n := func(n int) string { return term.Count(int64(n)) }
	if x.why != "" {
		out.Printf("Nothing to do: %s.\n", x.why)
		return nil
	}
	facts := []term.Fact{{Label: "Session", Value: x.row.Key, Style: term.Bold}}
	fact := func(label, format string, args ...any) {
		facts = append(facts, term.Fact{Label: label, Value: fmt.Sprintf(format, args...)})
	}
	if x.trimming != nil {
		fact("Kept", "%s, the header among them", plural(x.trimming.Kept, "line", "lines"))
	} else {
		summarised, kept := x.short.Messages()
		fact("Summarised", "%s, in %s", plural(summarised, "message", "messages"), plural(len(x.short.Chunks), "part", "parts"))
		stay := plural(kept, "message", "messages")
		if x.short.Split() {
			stay += ", the end of a turn among them"
		}
		fact("Kept", "%s", stay)
		context := n(x.short.Before()) + " tokens"
		if after, ok := x.short.After(); x.short.Summary != "" && ok {
			context += " before, " + n(after) + " after"
		} else if x.short.Summary != "" {
			context += " before, " + term.Unknown + " after"
		}
		fact("In context", "%s, estimated", context)
		if dry {
			var names []string
			for _, p := range x.ask {
				names = append(names, p.Name())
			}
			fact("Would ask", "%s", strings.Join(names, ", then "))
		} else {
			who := "nobody: there was no text to summarise"
			if x.short.By != nil {
				who = x.short.By.Name()
			}
			fact("Written by", "%s", who)
		}
	}
	if next := x.plan.Successor; next != nil && x.sqlite() {
		fact(map[bool]string{true: "Would go on in", false: "Goes on in"}[dry], "%s", next.ID)
		fact("Stays", "%s, as it is", x.row.ID())
	} else if next != nil {
		fact(map[bool]string{true: "Would go on in", false: "Goes on in"}[dry], "%s", baseOf(x.created()))
		fact("Stays", "%s, as it is", baseOf(x.archived()))
	} else if copied := x.archived(); copied != "" {
		fact(map[bool]string{true: "Would save", false: "Saved as"}[dry], "%s", baseOf(copied))
	}
	out.Facts(facts...)
	if c.Bool("show-plan") && x.short != nil {
		out.Printf("\nInstructions:\n")
		byLine(out, compaction.Instructions(x.settings))
		err := x.short.Turns(ctx, c.summarizer(x.config, x), func(i int, turns []provider.Turn) error {
			out.Printf("\nPart %d of %d:\n", i+1, len(x.short.Chunks))
			byLine(out, provider.Text(turns))
			return nil
		})
		if err != nil {
			return Failf("%s: %w", x.of.Path, err)
		}
	}
	if dry {
		out.Printf("Dry run: nothing was changed.\n")
		return nil
	}
	if x.short != nil {
		out.Printf("\n")
		byLine(out, x.short.Summary)
		out.Printf("\n")
	}
	switch d := x.done; {
	case d.Run == nil:
	case d.Run.Purge:
		out.Printf("Nothing was saved for undo.\n")
	default:
		out.Printf("Take it back with: oc undo %s\n", d.Run.ID)
	}
	return nil
}
