package commands

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // --tz must know zones on hosts that have no list of them

	"oc/commands/term"
	"oc/store"
	"oc/store/lifecycle"
	"oc/store/span"
)

func sessionsExplain() *Command {
	return &Command{
		Name:  "explain",
		Args:  "[KEY]",
		Short: "say when a session begins anew, and why",
		Long: "Says whether the next message goes on with a session or begins it anew, by which rule, when the last and the next daily reset are and when it ends for want of messages, " +
			"and what would be carried over. Without KEY it says so of every session of the agent, one a line.\n\n" +
			"OpenClaw 2026.7.35 begins sessions anew every day at 04:00 of the host's time unless the configuration says otherwise; from 2026.9.6 on it does so only when the configuration " +
			"asks for it. Messages extend a session; heartbeats and events of cron jobs do not, and never reset it. Whether a sender may give commands, and whether a reply is still running, " +
			"only a gateway knows.",
		Flags: []Flag{
			agentFlag, allAgentsFlag, storeFlag, asFlag,
			{Name: "at", Value: "TIME", Help: "as if the message came at this time", Takes: aheadHelp, Check: isAhead},
			{Name: "tz", Value: "ZONE", Help: "the time zone of the host that OpenClaw runs on", Takes: "the name of a time zone, for example Europe/Berlin", Check: isZone},
			{Name: "message", Value: "TEXT", Help: "the message, which may be a command such as /new"},
		},
		Examples: []Example{
			{"oc sessions explain main", "what the next message makes of the main session"},
			{"oc sessions explain main --at 12h --message /new", "in twelve hours, with a command"},
			{"oc sessions explain --all-agents --tz Europe/Berlin", "every session, one a line"},
		},
		Exits: []int{ExitBusy},
		Run:   explainSessions,
	}
}

const aheadHelp = "a time: 12h or 2d from now, 2026-09-21, 2026-09-21T14:00:00Z, or milliseconds since 1970"

// parseAhead is parseMoment with durations that lie ahead.
func parseAhead(s string, now time.Time) (ms int64, ok bool) {
	if d, err := parseDuration(strings.TrimSpace(s)); err == nil && !isNumber(s) {
		return now.Add(d).UnixMilli(), true
	}
	return parseMoment(s, now)
}

func isNumber(s string) bool { return strings.Trim(strings.TrimSpace(s), "0123456789") == "" }

func isAhead(s string) bool {
	_, ok := parseAhead(s, time.UnixMilli(0))
	return ok
}

// prospect is one session, and what becomes of it.
type prospect struct {
	*store.Row
	store.Prospect
}

func explainSessions(ctx context.Context, c *Call) error {
	one := c.Arg(0) != ""
	l, err := c.gather(ctx, c.Bool("all-agents") || one && !c.Given("agent") && !c.Given("store"))
	if err != nil {
		return err
	}
	if l.sight, err = c.sight(l.cfg, l.opened); err != nil {
		return err
	}
	zone := time.Local
	if c.Given("tz") {
		if zone, err = time.LoadLocation(c.String("tz")); err != nil {
			return err
		}
	}
	at := c.Now().In(zone)
	if c.Given("at") {
		ms, _ := parseAhead(c.String("at"), c.Now())
		at = time.UnixMilli(ms).In(zone)
	}
	if one {
		r, err := c.find(ctx, l, c.Arg(0))
		if err != nil {
			return err
		}
		if err := l.sight.reads(r); err != nil {
			return err
		}
		l.rows = []*store.Row{r}
	} else {
		for _, s := range l.opened {
			for i := range s.Rows {
				if r := &s.Rows[i]; l.sight.lists(r) {
					l.rows = append(l.rows, r)
				}
			}
		}
		store.Sort(l.rows, store.ByUpdated)
	}
	all := make([]prospect, len(l.rows))
	for i, r := range l.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		all[i] = prospect{r, r.Prospect(lifecycle.Message{Text: c.String("message")}, at)}
	}
	switch {
	case c.JSON():
		err = c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("at").Int(at.UnixMilli())
			p.Key("timeZone").String(zone.String())
			p.Key("sessions").Array()
			for i := range all {
				all[i].print(p)
			}
			p.End()
			l.failed.print(p)
			p.End()
			return nil
		})
	case one:
		all[0].text(c, at)
	default:
		prospects(c, all, at)
	}
	if err != nil {
		return err
	}
	for _, s := range l.opened {
		c.remark(s)
	}
	l.sight.tell(c)
	return c.tell(l.failed)
}

