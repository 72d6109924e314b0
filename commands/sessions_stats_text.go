package commands

import (
	"fmt"
	"strings"
	"time"

	"oc/commands/term"
	"oc/store"
)

// tokens are a number of tokens for people.
func tokens(f float64) string {
	switch {
	case f >= 1e9:
		return fmt.Sprintf("%.1fG", f/1e9)
	case f >= 1e6:
		return fmt.Sprintf("%.1fM", f/1e6)
	case f >= 1e4:
		return fmt.Sprintf("%.0fk", f/1e3)
	}
	return fmt.Sprintf("%.0f", f)
}

func (s *spending) text() {
	o := s.call.Out
	if s.Total.Answers == 0 && s.Other.Answers == 0 && (s.removed == nil || s.removed.files == 0) {
		o.Printf("No answer of a model is recorded in %s, %s.\n", plural(len(s.volumes), "transcript", "transcripts"), term.Bytes(s.Bytes))
		s.remarks()
		return
	}
	t := &s.Total
	o.Facts(
		term.Fact{Label: "Cost", Value: s.price(t), Style: term.Bold},
		term.Fact{Label: "Tokens", Value: fmt.Sprintf("%s: %s in, %s out, %s read from the cache, %s written to it", tokens(t.Tokens()), tokens(t.Input), tokens(t.Output), tokens(t.CacheRead), tokens(t.CacheWrite))},
		term.Fact{Label: "Answers", Value: term.Count(int64(t.Answers)) + s.reach()},
		term.Fact{Label: "Counted", Value: s.coverage()},
		term.Fact{Label: "Other era", Value: s.elsewhere()},
		term.Fact{Label: "Removed", Value: s.gone()},
	)
	for _, l := range s.lists(true) {
		if len(l.groups) == 0 {
			continue
		}
		o.Printf("\n")
		if l.by == "day" {
			s.chart(l.groups)
			continue
		}
		table := o.Table(term.Column{Head: l.head, Cut: term.Middle, Min: 16}, term.Column{Head: "Answers", Right: true}, term.Column{Head: "In", Right: true, Drop: 2}, term.Column{Head: "Out", Right: true, Drop: 1},
			term.Column{Head: "Cached", Right: true, Drop: 3}, term.Column{Head: "Tokens", Right: true}, term.Column{Head: "Cost", Right: true})
		for i := range l.groups {
			g := &l.groups[i]
			name := named(g.Name)
			if l.by == "session" && s.call.Bool("both-eras") {
				name += " (" + eraOf(g.Eras) + ")"
			}
			table.Row(name, term.Count(int64(g.Answers)), tokens(g.Input), tokens(g.Output), tokens(g.CacheRead+g.CacheWrite), tokens(g.Tokens()), money(&g.Spent))
		}
		table.End()
		if l.more > 0 {
			s.call.Notef("%s not shown; give --limit all to see them", plural(l.more, "more "+l.by+" is", "more "+l.by+"s are"))
		}
	}
	s.remarks()
}

func named(name string) string {
	if name == "" {
		return term.Unknown
	}
	return name
}

func (s *spending) price(t *store.Spent) string {
	text := money(t)
	if n := t.Answers - t.Priced; n > 0 && t.Priced > 0 {
		text += fmt.Sprintf(" (%s without a price are not in it)", plural(n, "answer", "answers"))
	}
	return text
}

func (s *spending) reach() string {
	silent := ""
	if n := s.Total.Silent; n > 0 {
		silent = fmt.Sprintf(", %s of them silent", term.Count(int64(n)))
	}
	if s.Total.First == 0 {
		return silent
	}
	day := func(ms int64) string { return time.UnixMilli(ms).In(s.zone).Format(time.DateOnly) }
	return silent + fmt.Sprintf(", from %s to %s (%s)", day(s.Total.First), day(s.Total.Last), s.zoneName())
}

// coverage says what the sums are of.
func (s *spending) coverage() string {
	text := fmt.Sprintf("%s of %s (%s)", term.Count(int64(s.Used)), plural(len(s.volumes), "transcript", "transcripts"), term.Bytes(s.Bytes))
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{s.Repeats, "answer that a copy repeats was counted once", "answers that copies repeat were counted once"},
		{s.Outside, "answer lies outside of the time asked for", "answers lie outside of the time asked for"},
		{s.Untimed, "of these has no time", "of these have no time"},
		{s.missing, "session has no transcript and is not in it", "sessions have no transcript and are not in it"},
		{len(s.Unread), "transcript could not be read to its end", "transcripts could not be read to their end"},
	} {
		if x.n > 0 {
			text += "; " + plural(x.n, x.one, x.many)
		}
	}
	return text
}

// elsewhere is what only the era has that OpenClaw does not read.
func (s *spending) elsewhere() string {
	o := &s.Other
	if o.Answers == 0 {
		return ""
	}
	end := "not in the sums (--both-eras adds them)"
	if s.call.Bool("both-eras") {
		end = "in the sums"
	}
	return fmt.Sprintf("%s, %s tokens, %s in the era that OpenClaw does not read, %s", plural(o.Answers, "answer", "answers"), tokens(o.Tokens()), money(o), end)
}

func (s *spending) gone() string {
	if s.removed == nil {
		return "what oc removed is not counted: it is not known of which sessions it was"
	}
	if s.removed.files == 0 {
		return ""
	}
	r := s.removed
	return fmt.Sprintf("%s that oc removed had %s, %s tokens, %s; not in the sums above", plural(r.files, "transcript", "transcripts"), plural(r.Answers, "answer", "answers"),
		tokens(r.Input+r.Output+r.CacheRead+r.CacheWrite), dollars(r.Cost))
}

// chart draws a bar for each day: its cost, or its tokens where no cost is known.
func (s *spending) chart(days []store.Group) {
	o := s.call.Out
	value := func(g *store.Group) float64 { return g.Cost }
	if s.Total.Priced == 0 {
		value = func(g *store.Group) float64 { return g.Tokens() }
	}
	most := 0.0
	for i := range days {
		most = max(most, value(&days[i]))
	}
	room := min(60, max(0, o.Width()-42))
	for i := range days {
		g := &days[i]
		bar := ""
		if most > 0 && o.Terminal() {
			n := int(value(g) / most * float64(room))
			if n == 0 && value(g) > 0 {
				n = 1
			}
			bar = "  " + strings.Repeat("#", n)
		}
		o.Printf("%s %s %s %s%s\n", term.Pad(named(g.Name), 10, false), term.Pad(plural(g.Answers, "answer", "answers"), 14, true), term.Pad(tokens(g.Tokens()), 8, true), term.Pad(money(&g.Spent), 9, true), o.Paint(term.Cyan, bar))
	}
}

// remarks names the sessions whose rows say something else.
func (s *spending) remarks() {
	for i, m := range s.wrong {
		if i == 5 {
			s.call.Warnf("%s too; --json has them all", plural(len(s.wrong)-i, "other session", "other sessions"))
			break
		}
		s.call.Warnf("the row of %s says %s, its transcript adds up to %s", m.Row.Key, dollars(m.Stored), dollars(m.Computed))
	}
}
