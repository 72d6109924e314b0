package commands

import (
	"cmp"
	"context"
	"slices"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// tally adds up rows.
type tally struct {
	name           string
	rows           int
	storeBytes     int64 // of the rows themselves
	files          int64 // of their transcripts
	oldest, newest float64
	zero           int // rows that have used no token, as far as they say
}

func (t *tally) add(r *store.Row, file int64) {
	t.rows++
	t.storeBytes += r.Bytes()
	t.files += file
	if r.Updated > 0 && r.Updated <= lastStamp { // an impossible one is neither
		if t.oldest == 0 || r.Updated < t.oldest {
			t.oldest = r.Updated
		}
		t.newest = max(t.newest, r.Updated)
	}
	if n, known, _ := r.Tokens(); !known || n == 0 {
		in, _ := r.Number(row.InputTokens)
		out, _ := r.Number(row.OutputTokens)
		if in == 0 && out == 0 {
			t.zero++
		}
	}
}

// summary is the totals of a listing.
type summary struct {
	all                  tally
	kinds, agents, crons []*tally
}

func group(all *[]*tally, name string) *tally {
	for _, t := range *all {
		if t.name == name {
			return t
		}
	}
	t := &tally{name: name}
	*all = append(*all, t)
	return t
}

// showSummary answers sessions list --summary: totals by kind, agent and cron job of the rows that pass the filters.
func (c *Call) showSummary(ctx context.Context, l *listing) error {
	s := summary{all: tally{name: "all"}}
	found, err := store.Details(ctx, l.rows, store.Want{Bytes: true})
	if err != nil {
		return Failf("%w", err)
	}
	for i, r := range l.rows {
		size := found[i].Bytes
		s.all.add(r, size)
		group(&s.kinds, r.ListKind()).add(r, size)
		agent := r.Store().Agent
		if id, _, ok := row.Parse(r.Key); ok {
			agent = id
		}
		group(&s.agents, agent).add(r, size)
		if job, ok := row.CronJob(r.Key); ok {
			group(&s.crons, job).add(r, size)
		}
	}
	for _, g := range [][]*tally{s.kinds, s.agents, s.crons} {
		slices.SortStableFunc(g, func(a, b *tally) int { return cmp.Compare(b.rows, a.rows) })
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("total")
			s.all.print(p, "")
			for _, g := range []struct {
				name, key string
				all       []*tally
			}{{"byKind", "kind", s.kinds}, {"byAgent", "agentId", s.agents}, {"byCronJob", "jobId", s.crons}} {
				p.Key(g.name).Array()
				for _, t := range g.all {
					t.print(p, g.key)
				}
				p.End()
			}
			l.foot(p)
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
		return c.remarks(l)
	}
	s.tables(c, l)
	return c.remarks(l)
}

func (t *tally) print(p *span.Printer, key string) {
	p.Object()
	if key != "" {
		p.Key(key).String(t.name)
	}
	p.Key("rows").Int(int64(t.rows))
	p.Key("rowBytes").Int(t.storeBytes)
	p.Key("transcriptBytes").Int(t.files)
	stamp(p, "oldestAt", int64(t.oldest))
	stamp(p, "newestAt", int64(t.newest))
	p.Key("zeroTokenRows").Int(int64(t.zero))
	p.End()
}

func (s *summary) tables(c *Call, l *listing) {
	for _, g := range []struct {
		head string
		all  []*tally
	}{{"Kind", s.kinds}, {"Agent", s.agents}, {"Cron job", s.crons}} {
		if len(g.all) == 0 {
			continue
		}
		t := c.Out.Table(
			term.Column{Head: g.head, Cut: term.Middle}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "In store", Right: true}, term.Column{Head: "Transcripts", Right: true},
			term.Column{Head: "Oldest", Right: true}, term.Column{Head: "Newest", Right: true}, term.Column{Head: "No tokens", Right: true},
		)
		for _, k := range g.all {
			t.Row(k.name, term.Count(int64(k.rows)), term.Bytes(k.storeBytes), term.Bytes(k.files), ageOf(k.oldest, l.now), ageOf(k.newest, l.now), term.Count(int64(k.zero)))
		}
		if g.head == "Kind" {
			a := s.all
			t.Row("all", term.Count(int64(a.rows)), term.Bytes(a.storeBytes), term.Bytes(a.files), ageOf(a.oldest, l.now), ageOf(a.newest, l.now), term.Count(int64(a.zero)))
		}
		t.End()
		c.Out.Printf("\n")
	}
}