// rules are the rules that decide, in words.
var rules = map[lifecycle.Why]string{
	lifecycle.ByTrigger:  "the message is a command to begin anew",
	lifecycle.ByDaily:    "it started before the last daily reset",
	lifecycle.ByIdle:     "nothing was said for longer than the idle limit",
	lifecycle.ByEvent:    "events of OpenClaw's own never reset",
	lifecycle.ByProvider: "the provider's own program keeps the conversation, and no reset is configured",
	lifecycle.ByFresh:    "no reset lies behind it",
	lifecycle.ByArchive:  "it is archived; oc sessions restore takes it up again",
	lifecycle.ByEmpty:    "it has no session id yet",
}

// text explains one session to a person.
func (x *prospect) text(c *Call, at time.Time) {
	zone := at.Location()
	when := func(ms float64) string {
		if math.IsNaN(ms) {
			return ""
		}
		return fmt.Sprintf("%s (%s)", term.TimeIn(int64(ms), zone), age(at, ms))
	}
	start := term.Unknown
	if x.State.Start > 0 {
		start = when(x.State.Start) + ", from " + source(x.From)
	}
	last := term.Unknown
	if x.State.Last > 0 {
		last = when(x.State.Last)
	}
	style := term.Green
	if x.Next.Outcome != lifecycle.Goes {
		style = term.Yellow
	}
	facts := []term.Fact{
		{Label: "Session", Value: x.Key, Style: term.Bold},
		{Label: "Next message", Value: string(x.Next.Outcome), Style: style},
		{Label: "Why", Value: rules[x.Next.Why]},
	}
	if c.Given("at") {
		facts = append(facts, term.Fact{Label: "At", Value: term.TimeIn(at.UnixMilli(), zone)})
	}
	if x.Next.Trigger != "" {
		facts = append(facts, term.Fact{Label: "Command", Value: x.Next.Trigger}, term.Fact{Label: "First words", Value: or(x.Next.Rest, "none: only the session begins anew")})
	}
	if x.Next.Clears {
		facts = append(facts, term.Fact{Label: "Also", Value: "the state of its failed run is cleared"})
	}
	facts = append(facts,
		term.Fact{Label: "Policy", Value: policyLine(x.Policy, x.Type)},
		term.Fact{Label: "Started", Value: start},
		term.Fact{Label: "Last message", Value: last},
		term.Fact{Label: "Last reset", Value: when(x.State.Boundary)},
		term.Fact{Label: "Next reset", Value: when(x.State.Next)},
		term.Fact{Label: "Idle expiry", Value: or(when(x.State.Expires), "never")},
	)
	if x.Next.Outcome != lifecycle.Refused {
		kept := "nothing"
		if names := x.carried(); len(names) > 0 {
			kept = strings.Join(names, ", ")
		}
		label := "Carried over"
		if x.Next.Outcome == lifecycle.Goes {
			label = "A reset keeps"
		}
		facts = append(facts, term.Fact{Label: label, Value: kept})
	}
	c.Out.Facts(append(facts, term.Fact{Label: "A fork of it", Value: forkLine(lifecycle.ForkOf(&x.Entry, 0))})...)
}

// forkLine says what a thread or a sub-agent that is forked from the session begins with.
func forkLine(f lifecycle.Fork) string {
	switch {
	case !f.Known:
		return "gets the conversation; its tokens are " + term.Unknown
	case f.Copies:
		return fmt.Sprintf("gets the conversation, of %s tokens", term.Count(int64(f.Tokens)))
	}
	return fmt.Sprintf("begins alone: %s tokens are more than the %s that are copied", term.Count(int64(f.Tokens)), term.Count(lifecycle.MostForked))
}

func source(from string) string {
	if from == "header" {
		return "the transcript's header"
	}
	return from
}

func age(at time.Time, ms float64) string {
	a := term.Age(at.UnixMilli() - int64(ms))
	if strings.HasPrefix(a, "in ") || a == "now" {
		return a
	}
	return a + " ago"
}

// carried are the names of the fields that are still there when it has begun anew.
func (x *prospect) carried() (names []string) {
	for _, f := range lifecycle.Carried(&x.Entry, x.Next.Why == lifecycle.ByTrigger) {
		names = append(names, f.String())
	}
	return names
}

