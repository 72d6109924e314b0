package commands

import (
	"context"
	"fmt"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
	"oc/transcript"
)

// showUnlinked answers sessions list --history: the transcripts that no session names.
func (c *Call) showUnlinked(ctx context.Context, l *listing) error {
	type found struct {
		agent string
		store.Unlinked
	}
	var all []found
	var problems []error
	seen := map[string]bool{}
	for _, s := range l.opened {
		if seen[s.Dir()] || !l.sight.searches(&store.Volume{Agent: s.Agent}) {
			continue
		}
		seen[s.Dir()] = true
		items, errs := s.Unlinked(ctx)
		problems = append(problems, errs...)
		for _, u := range items {
			all = append(all, found{s.Agent, u})
		}
	}
	for _, err := range problems {
		c.Warnf("%v", err)
	}
	total := len(all)
	if n, every := c.CountOrAll("limit"); !every {
		all = all[:min(int64(len(all)), n)]
	}
	if c.JSON() {
		return c.partly(l, problems, c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(all)))
			p.Key("totalCount").Int(int64(total))
			p.Key("history").Array()
			for i := range all {
				u := &all[i]
				p.Object()
				p.Key("agentId").String(u.agent)
				p.Key("sessionId").String(u.Session)
				p.Key("path").String(u.Path)
				p.Key("bytes").Int(u.Size)
				p.Key("modifiedAt").Int(u.ModTime.UnixMilli())
				stamp(p, "firstMessageAt", u.Glimpse.First)
				stamp(p, "lastMessageAt", u.Glimpse.Last)
				p.Key("empty").Bool(u.Empty())
				p.Key("derivedTitle").String(historyTitle(&u.Unlinked))
				p.Key("lastMessagePreview").String(u.Glimpse.Preview)
				if u.Key != "" {
					p.Key("lineageOf").String(u.Key)
				}
				if len(u.Also) > 0 {
					p.Key("archives").Array()
					for _, a := range u.Also {
						p.String(a)
					}
					p.End()
				}
				if u.Err != nil {
					p.Key("error").String(u.Err.Error())
				}
				p.End()
			}
			p.End()
			l.foot(p)
			p.End()
			return nil
		}))
	}
	if total == 0 {
		c.Out.Printf("Every transcript is named by a session.\n")
		return c.partly(l, problems, nil)
	}
	c.Out.Printf("Transcripts that no session names: %d (history, not garbage)\n\n", total)
	t := c.Out.Table(
		term.Column{Head: "Session id", Cut: term.Middle, Min: 13}, term.Column{Head: "First", Right: true}, term.Column{Head: "Last", Right: true}, term.Column{Head: "Size", Right: true},
		term.Column{Head: "What it is about", Cut: term.End, Min: 16},
	)
	for i := range all {
		u := &all[i]
		t.Row(u.Session, ageOf(float64(u.Glimpse.First), l.now), ageOf(float64(u.Glimpse.Last), l.now), term.Bytes(u.Size), historyTitle(&u.Unlinked))
	}
	t.End()
	if len(all) < total {
		c.Notef("%d more; give --limit all to see them", total-len(all))
	}
	return c.partly(l, problems, nil)
}

func historyTitle(u *store.Unlinked) string {
	switch {
	case u.Err != nil:
		return "unreadable: " + u.Err.Error()
	case u.Empty():
		return "empty: no message in it"
	}
	title := transcript.Title(transcript.Named{SessionID: u.Session, UpdatedAt: float64(u.Glimpse.Last)}, u.Glimpse.FirstUser)
	if len(u.Also) > 0 {
		title += fmt.Sprintf(" (also archived, %d)", len(u.Also))
	}
	if u.Key != "" {
		title += " (earlier part of " + u.Key + ")"
	}
	return title
}

// stamp prints a time, null where it is not known.
func stamp(p *span.Printer, name string, ms int64) {
	if p.Key(name); ms > 0 {
		p.Int(ms)
	} else {
		p.Null()
	}
}

// partly ends an answer: a problem on the way makes it a partial one.
func (c *Call) partly(l *listing, problems []error, err error) error {
	if err == nil {
		l.hidden = 0
		err = c.remarks(l)
	}
	if err == nil && len(problems) > 0 {
		return Status(ExitFailed)
	}
	return err
}
