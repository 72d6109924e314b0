package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

func sessionsTrace() *Command {
	return &Command{
		Name:  "trace",
		Args:  "KEY",
		Short: "where a session went, and what can bring it back",
		Long: "Follows a session through everything on disk that tells of it, in the order of time: its rows in the stores of both eras and of agents that are not configured any more, " +
			"its transcripts, live, put away, imported or unlinked, the windows and archives of databases, copies of the store that still have its row, imports, runs of oc that touched it, " +
			"events of the signal log, runs of sub-agents, and its cron job. Each says what can bring it back.\n\n" +
			"KEY is a session key, a session id, or a label; it need not be in any store any more.",
		Flags: []Flag{anyAgentFlag, allAgentsFlag, storeFlag, asFlag},
		Examples: []Example{
			{"oc sessions trace agent:main:telegram:group:-1001234567890", "what became of a group's session"},
			{"oc sessions trace 4808d58f-1496-4795-a11f-89e7307870e9 --json", "everything that has a session id, as a document"},
		},
		Run: traceSession,
	}
}

// traced is one line of the answer.
type traced struct {
	store.Sighting
	run   string // of a run of oc, or of OpenClaw that an event is of
	spawn string // of a run of a sub-agent
	back  string // what can bring it back, or show it; "" where it is there, or nothing can
}

// What a trace has besides the sightings of package store.
const (
	seenRun    = "oc-run"
	seenJob    = "cron-job"
	seenSignal = "signal"
	seenSpawn  = "subagent-run"
)

func traceSession(ctx context.Context, c *Call) error {
	l, err := c.library(ctx)
	if err != nil {
		return err
	}
	seen, err := c.sight(l.cfg, l.Stores)
	if err != nil {
		return err
	}
	word := c.Arg(0)
	rows := store.Find(l.cfg, c.meant(l.cfg), l.Stores, word)
	if keys := distinctKeys(rows); len(keys) > 1 {
		return Usagef("%q means %d sessions: %s; give the key of one", word, len(keys), strings.Join(keys, ", "))
	}
	trail := store.TrailOf(word, rows)
	trail.Grow(l.Corpus)
	all, problems := c.tracedRuns(ctx, l, trail) // first: rows that runs have saved tell the ids of what they moved
	found, more := trail.Follow(ctx, l.Corpus)
	if err := ctx.Err(); err != nil {
		return err
	}
	problems = append(problems, more...)
	for _, s := range append(found, trail.ImportsOf(l.cfg.StateDir)...) {
		all = append(all, traced{Sighting: s, back: wayBack(s)})
	}
	events, err := tracedSignals(ctx, l.cfg.StateDir, trail)
	if err != nil {
		problems = append(problems, err)
	}
	spawns, err := tracedSpawns(ctx, l.cfg.StateDir, trail)
	if err != nil {
		problems = append(problems, err)
	}
	all = append(append(all, events...), spawns...)
	if len(all) == 0 {
		l.Problems = append(l.Problems, problems...)
		return c.nothingTraced(l, word)
	}
	if err := seen.follows(trail, l.Corpus); err != nil {
		return err
	}
	jobs, more := tracedJobs(ctx, l.cfg.StateDir, trail)
	all, l.Problems = append(all, jobs...), append(append(l.Problems, problems...), more...)
	slices.SortStableFunc(all, func(a, b traced) int {
		switch {
		case a.At == b.At:
			return 0
		case b.At == 0 || a.At != 0 && a.At < b.At:
			return -1
		}
		return 1
	})
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error { return printTrace(p, trail, all, l, seen) })
	} else {
		c.showTrace(trail, all)
	}
	if err != nil {
		return err
	}
	return l.end(c)
}

