package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oc/config"
	"oc/store"
)

func sessionsList() *Command {
	return &Command{
		Name:  "list",
		Short: "list sessions, the newest first",
		Long: "Lists the sessions of the default agent, of one agent, of all, or of one store, in either era. It reads the files and databases on disk, asks no gateway and " +
			"changes nothing.\n\n" +
			"A store that is damaged is an error that names the byte, never an empty list. Sessions that the other era holds and agents that are on disk but not in the " +
			"configuration are counted and told.",
		Flags: []Flag{
			agentFlag, allAgentsFlag, storeFlag,
			{Name: "active", Value: "MINUTES", Help: "only those written in the last minutes", Takes: "a positive number of minutes, for example --active 30", Check: IsMinutes},
			{Name: "limit", Value: "N|all", Default: "100", Help: "how many to show", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "only those of this kind, or of one of these", Takes: "one of " + strings.Join(kinds, ", "), Check: func(s string) bool { return slices.Contains(kinds, s) }},
			{Name: "label", Value: "TEXT", Help: "only those with exactly this label"},
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
			{Name: "summary", Help: "totals by kind, agent and cron job instead of rows"},
		},
		Examples: []Example{
			{"oc sessions", "the newest 100 sessions of the default agent"},
			{"oc sessions --all-agents --active 60", "what was written in the last hour, by any agent"},
			{"oc sessions --limit all --json", "every session as one document, with OpenClaw's keys"},
			{"oc sessions --summary", "how many of each kind, how old, how large"},
			{"oc sessions --history", "conversations on disk that no session names any more"},
		},
		Run: listSessions,
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
	cfg     *config.Config
	opened  []*store.Sessions // those that could be read
	failed  []failure
	acp     store.ACP
	rows    []*store.Row // that are shown
	total   int          // that pass the filters
	hidden  int          // that do not
	limit   int          // 0: all
	now     float64
	several bool // several stores
}

// failure is a store that could not be read.
type failure struct {
	target store.Target
	path   string
	err    error
}

func listSessions(ctx context.Context, c *Call) error {
	l, err := c.gather(ctx, c.Bool("all-agents"))
	if err != nil {
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
	targets, err := c.targets(cfg, all)
	if err != nil {
		return nil, err
	}
	l := &listing{cfg: cfg, now: c.nowMs(), several: all || len(targets) > 1}
	for _, t := range targets {
		s, err := store.Open(ctx, cfg, t)
		if err != nil {
			if len(targets) == 1 {
				return nil, storeError(s, err)
			}
			l.failed = append(l.failed, failure{t, s.Path, storeError(s, err)})
			continue
		}
		c.Tracef("%s: %s era, %d rows, %s", s.Agent, s.Era, len(s.Rows), s.Path)
		l.opened = append(l.opened, s)
	}
	if len(l.opened) == 0 {
		var all []error
		for _, f := range l.failed {
			all = append(all, f.err)
		}
		return nil, errors.Join(all...)
	}
	if l.acp, err = store.ReadACP(ctx, cfg.StateDir); err != nil {
		c.Warnf("which sessions run under ACP is unknown: %v", err)
	}
	return l, nil
}

// storeError says what a damaged store means and what can be done.
func storeError(s *store.Sessions, err error) error {
	var damage *store.Damage
	if errors.As(err, &damage) {
		return &Error{
			Exit: ExitFailed, Code: "damaged", Err: fmt.Errorf("%w; nothing was changed, the transcripts beside it are untouched", err),
			Details: map[string]any{"path": damage.Path, "byte": damage.Offset, "size": damage.Size, "reason": damage.Reason},
		}
	}
	return Failf("agent %s: %w", s.Agent, err)
}

// filter keeps the rows that the flags ask for, in the order of their stores.
func (l *listing) filter(ctx context.Context, c *Call) {
	f := store.Filter{
		ActiveMs: float64(c.Int("active")) * 60_000, Kinds: c.Strings("kind"), Label: c.String("label"), Search: c.String("search"),
		Archived: c.Bool("archived"), Pinned: c.Bool("pinned"),
	}
	var stuck func(*store.Row) bool
	if c.Bool("stuck") {
		stuck = c.stuck(ctx, l)
	}
	for _, s := range l.opened {
		for i := range s.Rows {
			r := &s.Rows[i]
			if !f.Keep(r, l.now) || stuck != nil && !stuck(r) {
				l.hidden++
				continue
			}
			l.rows = append(l.rows, r)
		}
	}
	l.total = len(l.rows)
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
	for _, s := range l.opened {
		if len(s.Skipped) > 0 {
			c.Warnf("%s: %d of its rows are not shown, as OpenClaw drops them: %s", s.Path, len(s.Skipped), skippedSample(s.Skipped))
		}
		if o := s.Other; o != nil {
			switch {
			case o.Rows < 0:
				c.Warnf("agent %s also has a %s-era store that cannot be read: %s: %s", s.Agent, o.Era, o.Path, o.Why)
			default:
				c.Warnf("agent %s also has %d sessions of the %s era in %s; they are not in this list (see them with --store %s)", s.Agent, o.Rows, o.Era, o.Path, o.Path)
			}
		}
		if s.Era == store.NoEra && !s.Named && !c.Bool("history") {
			if n := s.Transcripts(); n > 0 {
				c.Warnf("agent %s has no session store, but %d transcripts are in %s; see them with oc sessions --history", s.Agent, n, s.Dir())
			}
		}
		if s.Schema.Newer {
			c.Warnf("%s has schema %d, newer than oc knows; it was read as far as it is understood", s.Path, s.Schema.UserVersion)
		}
	}
	if strangers := store.Strangers(l.cfg); len(strangers) > 0 && c.String("store") == "" {
		names := make([]string, len(strangers))
		for i, d := range strangers {
			names[i] = d.ID
		}
		c.Notef("on disk but not in the configuration: %s (see oc agents list)", strings.Join(names, ", "))
	}
	if l.hidden > 0 {
		c.Notef("%d sessions are hidden by the filters", l.hidden)
	}
	return c.warnDamaged(l)
}

// warnDamaged tells which stores could not be read, and is an error where there are any: the answer is partial.
func (c *Call) warnDamaged(l *listing) error {
	for _, f := range l.failed {
		c.Warnf("%v", f.err)
	}
	if len(l.failed) > 0 {
		return Status(ExitFailed)
	}
	return nil
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
