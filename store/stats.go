package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"oc/store/row"
	"oc/transcript"
	"oc/transcript/visible"
)

// A Count asks what the model's work in the volumes of a corpus has used.
type Count struct {
	Since, Until int64          // only answers from then on, and before then, epoch ms; 0: whenever
	Zone         *time.Location // of days
	Both         bool           // what only the other era holds is counted with the rest; else in Spending.Other
	Done         func(bytes, volumes int64)
}

// A Spent is what some answers have used. Cost is in US dollars, as it was
// recorded with them; Priced counts those that have one.
type Spent struct {
	Answers                              int
	Silent                               int     // of them, those that said nothing to anybody, as NO_REPLY does
	Input, Output, CacheRead, CacheWrite float64 // tokens
	Cost                                 float64
	Priced                               int
	First, Last                          int64 // of the answers, epoch ms; 0 unknown
}

// Tokens are all tokens that were used.
func (s *Spent) Tokens() float64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

func (s *Spent) add(r *answer) {
	s.Answers++
	s.Silent += b2i(r.silent())
	s.Input += r.input
	s.Output += r.output
	s.CacheRead += r.cacheRead
	s.CacheWrite += r.cacheWrite
	if !math.IsNaN(r.cost) {
		s.Cost += r.cost
		s.Priced++
	}
	if r.at > 0 {
		if s.First == 0 || r.at < s.First {
			s.First = r.at
		}
		s.Last = max(s.Last, r.at)
	}
}

// A Group is what was spent under one name: a day, a model, an agent, a kind or
// a session.
type Group struct {
	Name string // "" for what is not known
	Spent
	Volume *Volume // one of the session's, in a list of sessions
	Eras   []Era   // in which the answers are
}

// Spending is what was found.
type Spending struct {
	Total                                 Spent
	Other                                 Spent   // answers that only the era holds which OpenClaw does not read; in Total if Both
	Days, Models, Agents, Kinds, Sessions []Group // days in order, the others the costliest first
	Repeats                               int     // answers that copies repeat: they were counted once
	Outside                               int     // answers that Since and Until leave out
	Untimed                               int     // of them, those without a time
	Used                                  int     // volumes that have answers
	Bytes                                 int64
	Failed                                []error
	Unread                                map[*Volume]bool
	Own                                   map[*Volume]*Spent // of a volume alone, whatever copies repeat and whenever it was
}

// An answer is what is kept of one: 64 bytes and its time.
type answer struct {
	hash                                 uint64
	at                                   int64
	input, output, cacheRead, cacheWrite float64
	cost                                 float64 // NaN: unknown
	order, model                         int32   // the complement of the model's number for one that is silent
}

func (r *answer) silent() bool { return r.model < 0 }

func (r *answer) modelNumber() int32 { return max(r.model, ^r.model) }

// Run adds up the volumes, each answer once: copies in archives and forks keep
// id and time, and the copy in the best volume counts. An error is that of ctx.
func (q *Count) Run(ctx context.Context, volumes []*Volume) (*Spending, error) {
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	needle, err := transcript.NewNeedle("usage", transcript.ExactCase)
	if err != nil {
		return nil, err
	}
	all := &reckoning{Count: q, seed: maphash.MakeSeed(), volumes: volumes, models: map[string]int32{}}
	p := pass{needle: needle, volumes: volumes, done: q.Done}
	takers, err := p.run(ctx, func() taker { return all.start() })
	if err != nil {
		return nil, err
	}
	return all.merge(takers), nil
}

type reckoning struct {
	*Count
	seed    maphash.Seed
	volumes []*Volume

	mu     sync.Mutex
	models map[string]int32
	names  []string
}