// policyLine says what ends sessions of a type, and which keys of the configuration say so.
func policyLine(p lifecycle.Policy, t lifecycle.Type) string {
	from := func(path string) string {
		if path == "" {
			return "OpenClaw's default"
		}
		return path
	}
	var s string
	switch {
	case p.Mode == lifecycle.Daily:
		s = fmt.Sprintf("daily at %02d:00 (%s)", p.Hour, from(or(p.HourFrom, p.ModeFrom)))
	case p.Mode == lifecycle.Idle && p.Idle == 0:
		return fmt.Sprintf("idle without a limit: never (%s)", from(p.ModeFrom))
	case p.Mode == lifecycle.Never:
		return fmt.Sprintf("never (%s)", from(p.ModeFrom))
	}
	if p.Idle > 0 {
		if s != "" {
			s += ", and "
		}
		s += fmt.Sprintf("after %s without a message (%s)", minutes(p.Idle), from(p.IdleFrom))
	}
	if t != lifecycle.Direct {
		s += fmt.Sprintf("; it is a %s", t)
	}
	return s
}

func minutes(n float64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.0f minutes", n)
	}
	return strings.TrimSuffix(strings.TrimSuffix((time.Duration(n)*time.Minute).String(), "0s"), "0m")
}

// prospects shows many sessions, one a line.
func prospects(c *Call, all []prospect, at time.Time) {
	if len(all) == 0 {
		c.Out.Printf("No sessions found.\n")
		return
	}
	t := c.Out.Table(term.Column{Head: "Key", Cut: term.Middle, Min: 24}, term.Column{Head: "Next message"}, term.Column{Head: "Rule"},
		term.Column{Head: "Next reset", Right: true}, term.Column{Head: "Idle expiry", Right: true})
	cell := func(ms float64) string {
		if math.IsNaN(ms) {
			return "never"
		}
		return age(at, ms)
	}
	for i := range all {
		x := &all[i]
		t.Row(x.Key, string(x.Next.Outcome), string(x.Next.Why), cell(x.State.Next), cell(x.State.Expires))
	}
	t.End()
}

func (x *prospect) print(p *span.Printer) {
	instant := func(key string, ms float64) {
		if p.Key(key); math.IsNaN(ms) {
			p.Null()
		} else {
			p.Float(ms)
		}
	}
	p.Object()
	p.Key("key").String(x.Key)
	p.Key("outcome").String(map[lifecycle.Outcome]string{lifecycle.Goes: "continue", lifecycle.Begins: "new", lifecycle.Refused: "refused"}[x.Next.Outcome])
	p.Key("rule").String(string(x.Next.Why))
	p.Key("reason").String(rules[x.Next.Why])
	if x.Next.Trigger != "" {
		p.Key("trigger").String(x.Next.Trigger)
		p.Key("rest").String(x.Next.Rest)
	}
	p.Key("fresh").Bool(x.State.Fresh)
	p.Key("clearsFailedRun").Bool(x.Next.Clears)
	p.Key("type").String(string(x.Type))
	p.Key("policy").Object()
	p.Key("mode").String(string(x.Policy.Mode))
	p.Key("atHour").Int(int64(x.Policy.Hour))
	if p.Key("idleMinutes"); x.Policy.HasIdle {
		p.Float(x.Policy.Idle)
	} else {
		p.Null()
	}
	p.Key("configured").Bool(x.Policy.Configured)
	for _, f := range [][2]string{{"modeFrom", x.Policy.ModeFrom}, {"atHourFrom", x.Policy.HourFrom}, {"idleMinutesFrom", x.Policy.IdleFrom}} {
		p.Key(f[0]).String(or(f[1], "default"))
	}
	p.End()
	known := func(ms float64) float64 {
		if ms <= 0 {
			return math.NaN()
		}
		return ms
	}
	instant("startedAt", known(x.State.Start))
	p.Key("startedAtFrom").String(x.From)
	instant("lastMessageAt", known(x.State.Last))
	instant("dailyResetAt", x.State.Boundary)
	instant("nextResetAt", x.State.Next)
	instant("idleExpiresAt", x.State.Expires)
	fork := lifecycle.ForkOf(&x.Entry, 0)
	p.Key("fork").Object()
	p.Key("copies").Bool(fork.Copies)
	if p.Key("tokens"); fork.Known {
		p.Float(fork.Tokens)
	} else {
		p.Null()
	}
	p.Key("maxTokens").Int(lifecycle.MostForked)
	p.End()
	p.Key("carried").Array()
	for _, name := range x.carried() {
		p.String(name)
	}
	p.End()
	p.End()
}
