package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"oc/config"
	"oc/gateway"
	"oc/store"
)

func sessionsList() *Command {
	return &Command{
		Name:  "list",
		Short: "list sessions, the newest first",
		Long: "Lists the sessions of the default agent, of one agent, of all, or of one store, in either era. It reads the files and databases on disk, asks no gateway and " +
			"changes nothing.\n\n" +
			"A store that is damaged is an error that names the byte, never an empty list. Sessions that the other era holds and agents that are on disk but not in the " +
			"configuration are counted and told. With --both-eras those of the other era are listed too, each marked with its era; a session that both eras have, under the same key " +
			"and id, is one row, that of the era which OpenClaw reads.",
		Flags: []Flag{
			agentFlag, allAgentsFlag, storeFlag, bothErasFlag,
			{Name: "active", Value: "MINUTES", Help: "only those written in the last minutes", Takes: "a positive number of minutes, for example --active 30", Check: IsMinutes},
			{Name: "limit", Value: "N|all", Default: "100", Help: "how many to show", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "only those of this kind, or of one of these", Choices: kinds},
			{Name: "label", Value: "TEXT", Takes: "a label", Check: isSomething, Help: "only those with exactly this label"},
			{Name: "search", Value: "TEXT", Help: "only those with this text in key, id, label, name, subject or model"},
			{Name: "archived", Help: "only archived ones"},
			{Name: "pinned", Help: "only pinned ones"},
			{Name: "stuck", Help: "only those that say they are running and do not seem to be"},
			{Name: "history", Help: "transcripts that no session names, instead of sessions"},
			{Name: "sort", Value: "ORDER", Default: string(store.ByUpdated), Help: "the order of rows", Choices: store.Orders},
			{Name: "titles", Help: "show a title for each, from its label, its name or its first message"},
			{Name: "preview", Help: "show the last message of each, cut and with secrets masked"},
			{Name: "messages", Value: "N", Help: "show the last messages of each, at most 20", Takes: "a whole number from 0 to 20", Check: isMessages},
			{Name: "wide", Help: "show all columns, whatever the width of the terminal"},
			asFlag,
			{Name: "summary", Help: "totals by kind, agent and cron job instead of rows"},
		},
		Examples: []Example{
			{"oc sessions", "the newest 100 sessions of the default agent"},
			{"oc sessions --all-agents --active 60", "what was written in the last hour, by any agent"},
			{"oc sessions --limit all --json", "every session as one document, with OpenClaw's keys"},
			{"oc sessions --summary", "how many of each kind, how old, how large"},
			{"oc sessions --both-eras", "also what an import, a restore or a downgrade has left in the other era"},
			{"oc sessions --history", "conversations on disk that no session names any more"},
		},
		Exits: []int{ExitBusy},
		Run:   listSessions,
	}
}

// kinds are what --kind takes: the kinds of the list, and the classes of key that are finer.
var kinds = []string{
	"direct", "group", "cron", "spawn-child", "global", "unknown",
	"main", "channel", "thread", "cron-run", "hook", "node", "subagent", "acp", "heartbeat", "model-run", "explicit", "recovered", "other",
}

func isMessages(s string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return err == nil && n >= 0 && n <= 20
}

// listing is what a list command has gathered before it shows anything.
type listing struct {
	cfg    *config.Config
	opened []*store.Sessions         // those that could be read
	others []*store.Sessions         // of their other eras, with --both-eras
	copies map[*store.Row]*store.Row // what others have of rows
	failed failures
	judged map[*store.Row]gateway.Judgement // with --stuck

	unread, damaged int              // transcripts that could not be read, lines of others that are damaged
	unreadWhy       string           // of the first
	strange         []store.Stranger // agents that the configuration does not name
	acp             store.ACP
	rows            []*store.Row    // that are shown
	total           int             // that pass the filters
	hidden          int             // that do not
	version         map[owned]int64 // of the sessions that the signal log knows
	sight           *sight          // nil: all sessions
	limit           int             // 0: all
	now             float64
	several         bool // several stores
}

// alone are the flags that a flag which answers something else than rows does not go with.
var alone = []struct {
	flag string
	with []string
}{
	{"history", []string{"both-eras", "summary", "active", "kind", "label", "search", "archived", "pinned", "stuck", "sort", "titles", "preview", "messages"}},
	{"summary", []string{"limit", "sort", "titles", "preview", "messages"}},
}

func listSessions(ctx context.Context, c *Call) error {
	for _, a := range alone {
		for _, other := range a.with {
			if c.Bool(a.flag) && c.Given(other) {
				return Usagef("--%s does not go with --%s; give one of them", a.flag, other)
			}
		}
	}
	l, err := c.gather(ctx, c.Bool("all-agents"))
	if err != nil {
		return err
	}
	if c.Bool("both-eras") {
		l.openOthers(ctx)
	}
	if l.sight, err = c.sight(l.cfg, l.opened); err != nil {
		return err
	}
	if c.Bool("history") {
		return c.showUnlinked(ctx, l)
	}
	l.filter(ctx, c)
	if c.Bool("summary") {
		return c.showSummary(ctx, l)
	}
	l.cut(c)
	l.version = c.versions(ctx, l.cfg)
	details, err := c.describe(ctx, l)
	if err != nil {
		return err
	}
	if c.JSON() {
		if err := c.Document(l.document(c, details)); err != nil {
			return err
		}
	} else {
		l.table(c, details)
	}
	return c.remarks(l)
}

// gather opens the stores that the flags mean, or those of all agents. One that cannot be read is the error where it is the only one.
func (c *Call) gather(ctx context.Context, all bool) (*listing, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	return c.gatherIn(ctx, cfg, all)
}

