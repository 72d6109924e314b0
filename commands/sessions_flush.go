package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
	"oc/transcript/provider"
)

func sessionsFlush() *Command {
	return &Command{
		Name:  "flush",
		Args:  "KEY",
		Short: "write down what a session's conversation should leave behind",
		Long: "Has a provider write notes about what the model sees of a session's conversation, puts them behind the notes of the day in <workspace>/memory/<date>.md, and marks the session as " +
			"flushed, as OpenClaw does before it compacts, once between two compactions. The date is that of agents.defaults.userTimezone, or of this host. The conversation itself is not touched, and " +
			"nobody is sent anything: the provider answers to the file alone. Where it answers NO_REPLY the session is marked and no file is written.\n\n" +
			"Providers are those of oc sessions compact; each that is named is asked until one answers. Secrets are masked before anybody gets to read the conversation, and in the notes. Notes that are there " +
			"stay as they are. Where anything fails, nothing was changed; oc undo takes it back. A gateway flushes its sessions itself; while one of this state lives, nothing is done.",
		Flags: []Flag{
			providerFlag("who writes the notes; may be repeated"),
			{Name: "workspace", Value: "DIR", Help: "the workspace of the agent, in which memory/ is", Takes: "a directory", Check: func(s string) bool { return strings.TrimSpace(s) != "" }},
			{Name: "raw", Help: "mask nothing: providers and the notes get secrets as they are"},
			agentFlag, storeFlag, dryFlag, keepUndoFlag, purgeFlag, besideGatewayFlag,
		},
		Examples: []Example{
			{"oc sessions flush main --provider openai:http://[::1]:80/v1#m --workspace .", "by a model on this machine"},
			{"oc sessions flush main --provider exec:remember.sh --workspace . --dry-run", "where the notes would go"},
		},
		Exits: verbExits,
		Run:   flushSession,
	}
}

// flushed is what came of it.
type flushed struct {
	changed
	row   *store.Row
	short *store.Shortening // nil where there is nothing to flush
	ask   []provider.Provider
	path  string // of the notes of the day
	notes string // that were written; "" for none
	why   string // nothing was done
}

func flushSession(ctx context.Context, c *Call) error {
	if len(c.Strings("provider")) == 0 || !c.Given("workspace") {
		return Usagef("a flush needs --provider, who writes the notes, and --workspace, the directory in which memory/ is")
	}
	if err := c.keeps(); err != nil {
		return err
	}
	cfg, all, err := c.named(ctx, c.Args)
	if err != nil {
		return err
	}
	x := &flushed{changed: all[0]}
	dry := c.Bool("dry-run")
	if !dry {
		conn, err := c.way(ctx, cfg, x.target.Index, x.sqlite())
		if err != nil {
			return err
		}
		if conn != nil {
			return c.hand(ctx, conn, cfg, verb{past: "flushed", closed: "it flushes the memory of its sessions itself, before it compacts them"}, all)
		}
	}
	if !dry {
		if all, err = c.settled(ctx, cfg, all); err != nil {
			return err
		}
		x.changed = all[0]
	}
	x.row = &x.from.Rows[slices.IndexFunc(x.from.Rows, func(r store.Row) bool { return r.Key == x.keys[0] })]
	of, err := x.row.Conversation(ctx)
	if err != nil {
		return changeError(storeError(x.from, err), nil)
	}
	if of.Missing || of.Reason != store.Current || !x.sqlite() && !of.Plain() {
		return Failf("the transcript of %s is not there, so there is nothing to remember; oc sessions trace %s says where it went", x.row.Key, x.row.Key)
	}
	memory, err := x.place(c, cfg)
	if err != nil {
		return err
	}
	how, err := x.prepare(ctx, c, cfg, of)
	if err != nil || x.why != "" {
		if err == nil {
			err = c.reportFlush(x, dry)
		}
		return err
	}
	flush := maintenance.Flush{Path: x.path}
	plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
		return maintenance.FlushMemory(s, x.keys[0], flush, c.Now())
	}
	before, info, err := notesSoFar(x.path)
	if err != nil {
		return Refusef("the notes %s cannot be read: %w; nothing was changed", x.path, err)
	}
	flush.Info, flush.Content = info, behind(before, "")
	if x.sqlite() {
		x.done, err = c.rehearseRows(ctx, &x.changed, plan)
	} else {
		x.done, err = c.rehearsal(ctx, cfg, x.target, maintenance.Alone(), plan)
	}
	if err != nil {
		return changeError(err, nil)
	}
	if dry || x.done.Plan.Empty() {
		return c.reportFlush(x, dry)
	}
	x.notes, err = x.short.Remember(ctx, how, string(before))
	for _, note := range x.short.Notes {
		c.Warnf("%s", note)
	}
	if ctx.Err() != nil {
		return &Error{Exit: ExitInterrupted, Err: errors.New("interrupted; nothing was changed")}
	}
	if err != nil {
		return Failf("no notes were written: %w; nothing was changed", err)
	}
	w := c.worker(cfg)
	if x.sqlite() {
		w = c.holding(ctx, cfg)
	}
	if flush.Content = nil; x.notes != "" {
		flush.Content = behind(before, x.notes)
		made, err := makeDir(memory)
		if err != nil {
			return Failf("the directory %s cannot be made: %w; nothing was changed", memory, err)
		}
		if w.Notes, err = filepath.EvalSymlinks(memory); err != nil {
			return Failf("%w; nothing was changed", err)
		}
		if made {
			defer os.Remove(memory) //nolint:errcheck // it stays where notes are in it
		}
	}
	x.via = viaLocal
	if x.sqlite() {
		x.done, err = w.ApplySessions(ctx, x.target, x.from.Path, x.keys, plan)
	} else {
		x.done, err = w.Apply(ctx, x.target, maintenance.Alone(), plan)
	}
	if err != nil {
		return changeError(err, x.done)
	}
	return c.reportFlush(x, dry)
}

