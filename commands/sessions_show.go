package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
)

func sessionsShow() *Command {
	return &Command{
		Name:  "show",
		Args:  "KEY",
		Short: "explain one session",
		Long: "Shows everything that is known of one session: its era and store, its transcript and how it was found, where answers go, its model and tokens and where they come " +
			"from, what protects it from cleanup, its parent and children, earlier transcripts of it, and all its times.\n\n" +
			"KEY is a session key, exact or in another form of it, a session id, or a label. If it means several sessions, they are named and nothing is shown.",
		Flags: []Flag{agentFlag, allAgentsFlag, storeFlag, asFlag},
		Examples: []Example{
			{"oc sessions show main", "the default agent's main session"},
			{"oc sessions show agent:main:telegram:group:-1001234567890 --json", "one session as a document"},
		},
		Exits: []int{ExitBusy},
		Run:   showSession,
	}
}

func showSession(ctx context.Context, c *Call) error {
	l, r, err := c.readable(ctx)
	if err != nil {
		return err
	}
	x, err := r.Explain(ctx, l.acp)
	if err != nil {
		return storeError(r.Store(), err)
	}
	e := &explained{Explanation: x, call: c, l: l, protection: r.Protection()}
	if status, _ := r.Text(row.Status); status == "running" {
		j := judge(ctx, c, r, c.owner(ctx, l.cfg))
		e.run = &j
	}
	e.heard = c.heard(ctx, l.cfg, r.Key, x.View.Agent)
	if c.JSON() {
		if err := c.Document(e.document); err != nil {
			return err
		}
	} else {
		e.text()
	}
	c.remark(r.Store())
	if x.Transcript.Err != nil {
		l.failed = append(l.failed, failure{r.Store().Agent, x.Transcript.Path, fmt.Errorf("the transcript of %s cannot be read: %w", r.Key, x.Transcript.Err)})
	}
	return c.tell(l.failed)
}

// readable is the one session that the first argument means, of the agent or store that the flags name, else of all, if it may be
// read; and the stores that were opened for it.
func (c *Call) readable(ctx context.Context) (*listing, *store.Row, error) {
	l, err := c.gather(ctx, !c.Given("agent") && !c.Given("store"))
	if err != nil {
		return nil, nil, err
	}
	r, err := c.find(ctx, l, c.Arg(0))
	if err != nil {
		return nil, nil, err
	}
	if l.sight, err = c.sight(l.cfg, l.opened); err != nil {
		return nil, nil, err
	}
	return l, r, l.sight.reads(r)
}

// find is the one session that a word on the command line means.
func (c *Call) find(ctx context.Context, l *listing, word string) (*store.Row, error) {
	found := store.Find(l.cfg, c.meant(l.cfg), l.opened, word)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if elsewhere := store.Elsewhere(ctx, l.cfg, c.meant(l.cfg), l.opened, word); len(elsewhere) > 0 && c.String("store") == "" {
			s := elsewhere[0].Store()
			return nil, &Error{
				Exit: ExitFailed, Code: "elsewhere", Err: fmt.Errorf("%s is not in a store that is in use, but in %s (agent %s, %s era); show it with --store %s", elsewhere[0].Key, s.Path, s.Agent, s.Era, s.Path),
				Details: map[string]any{"key": elsewhere[0].Key, "path": s.Path, "agentId": s.Agent, "era": s.Era},
			}
		}
		if len(l.failed) > 0 {
			return nil, &Error{Exit: ExitFailed, Err: fmt.Errorf("no session that could be read has the key, id or label %q, but not every store could be: %w", brief(word), c.all(l.failed))}
		}
		where := "agent " + l.opened[0].Agent
		if len(l.opened) > 1 {
			where = "any agent"
		}
		hint := "oc sessions --limit all lists them"
		near := store.Near(l.opened, word)
		if near == "" {
			near = slip(l.opened, word)
		}
		if near != "" {
			hint = fmt.Sprintf("did you mean %s?", term.Escape(near))
		}
		return nil, &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("no session of %s has the key, id or label %q; %s", where, brief(word), hint)}
	}
	var keys []string
	for _, r := range found {
		keys = append(keys, r.Key)
	}
	return nil, Usagef("%q means %d sessions: %s; give the key of one", word, len(found), strings.Join(keys, ", "))
}

// slip is the key that was meant where a word has a slip in it, in the key or in what follows the agent in it; "" where none is near.
func slip(all []*store.Sessions, word string) string {
	meant := map[string]string{}
	var names []string
	for _, s := range all {
		for i := range s.Rows {
			key := s.Rows[i].Key
			rest := key
			if parts := strings.SplitN(key, ":", 3); len(parts) == 3 && parts[0] == "agent" {
				rest = parts[2]
			}
			for _, name := range []string{key, rest} {
				if _, had := meant[name]; !had && name != "" {
					meant[name] = key
					names = append(names, name)
				}
			}
		}
	}
	return meant[nearest(word, names)]
}
