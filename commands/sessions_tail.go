package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

func sessionsTail() *Command {
	return &Command{
		Name:  "tail",
		Args:  "[KEY]",
		Short: "watch what sessions do, without what is said in them",
		Long: "Shows the last steps of a session, of those that are running, or of the newest one where none is: that somebody wrote, that the model answered, which tools it called " +
			"and how that went. Prompts, arguments and results are not shown. The steps come from transcripts and from the trajectories that runs leave.\n\n" +
			"With --follow it goes on as they are written, until it is interrupted or the time of --for is over. A session that begins to run joins in; one whose transcript is " +
			"reset is followed into the new one.",
		Flags: []Flag{
			anyAgentFlag, allAgentsFlag, storeFlag, asFlag,
			{Name: "tail", Value: "N", Default: "80", Help: "how many steps of each session to begin with", Takes: "a whole number of at least 0, for example --tail 25", Check: IsWhole},
			{Name: "follow", Short: "f", Help: "go on as more is written"},
			{Name: "for", Value: "DURATION", Help: "with --follow: end after this time", Takes: "a duration, for example --for 10m", Check: IsDuration},
		},
		Examples: []Example{
			{"oc sessions tail --follow", "what the running sessions are doing"},
			{"oc sessions tail main --tail 20", "the last twenty steps of the main session"},
		},
		Run: tailSessions,
	}
}

// tail is a look at some sessions that is repeated.
type tail struct {
	c       *Call
	word    string
	l       *listing
	by      map[string]*store.Progress // by path of the store and key
	order   []string
	print   func(store.Step)
	limit   int
	opened  time.Time
	was     string // how the stores looked then
	follows bool
	sight   *sight
}

func tailSessions(ctx context.Context, c *Call) error {
	limit := int(min(c.Int("tail"), 100_000))
	t := &tail{c: c, word: c.Arg(0), limit: limit, by: map[string]*store.Progress{}, follows: c.Bool("follow")}
	if c.Given("for") && !t.follows {
		return Usagef("--for says how long to follow; give --follow too")
	}
	if err := t.choose(ctx); err != nil {
		return err
	}
	run := func() error {
		first, err := t.look(ctx)
		if !t.follows && ctx.Err() == nil {
			err = cmp.Or(t.lost(ctx), err)
		}
		if len(first) == 0 && err == nil && !c.JSON() && len(t.order) > 0 && !t.follows {
			c.Out.Printf("No step was found of %s, and no run left a trajectory.\n", t.by[t.order[0]].Row.Key)
		}
		for _, s := range first {
			t.print(s)
		}
		if err == nil && t.follows {
			err = t.follow(ctx)
		}
		return err
	}
	if !c.JSON() {
		t.print = t.line
		if err := run(); err != nil {
			return err
		}
		if len(t.order) == 0 {
			c.Out.Printf("No session was found.\n")
		}
		return t.end(ctx)
	}
	var failed error
	if err := c.Document(func(p *span.Printer) error {
		p.Object()
		p.Key("steps").Array()
		t.print = func(s store.Step) {
			printStep(p, s)
			if t.follows {
				p.Flush()     //nolint:errcheck // the printer keeps it
				c.Out.Flush() //nolint:errcheck // the stream keeps it
			}
		}
		if failed = run(); failed != nil && !errors.Is(failed, context.Canceled) && ctx.Err() == nil {
			return failed
		}
		p.End()
		p.Key("sessions").Array()
		for _, name := range t.order {
			r := t.by[name].Row
			p.Object()
			p.Key("key").String(r.Key)
			p.Key("sessionId").String(r.ID())
			p.Key("agentId").String(r.Store().Agent)
			p.Key("running").Bool(running(r))
			p.End()
		}
		p.End()
		p.Key("unreadable").Int(int64(t.unreadable()))
		t.sight.print(p)
		t.l.failed.print(p)
		p.End()
		return nil
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return t.end(ctx)
}

// lost says whose transcript is not there, and is an error where something else stands in its place. Before its first turn a session
// that is followed has none.
func (t *tail) lost(ctx context.Context) error {
	for _, name := range t.order {
		r := t.by[name].Row
		one, err := r.Conversation(ctx)
		switch {
		case err != nil:
			return storeError(r.Store(), err)
		case one.Missing && one.Odd != "":
			return storeError(r.Store(), fmt.Errorf("%s is %s, not a file", one.Path, one.Odd))
		case one.Missing || one.Reason != store.Current:
			t.c.Warnf("%s has no transcript: %s is not there", r.Key, t.by[name].Paths()[0])
		}
	}
	return nil
}

// end says what could not be read.
func (t *tail) end(ctx context.Context) error {
	if n := t.unreadable(); n > 0 {
		t.c.Warnf("rows that cannot be read and are not among the steps: %d", n)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.sight.tell(t.c)
	return t.c.tell(t.l.failed)
}

func (t *tail) unreadable() (n int) {
	for _, p := range t.by {
		n += p.Bad
	}
	return n
}

func running(r *store.Row) bool {
	status, _ := r.Text(row.Status)
	return status == "running"
}

// choose picks the sessions: the one that was asked for, else all that say they are running, else the newest. Those that were picked
// before stay, but for one whose transcript is another now.
func (t *tail) choose(ctx context.Context) error {
	l, err := t.c.gather(ctx, !t.c.Given("agent") && !t.c.Given("store"))
	if err != nil {
		return err
	}
	t.l, t.opened, t.was = l, time.Now(), store.Look(storePaths(l)...)
	seen, err := t.c.sight(l.cfg, l.opened)
	if err != nil {
		return err
	}
	t.sight = seen
	var picked []*store.Row
	if t.word != "" {
		r, err := t.c.find(ctx, l, t.word)
		if err != nil {
			return err
		}
		if err := seen.reads(r); err != nil {
			return err
		}
		picked = []*store.Row{r}
	} else {
		var newest *store.Row
		for _, s := range l.opened {
			for i := range s.Rows {
				r := &s.Rows[i]
				if !seen.sees(r) {
					if running(r) {
						seen.hidden++
					}
					continue
				}
				_, had := t.by[s.Path+"\x00"+r.Key]
				if running(r) || had {
					picked = append(picked, r)
				}
				if newest == nil || r.Updated > newest.Updated {
					newest = r
				}
			}
		}
		store.Sort(picked, store.ByUpdated)
		if len(picked) == 0 && newest != nil {
			picked = append(picked, newest)
		}
	}
	for _, r := range picked {
		name := r.Store().Path + "\x00" + r.Key
		if p := t.by[name]; p == nil {
			t.order = append(t.order, name)
		} else if p.Row.ID() == r.ID() {
			continue
		}
		t.by[name] = r.Progress()
	}
	return nil
}

// storePaths are the files that change when a session begins, ends or is reset.
func storePaths(l *listing) (paths []string) {
	for _, s := range l.opened {
		paths = append(paths, s.Path, s.Path+"-wal")
	}
	return paths
}

// look gives the steps since the last look, in the order of time; at the first look those of sessions that run come last, nearest to
// the reader.
func (t *tail) look(ctx context.Context) (steps []store.Step, err error) {
	for _, name := range t.order {
		p := t.by[name]
		more, problem := p.Next(ctx, t.limit)
		if problem != nil {
			err = storeError(p.Row.Store(), problem)
			continue
		}
		steps = append(steps, more...)
	}
	slices.SortStableFunc(steps, func(a, b store.Step) int { return int(min(1, max(-1, a.Time-b.Time))) })
	return steps, err
}

// follow looks again whenever something in the directories changes, and at the least once in a second: on some file systems nobody
// tells of changes.
func (t *tail) follow(ctx context.Context) error {
	var end <-chan time.Time
	if t.c.Given("for") {
		timer := time.NewTimer(t.c.Duration("for"))
		defer timer.Stop()
		end = timer.C
	}
	var changed <-chan fsnotify.Event
	watched := map[string]bool{}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.c.Tracef("changes are looked for once in a second: %v", err)
	} else {
		defer w.Close()
		changed = w.Events
	}
	watch := func() {
		for _, name := range t.order {
			for _, path := range append(t.by[name].Paths(), t.by[name].Row.Store().Path) {
				if dir := filepath.Dir(path); w != nil && !watched[dir] {
					watched[dir] = w.Add(dir) == nil
				}
			}
		}
	}
	watch()
	t.c.Out.Flush() //nolint:errcheck // kept by the stream
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	problem := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-changed:
			settle(changed)
		case <-tick.C:
		}
		if t.c.Out.Gone() {
			return syscall.EPIPE
		}
		if time.Since(t.opened) > 2*time.Second && store.Look(storePaths(t.l)...) != t.was {
			if err := t.choose(ctx); err != nil && ctx.Err() == nil {
				t.opened = time.Now() // a store that is being written; the next look may find it whole
			}
			watch()
		}
		steps, err := t.look(ctx)
		for _, s := range steps {
			t.print(s)
		}
		t.c.Out.Flush() //nolint:errcheck // kept by the stream
		text := ""
		if err != nil && ctx.Err() == nil {
			if text = err.Error(); text != problem {
				t.c.Warnf("%v", err)
			}
		}
		problem = text
	}
}