func distinctKeys(rows []*store.Row) (keys []string) {
	for _, r := range rows {
		if !slices.ContainsFunc(keys, func(k string) bool { return row.Canonical(k) == row.Canonical(r.Key) }) {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

func (c *Call) nothingTraced(l *library, word string) error {
	for _, err := range l.Problems {
		c.Warnf("%v", err)
	}
	if len(l.failed) > 0 {
		return &Error{Exit: ExitFailed, Err: fmt.Errorf("nothing that could be read tells of %q, but not every store could be: %w", brief(word), l.failed[0].err)}
	}
	hint := "oc sessions search finds a conversation by what was said in it"
	if near := store.Near(l.opened, word); near != "" {
		hint = fmt.Sprintf("did you mean %s?", term.Escape(near))
	}
	return &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("nothing on this disk tells of a session %q; %s", brief(word), hint)}
}

// wayBack says what can bring a session back from what was seen.
func wayBack(s store.Sighting) string {
	dir := filepath.Dir(s.Path)
	switch s.Kind {
	case store.SeenRow:
		if s.Row.Archived() {
			return "oc sessions restore " + s.Key
		}
		return ""
	case store.SeenTranscript:
		if s.Reason != store.Unlisted {
			return ""
		}
		return "oc sessions history " + s.ID
	case store.SeenArchive:
		if (s.Reason == "deleted" || s.Reason == "reset") && filepath.Ext(s.Path) != ".sqlite" {
			return "oc sessions restore " + filepath.Base(s.Path)
		}
		return "oc sessions history " + s.ID
	case store.SeenCopy:
		if s.Reason == store.Imported {
			return "openclaw doctor --session-sqlite restore puts it back, or oc sessions history " + s.Path
		}
		return "oc sessions history " + s.Path
	case store.SeenBackup:
		if s.Reason == store.Torn {
			return ""
		}
		return "its row can be taken from there: oc sessions show " + s.Key + " --store " + s.Path
	case store.SeenSidecar:
		return ""
	case store.SeenImport:
		return "see the sessions of " + dir
	}
	return ""
}

// tracedRuns are the runs of oc that touched the session. The trail grows by what they have saved of its row.
func (c *Call) tracedRuns(ctx context.Context, l *library, trail *store.Trail) (all []traced, problems []error) {
	w := &maintenance.Worker{Config: l.cfg, Now: c.Now, Wait: patience}
	seen := map[string]bool{}
	for _, s := range l.Stores {
		past, errs := w.Past(s.Place().Store)
		for _, err := range errs {
			if !seen[err.Error()] {
				seen[err.Error()] = true
				problems = append(problems, err)
			}
		}
		for i := range past {
			p := &past[i]
			name := p.Home + "\x00" + p.ID
			if seen[name] || ctx.Err() != nil {
				continue
			}
			run, err := p.Journal.Load(p.ID)
			if errors.Is(err, journal.ErrRefused) { // of other roots: the journal of its store tells
				continue
			}
			if seen[name] = true; err != nil {
				problems = append(problems, err)
				continue
			}
			did := touching(p.Journal, run, trail)
			if len(did) == 0 {
				continue
			}
			x := traced{run: p.ID, Sighting: store.Sighting{Kind: seenRun, At: p.Created, Agent: p.Facts.Agent, Path: p.Facts.Store, Bytes: -1}}
			x.Why = fmt.Sprintf("%s: %s", p.Facts.Command, strings.Join(did, ", "))
			if why := p.Possible(); why != "" {
				x.Why += " (" + why + ")"
			} else {
				x.back = "oc undo " + p.ID
			}
			all = append(all, x)
		}
	}
	return all, problems
}

// How many steps of a run are named.
const stepsNamed = 4

// touching says what the steps of a run did to the session: to its row, and then to files that have its ids in their names.
func touching(j *journal.Journal, run *journal.Run, trail *store.Trail) (did []string) {
	note := func(st *journal.Step, what string) {
		if st.Skipped != "" {
			what += " (not done: " + st.Skipped + ")"
		}
		if len(did) == stepsNamed {
			what = "and more"
		}
		if len(did) <= stepsNamed {
			did = append(did, what)
		}
	}
	for i := range run.Steps {
		st := &run.Steps[i]
		if st.Kind != journal.Replace || filepath.Ext(st.Path) != ".json" {
			continue
		}
		var before bytes.Buffer
		if j.Before(run, st, &before) != nil {
			continue // given up, or damaged: oc undo says so
		}
		_, _ = span.Each(before.Bytes(), 0, func(key, val []byte) error {
			if name, ok := span.Text(key); ok && trail.Row(name, bytes.Clone(val)) {
				note(st, "changed "+filepath.Base(st.Path)+", which had the row "+name)
			}
			return nil
		})
	}
	for i := range run.Steps {
		st := &run.Steps[i]
		base := filepath.Base(st.Path)
		for _, id := range trail.IDs {
			if strings.Contains(strings.ToLower(base), strings.ToLower(id)) {
				note(st, string(st.Kind)+" "+base)
				break
			}
		}
	}
	return did
}

// tracedJobs tells of the cron jobs that the keys belong to.
func tracedJobs(ctx context.Context, stateDir string, trail *store.Trail) (all []traced, problems []error) {
	told := map[string]bool{}
	for _, key := range trail.Keys {
		id, ok := row.CronJob(key)
		if !ok || told[id] {
			continue
		}
		told[id] = true
		there, known, err := store.Job(ctx, stateDir, id)
		if err != nil {
			problems = append(problems, err)
		}
		x := traced{Sighting: store.Sighting{Kind: seenJob, Key: key, Bytes: -1, Why: fmt.Sprintf("the cron job %s is configured: it makes sessions of that name again", id)}}
		switch {
		case !known:
			x.Why = fmt.Sprintf("whether the cron job %s is configured is unknown", id)
		case !there:
			x.Why = fmt.Sprintf("the cron job %s is not configured any more", id)
		}
		all = append(all, x)
	}
	return all, problems
}

func printTrace(p *span.Printer, trail *store.Trail, all []traced, l *library, seen *sight) error {
	p.Object()
	for _, list := range []struct {
		name  string
		words []string
	}{{"keys", trail.Keys}, {"sessionIds", trail.IDs}} {
		p.Key(list.name).Array()
		for _, w := range list.words {
			p.String(w)
		}
		p.End()
	}
	p.Key("count").Int(int64(len(all)))
	p.Key("trace").Array()
	for i := range all {
		x := &all[i]
		p.Object()
		stamp(p, "at", x.At)
		p.Key("kind").String(x.Kind)
		for _, f := range []struct{ name, text string }{
			{"era", string(x.Era)}, {"agentId", x.Agent}, {"key", x.Key}, {"sessionId", x.ID}, {"source", x.Reason}, {"path", x.Path}, {"runId", x.run}, {"subagentRunId", x.spawn},
		} {
			if f.text != "" {
				p.Key(f.name).String(f.text)
			}
		}
		if x.Bytes >= 0 {
			p.Key("bytes").Int(x.Bytes)
		}
		p.Key("text").String(x.Why)
		if p.Key("back"); x.back != "" {
			p.String(x.back)
		} else {
			p.Null()
		}
		p.End()
	}
	p.End()
	seen.print(p)
	l.printProblems(p)
	p.End()
	return nil
}

func (c *Call) showTrace(trail *store.Trail, all []traced) {
	c.Out.Facts(
		term.Fact{Label: "Key", Value: strings.Join(trail.Keys, ", ")},
		term.Fact{Label: "Session id", Value: strings.Join(trail.IDs, ", ")},
	)
	c.Out.Printf("\n")
	for i := range all {
		x := &all[i]
		at := "at an unknown time"
		if x.At > 0 {
			at = term.Time(x.At)
		}
		size := ""
		if x.Bytes >= 0 {
			size = ", " + term.Bytes(x.Bytes)
		}
		line := strings.TrimLeft(term.Wrap(term.Escape(at+"  "+x.Why+size), c.Out.Width(), "      "), " ")
		c.Out.Printf("%s%s\n", c.Out.Paint(term.Bold, at), term.Styled(strings.TrimPrefix(line, at)))
		c.Out.Facts(term.Fact{Label: "    in", Value: x.Path}, term.Fact{Label: "    back", Value: x.back, Style: term.Green})
	}
}