// place finds the notes of the day. Their directory may not be there yet; the workspace must be.
func (x *flushed) place(c *Call, cfg *config.Config) (memory string, err error) {
	dir := c.String("workspace")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Dir, dir)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", Failf("there is no workspace %s: %w; nothing was changed", c.String("workspace"), err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", Failf("the workspace %s is no directory; nothing was changed", dir)
	}
	memory = filepath.Join(dir, "memory")
	if info, err := os.Lstat(memory); err == nil && !info.IsDir() {
		return "", Refusef("%s is no directory but a file or a link; nothing was changed", memory)
	}
	zone := time.Local
	at, _ := cfg.Value("agents", "defaults", "userTimezone")
	if name, ok := at.Str(); ok && strings.TrimSpace(name) != "" {
		if z, err := time.LoadLocation(strings.TrimSpace(name)); err == nil {
			zone = z
		}
	}
	x.path = filepath.Join(memory, c.Now().In(zone).Format(time.DateOnly)+".md")
	return memory, nil
}

// prepare looks at what there is to remember, and who is asked about it.
func (x *flushed) prepare(ctx context.Context, c *Call, cfg *config.Config, of *store.Conversation) (how store.Summarizer, err error) {
	fill, err := of.Outline(ctx)
	if err != nil {
		return how, Failf("the transcript of %s cannot be read: %w; nothing was changed", x.row.Key, err)
	}
	w := weighed(cfg, x.row, fill, nil)
	if w.counters.Done() {
		x.why = "its memory was flushed since its last compaction"
		return how, nil
	}
	var short *store.Short
	switch x.short, err = fill.Shorten(0, w.window); {
	case errors.As(err, &short):
		x.why = short.Why
		return how, nil
	case err != nil:
		return how, &Error{Exit: ExitRefused, Err: fmt.Errorf("the transcript %s is not read: %w; nothing was changed", of.Path, err)}
	}
	if x.ask, err = c.providers(w.settings); err != nil {
		return how, err
	}
	return c.asking(cfg, x.ask, w.settings, w.window), nil
}

// mostNotes are read of a day.
const mostNotes = 16 << 20

// notesSoFar are the notes of the day, and the file that has them; nil where there is none.
func notesSoFar(path string) ([]byte, os.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("they are no file but lead elsewhere")
	case info.Size() > mostNotes:
		return nil, nil, fmt.Errorf("they have %s", term.Bytes(info.Size()))
	}
	text, err := os.ReadFile(path)
	return text, info, err
}

// behind writes notes behind others, with a blank line between.
func behind(before []byte, notes string) func(io.Writer) error {
	return func(w io.Writer) error {
		text := string(before)
		if text != "" {
			text = strings.TrimSuffix(text, "\n") + "\n\n"
		}
		_, err := io.WriteString(w, text+notes+"\n")
		return err
	}
}

// makeDir makes a directory where there is none.
func makeDir(dir string) (made bool, err error) {
	if err = os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// reportFlush says what was, or would be, done.
func (c *Call) reportFlush(x *flushed, dry bool) error {
	exit := ExitDone
	if x.done != nil {
		c.remarkRecovered(x.done)
		c.remarkRun(x.done)
		for _, k := range x.done.Plan.Protected {
			c.Warnf("%s was not flushed: %s", or(k.Key, k.Target), k.Reason)
			if exit = ExitRefused; k.Rule == maintenance.Locked {
				exit = ExitBusy
			}
		}
		x.why = or(x.why, map[bool]string{true: "it is in use"}[exit != ExitDone])
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { x.document(p, dry); return nil }); err != nil {
			return err
		}
	} else if exit == ExitDone {
		x.text(c, dry)
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

func (x *flushed) document(p *span.Printer, dry bool) {
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
	p.Key("flushed").Bool(x.why == "" && !dry)
	optional(p, "reason", x.why)
	p.Key("path").String(x.path)
	p.Key("written").Bool(x.notes != "" && x.done != nil && x.done.Changed())
	if x.short != nil && x.short.By != nil {
		p.Key("provider").String(x.short.By.Name())
	}
	if x.done != nil {
		locally(p, x.done, dry)
	}
	p.End()
}

func (x *flushed) text(c *Call, dry bool) {
	out := c.Out
	if x.why != "" {
		out.Printf("Nothing to do: %s.\n", x.why)
		return
	}
	messages, _ := x.short.Messages()
	facts := []term.Fact{
		{Label: "Session", Value: x.row.Key, Style: term.Bold},
		{Label: "About", Value: fmt.Sprintf("%s, in %s", plural(messages, "message", "messages"), plural(len(x.short.Chunks), "part", "parts"))},
	}
	switch {
	case dry:
		var names []string
		for _, p := range x.ask {
			names = append(names, p.Name())
		}
		facts = append(facts, term.Fact{Label: "Would ask", Value: strings.Join(names, ", then ")}, term.Fact{Label: "Would write", Value: x.path})
	case x.notes == "":
		facts = append(facts, term.Fact{Label: "Written", Value: "nothing: there was nothing worth a note"})
	default:
		facts = append(facts, term.Fact{Label: "Written by", Value: x.short.By.Name()}, term.Fact{Label: "Written to", Value: x.path})
	}
	out.Facts(facts...)
	switch d := x.done; {
	case dry:
		out.Printf("Dry run: nothing was changed.\n")
	case d.Run == nil:
	case d.Run.Purge:
		out.Printf("Nothing was saved for undo.\n")
	default:
		out.Printf("Take it back with: oc undo %s\n", d.Run.ID)
	}
}