// gatherIn is gather for a configuration that has been read.
func (c *Call) gatherIn(ctx context.Context, cfg *config.Config, all bool) (*listing, error) {
	targets, err := c.targets(cfg, all)
	if err != nil {
		return nil, err
	}
	if cfg.Explicit {
		if _, err := os.Stat(cfg.StateDir); errors.Is(err, fs.ErrNotExist) {
			c.Warnf("there is no state directory %s", cfg.StateDir)
		}
	}
	l := &listing{cfg: cfg, now: c.nowMs(), several: all || len(targets) > 1}
	for _, t := range targets {
		s, err := store.Open(ctx, cfg, t)
		if l.failed.add(s, err); err != nil {
			continue
		}
		if t.Named && s.Era == store.NoEra {
			return nil, Failf("there is no session store %s; oc agents list shows those that there are", s.Path)
		}
		c.Tracef("%s: %s era, %d rows, %s", s.Agent, s.Era, len(s.Rows), s.Path)
		l.opened = append(l.opened, s)
	}
	if len(l.opened) == 0 {
		return nil, c.all(l.failed)
	}
	if l.acp, err = store.ReadACP(ctx, cfg.StateDir); err != nil {
		c.Warnf("which sessions run under ACP is unknown: %v", err)
	}
	if c.String("store") == "" {
		l.strange = store.CountStrangers(ctx, cfg)
	}
	return l, nil
}

// filter keeps the rows that the flags ask for, in the order of their stores.
func (l *listing) filter(ctx context.Context, c *Call) {
	f := store.Filter{
		ActiveMs: float64(c.Int("active")) * 60_000, Kinds: c.Strings("kind"), Label: c.String("label"), Search: c.String("search"),
		Archived: c.Bool("archived"), Pinned: c.Bool("pinned"),
	}
	var stuck func(*store.Row) bool
	if c.Bool("stuck") {
		l.judged = map[*store.Row]gateway.Judgement{}
		stuck = c.stuck(ctx, l)
	}
	for _, r := range l.both() {
		if !f.Keep(r, l.now) || stuck != nil && !stuck(r) {
			l.hidden++
			continue
		}
		if !l.sight.lists(r) {
			continue
		}
		l.rows = append(l.rows, r)
	}
	l.total = len(l.rows)
}

// openOthers opens the stores of other eras. One that cannot be read is told already, or makes the answer a partial one.
func (l *listing) openOthers(ctx context.Context) {
	for _, s := range l.opened {
		switch o, err := s.OtherEra(ctx); {
		case err != nil && s.Other.Rows >= 0:
			l.failed.add(o, err)
		case err == nil && o != nil:
			l.others = append(l.others, o)
		}
	}
}

// both are the rows of all stores in their order, those of the other era that both have left out.
func (l *listing) both() (all []*store.Row) {
	rows := func(stores []*store.Sessions) (all []*store.Row) {
		for _, s := range stores {
			for i := range s.Rows {
				all = append(all, &s.Rows[i])
			}
		}
		return all
	}
	all = rows(l.opened)
	if len(l.others) > 0 {
		var only []*store.Row
		only, l.copies = store.Once(all, rows(l.others))
		all = append(all, only...)
	}
	return all
}

// cut sorts the rows and keeps as many as --limit says.
func (l *listing) cut(c *Call) {
	store.Sort(l.rows, store.Order(c.String("sort")))
	if n, all := c.CountOrAll("limit"); !all {
		l.limit = int(min(n, 1<<31))
		l.rows = l.rows[:min(len(l.rows), l.limit)]
	}
}

// remarks tells on standard error what the answer leaves out, and is an error where a store could not be read.
func (c *Call) remarks(l *listing) error {
	seconds := 0
	for _, s := range append(slices.Clip(l.opened), l.others...) {
		if len(s.Skipped) > 0 {
			c.Warnf("%s: %d of its rows are not shown, as OpenClaw drops them: %s", s.Path, len(s.Skipped), skippedSample(s.Skipped))
			for _, k := range s.Skipped {
				c.Tracef("not shown: %s: %s", k.Key, k.Reason)
			}
		}
		if c.remark(s); s.Beside {
			continue
		}
		if s.Era == store.NoEra && !s.Named && !c.Bool("history") {
			if n := s.Transcripts(); n > 0 {
				c.Warnf("agent %s has no session store, but %s in %s; see them with oc sessions --history", s.Agent, plural(n, "transcript is", "transcripts are"), s.Dir())
			}
		}
		for i := range s.Rows {
			if s.Rows[i].InSeconds() {
				seconds++
			}
		}
	}
	if seconds > 0 {
		c.Warnf("the time of %s seems to be in seconds, not milliseconds; it was left as it is", counted(seconds))
	}
	c.strangers(l.strange)
	if l.hidden > 0 {
		c.Notef("%s hidden by the filters", counted(l.hidden))
	}
	l.sight.tell(c)
	if l.damaged > 0 {
		c.Warnf("%d lines of the transcripts that were looked at are damaged; what they said is not shown", l.damaged)
	}
	err := c.tell(l.failed)
	if l.unread > 0 {
		c.Warnf("%s could not be read: %s", plural(l.unread, "transcript", "transcripts"), l.unreadWhy)
		err = Status(ExitFailed)
	}
	return err
}

func skippedSample(all []store.Skipped) string {
	var parts []string
	for _, s := range all[:min(len(all), 3)] {
		parts = append(parts, fmt.Sprintf("%s (%s)", s.Key, s.Reason))
	}
	if len(all) > 3 {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}