func (c *reckoning) model(provider, model string) int32 {
	name := model
	if provider != "" {
		name = provider + "/" + model
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.models[name]
	if !ok {
		n = int32(len(c.names))
		c.models[name], c.names = n, append(c.names, visible.Redact(name)) // it is what somebody wrote
	}
	return n
}

// An accountant is one worker of a count.
type accountant struct {
	*reckoning
	answers          []answer
	outside, untimed int
	bytes            int64
	failed           []error
	unread           map[*Volume]bool
	own              map[int]*Spent
}

func (c *reckoning) start() *accountant {
	return &accountant{reckoning: c, unread: map[*Volume]bool{}, own: map[int]*Spent{}}
}

func (a *accountant) fresh() taker       { return a.start() }
func (a *accountant) looked(bytes int64) { a.bytes += bytes }

func (a *accountant) take(x taker) {
	o := x.(*accountant)
	a.answers = append(a.answers, o.answers...)
	a.outside, a.untimed, a.failed = a.outside+o.outside, a.untimed+o.untimed, append(a.failed, o.failed...)
	for v := range o.unread {
		a.unread[v] = true
	}
	for i, s := range o.own {
		a.ofVolume(i).merge(s)
	}
}

func (s *Spent) merge(o *Spent) {
	s.Answers, s.Silent, s.Priced = s.Answers+o.Answers, s.Silent+o.Silent, s.Priced+o.Priced
	s.Input, s.Output, s.CacheRead, s.CacheWrite, s.Cost = s.Input+o.Input, s.Output+o.Output, s.CacheRead+o.CacheRead, s.CacheWrite+o.CacheWrite, s.Cost+o.Cost
	if s.First == 0 || o.First > 0 && o.First < s.First {
		s.First = o.First
	}
	s.Last = max(s.Last, o.Last)
}

func (a *accountant) ofVolume(i int) *Spent {
	s := a.own[i]
	if s == nil {
		s = &Spent{}
		a.own[i] = s
	}
	return s
}

func (a *accountant) fail(i int, err error) {
	if err == nil || errors.Is(err, transcript.ErrStop) || errors.Is(err, context.Canceled) {
		return
	}
	v := a.volumes[i]
	a.unread[v] = true
	a.failed = append(a.failed, fmt.Errorf("count %s: %w", &v.Conversation, err))
}

func (a *accountant) line(i int, line []byte, at, _ int64) error {
	if at == 0 {
		line = bytes.TrimPrefix(line, bom)
	}
	e, err := transcript.Parse(line)
	if err != nil {
		return nil //nolint:nilerr // a broken line has no answer
	}
	said, ok := transcript.ReadAnswer(&e)
	if !ok || !said.HasUsage && !said.Usage.Cost.Known {
		return nil
	}
	u := said.Usage
	r := answer{
		hash: identity(a.seed, &e, line), at: max(0, said.Time), order: int32(i), cost: math.NaN(),
		input: u.Input.N, output: u.Output.N, cacheRead: u.CacheRead.N, cacheWrite: u.CacheWrite.N,
	}
	if u.Cost.Known {
		r.cost = u.Cost.N
	}
	if said.Silent {
		r.model = ^r.model
	}
	counts := a.Both || !a.volumes[i].Beside()
	if counts {
		a.ofVolume(i).add(&r)
	}
	if a.Since > 0 && r.at < a.Since || a.Until > 0 && (r.at >= a.Until || r.at == 0) {
		if counts {
			a.outside++
			a.untimed += b2i(r.at == 0)
		}
		return nil
	}
	if r.model = a.model(said.Provider, said.Model); said.Silent {
		r.model = ^r.model
	}
	a.answers = append(a.answers, r)
	return nil
}

func (c *reckoning) merge(takers []taker) *Spending {
	s := &Spending{Unread: map[*Volume]bool{}, Own: map[*Volume]*Spent{}}
	sum := c.start()
	for _, t := range takers {
		sum.take(t)
		s.Bytes += t.(*accountant).bytes
	}
	s.Outside, s.Untimed, s.Failed, s.Unread = sum.outside, sum.untimed, sum.failed, sum.unread
	slices.SortFunc(s.Failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	for i, own := range sum.own {
		s.Own[c.volumes[i]] = own
	}
	s.Used = len(sum.own)
	beside := func(a *answer) bool { return c.volumes[a.order].Beside() }
	slices.SortFunc(sum.answers, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(b2i(beside(&a)), b2i(beside(&b))), cmp.Compare(a.order, b.order))
	})
	g := groups{}
	once := sum.answers[:0]
	for i := range sum.answers {
		if i > 0 && sum.answers[i].hash == sum.answers[i-1].hash {
			s.Repeats++
			continue
		}
		once = append(once, sum.answers[i])
	}
	// In the order of volumes, so that sums of fractions come out the same each time.
	slices.SortFunc(once, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.at, b.at), cmp.Compare(a.cost, b.cost), cmp.Compare(a.output, b.output))
	})
	for i := range once {
		r, v := &once[i], c.volumes[once[i].order]
		if beside(r) {
			if s.Other.add(r); !c.Both {
				continue
			}
		}
		s.Total.add(r)
		day, kind := "", ""
		if r.at > 0 {
			day = time.UnixMilli(r.at).In(c.Zone).Format(time.DateOnly)
		}
		switch {
		case v.Row != nil:
			kind = v.Row.ListKind()
		case v.Key != "":
			kind = string(row.ClassOf(v.Key))
		}
		session := v.Key
		if session == "" {
			session = v.ID
		}
		for _, x := range [][2]string{{"day", day}, {"model", c.names[r.modelNumber()]}, {"agent", v.Agent}, {"kind", kind}} {
			g.add(x[0], x[1], r, nil, v.Era)
		}
		g.add("session", session, r, v, v.Era)
	}
	s.Days, s.Models, s.Agents, s.Kinds, s.Sessions = g.list("day"), g.list("model"), g.list("agent"), g.list("kind"), g.list("session")
	slices.SortFunc(s.Days, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

type groups map[string]map[string]*Group

func (g groups) add(by, name string, r *answer, v *Volume, era Era) {
	if g[by] == nil {
		g[by] = map[string]*Group{}
	}
	x := g[by][name]
	if x == nil {
		x = &Group{Name: name, Volume: v}
		g[by][name] = x
	}
	x.add(r)
	if !slices.Contains(x.Eras, era) {
		x.Eras = append(x.Eras, era)
	}
}

func (g groups) list(by string) (all []Group) {
	for _, x := range g[by] {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// A Mismatch is a session whose row says another cost than the answers of its
// transcript add up to.
type Mismatch struct {
	Row              *Row
	Stored, Computed float64 // US dollars
}

// Mismatches are the sessions whose stored cost is more than a cent and more
// than a hundredth off. One whose answers have no price is not compared.
func (s *Spending) Mismatches() (all []Mismatch) {
	for v, own := range s.Own {
		if v.Row == nil || v.Reason != Current || own.Priced == 0 {
			continue
		}
		stored, ok := v.Row.Number(row.EstimatedCostUSD)
		if !ok || math.IsNaN(stored) || math.IsInf(stored, 0) {
			continue
		}
		if off := math.Abs(stored - own.Cost); off > 0.01 && off > 0.01*math.Max(stored, own.Cost) {
			all = append(all, Mismatch{v.Row, stored, own.Cost})
		}
	}
	slices.SortFunc(all, func(a, b Mismatch) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Stored-b.Computed), math.Abs(a.Stored-a.Computed)), cmp.Compare(a.Row.Key, b.Row.Key))
	})
	return all
}
