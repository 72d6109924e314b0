package commands

import (
	"fmt"
	"strings"

	"oc/awareness"
	"oc/commands/term"
	"oc/config"
	"oc/store"
	"oc/store/row"
)

// text shows the session and its changes to a person.
func (a *delta) text(c *Call) {
	out := c.Out
	facts := []term.Fact{
		{Label: "Session", Value: a.key, Style: term.Bold},
		{Label: "Agent", Value: a.agent},
	}
	if a.row == nil {
		facts = append(facts, term.Fact{Label: "Status", Value: "no store has it"})
	} else {
		e := &explained{Explanation: &store.Explanation{Row: a.row, View: a.view}, call: c, l: a.l, run: a.run}
		facts = append(facts, term.Fact{Label: "Status", Value: e.status()})
		for _, why := range e.evidence() {
			facts = append(facts, term.Fact{Value: "- " + why})
		}
		updated := term.Unknown
		if a.row.Updated > 0 {
			updated = fmt.Sprintf("%s (%s)", moment(int64(a.row.Updated)), ageOf(a.row.Updated, a.l.now))
		}
		facts = append(
			facts,
			term.Fact{Label: "Model", Value: a.view.Model.Provider + "/" + a.view.Model.Model},
			term.Fact{Label: "Tokens", Value: e.tokensLine()},
			term.Fact{Label: "Updated", Value: updated},
		)
	}
	version := decimal(a.Version)
	switch {
	case a.schema.None:
		version = term.Unknown + ": no awareness data"
	case !a.known:
		version = "0: nothing was recorded of it"
	}
	out.Facts(append(facts, term.Fact{Label: "Version", Value: version}, term.Fact{Label: "Signal log", Value: a.line()})...)
	if a.vitals != nil {
		a.vitals.text(c)
	}
	if !a.asked {
		return
	}
	if len(a.Events) > 0 {
		out.Printf("\nChanges after version %d:\n", a.after)
		eventTable(c, a.Events, false)
	}
	out.Printf("\n")
	c.next(a.todo())
}

// next ends an answer with what to do.
func (c *Call) next(todo string) {
	c.Out.Printf("%s\n", term.Styled(term.Wrap("Next: "+todo, c.Out.Width(), "")))
}

// todo is what to do, in one line.
func (a *delta) todo() string {
	switch a.advice() {
	case doRefresh:
		line := "history gap: refresh the whole session; "
		if a.Truncated {
			return line + fmt.Sprintf("more events follow, ask for them with --changes-since %d", a.next())
		}
		return line + fmt.Sprintf("then go on from version %d", a.next())
	case doReconcile:
		if a.Truncated {
			return fmt.Sprintf("reconcile these events, the oldest %d; then ask for more with --changes-since %d", len(a.Events), a.next())
		}
		return fmt.Sprintf("reconcile these events, then go on from version %d", a.next())
	case doUnknown:
		switch {
		case a.schema.None && a.row != nil:
			return "no awareness data: nothing can be told; refresh the whole session when in doubt"
		case a.schema.None:
			return "no awareness data and no such session: see whether the key is right (oc sessions list --all-agents)"
		}
		if id, _, ok := row.Parse(a.word); ok && a.flag != "" && row.AgentID(id) != config.NormalizeAgentID(a.flag) {
			return fmt.Sprintf("the key names agent %s, and --agent %s has no such session: leave --agent out", id, a.flag)
		}
		return "neither a store nor the log knows this session: see whether the key is right (oc sessions list --all-agents)"
	case doLookAgain:
		return fmt.Sprintf("ahead of head: %d is a version that the session never had, its last is %d; refresh the whole session and go on from there", a.after, a.Version)
	}
	return "nothing changed, as far as was recorded"
}

// eventTable lists events; several says that they are of more than one session.
func eventTable(c *Call, events []awareness.Event, several bool) {
	columns := []term.Column{{Head: "Seq", Right: true}, {Head: "Age", Right: true, Style: futureStyle}}
	if several {
		columns = append(columns, term.Column{Head: "Session", Cut: term.Middle, Min: 20})
	}
	columns = append(columns, term.Column{Head: "Kind"}, term.Column{Head: "By", Cut: term.End, Min: 6}, term.Column{Head: "Summary", Cut: term.End, Min: 16}, term.Column{Head: "Note", Drop: 1})
	t := c.Out.Table(columns...)
	for _, e := range events {
		when := term.Unknown
		if !e.Undated {
			when = ageOf(float64(e.OccurredAt), c.nowMs())
		}
		cells := []string{decimal(e.Sequence), when}
		if several {
			cells = append(cells, keyWord(e.SessionKey))
		}
		t.Row(append(cells, e.Kind, actorWords(e), e.Summary+payloadWords(e), eventNote(e))...)
	}
	t.End()
}

func actorWords(e awareness.Event) string {
	if e.ActorID == "" {
		return e.ActorType
	}
	return e.ActorType + " " + e.ActorID
}

// payloadWords says of an event's payload what its summary does not.
func payloadWords(e awareness.Event) string {
	var words []string
	if out := e.Payload.Outcome; !strings.Contains(e.Summary, out) && !strings.HasPrefix(e.Summary, "child run ") { // OpenClaw's own summary says it in words
		words = append(words, out)
	}
	if !strings.Contains(e.Summary, e.Payload.Channel) {
		words = append(words, e.Payload.Channel)
	}
	if e.Payload.Turns > 1 {
		words = append(words, plural(int(e.Payload.Turns), "turn", "turns"))
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// eventNote tells events that no watcher is told of.
func eventNote(e awareness.Event) string {
	if awareness.Notifies(e.Kind) {
		return ""
	}
	return "log only"
}