// settle waits until a burst of changes is over, 50 ms at most.
func settle(changed <-chan fsnotify.Event) {
	end := time.After(50 * time.Millisecond)
	for {
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
		case <-end:
			return
		}
	}
}

// line shows one step.
func (t *tail) line(s store.Step) {
	out := t.c.Out
	when := "unknown time"
	if s.Time != 0 {
		when = time.UnixMilli(s.Time).Format("2006-01-02 15:04:05")
	}
	style := term.Plain
	switch {
	case s.Note == "failed" || s.Note == "timed out" || s.Note == "aborted":
		style = term.Red
	case s.Kind == "user":
		style = term.Green
	case s.Trajectory:
		style = term.Dim
	}
	key := ""
	if len(t.order) > 1 {
		room := min(30, max(12, out.Width()-66))
		key = term.Pad(term.CutMiddle(term.Escape(s.Key), room, "…"), room, false) + "  "
	}
	what := s.Name
	if s.Note != "" {
		if what != "" {
			what += "  "
		}
		what += s.Note
	}
	if out.Terminal() {
		what = term.CutEnd(term.Escape(what), max(16, out.Width()-39-term.Columns(key)), "…")
	}
	kind := s.Kind
	if what != "" {
		kind = term.Pad(kind, 16, false) + "  "
	}
	out.Printf("%s  %s%s%s\n", out.Paint(term.Dim, when), term.Styled(key), out.Paint(style, kind), what)
}

func printStep(p *span.Printer, s store.Step) {
	p.Object()
	p.Key("key").String(s.Key)
	p.Key("sessionId").String(s.ID)
	stamp(p, "at", s.Time)
	p.Key("kind").String(s.Kind)
	if s.Name != "" {
		p.Key("name").String(s.Name)
	}
	if s.Note != "" {
		p.Key("outcome").String(s.Note)
	}
	p.Key("from").String(map[bool]string{true: "trajectory", false: "transcript"}[s.Trajectory])
	p.End()
}
