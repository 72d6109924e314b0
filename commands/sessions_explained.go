package commands

import (
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/gateway"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript/visible"
)

// explained is one session with everything that is shown of it.
type explained struct {
	*store.Explanation
	call       *Call
	l          *listing
	protection string // the rule that keeps cleanup away; "" for none
	run        *gateway.Judgement
	heard      *heard // what the signal log knows; nil where there is none
}

// text shows the session to a person.
func (e *explained) text() {
	r, t, out := e.Row, e.Transcript, e.call.Out
	s := r.Store()
	model := fmt.Sprintf("%s/%s (from %s)", e.View.Model.Provider, e.View.Model.Model, modelSource(e.View.Model.Source))
	label, _ := r.Text(row.Label)
	facts := []term.Fact{
		{Label: "Session", Value: keyWord(r.Key), Style: term.Bold},
		{Label: "Kind", Value: fmt.Sprintf("%s (%s key)", e.View.Kind, e.Class)},
		{Label: "Agent", Value: e.View.Agent},
		{Label: "Label", Value: visible.ShowLine(label)},
		{Label: "Session id", Value: or(r.ID(), "none")},
		{Label: "Store", Value: fmt.Sprintf("%s (%s)", s.Path, eraWord(s))},
		{Label: "Status", Value: e.status()},
	}
	for _, why := range e.evidence() {
		facts = append(facts, term.Fact{Label: "", Value: "- " + why})
	}
	facts = append(facts,
		term.Fact{Label: "Transcript", Value: e.transcriptLine()},
		term.Fact{Label: "Messages", Value: e.messagesLine()},
		term.Fact{Label: "Model", Value: model},
		term.Fact{Label: "Tokens", Value: e.tokensLine()},
		term.Fact{Label: "Origin", Value: visible.ShowLine(originLine(e.Origin))},
		term.Fact{Label: "Answers go to", Value: or(deliveryLine(e.Delivery), term.Unknown)},
		term.Fact{Label: "Active route", Value: term.Unknown + " (only a running gateway knows it)"},
		term.Fact{Label: "Protection", Value: or(e.protection, "none: cleanup may remove it by age or number")},
		term.Fact{Label: "Parent", Value: e.Parent},
		term.Fact{Label: "Thread", Value: e.Thread},
		term.Fact{Label: "Children", Value: strings.Join(e.Children, ", ")},
		term.Fact{Label: "Other keys", Value: strings.Join(e.Aliases, ", ")},
		term.Fact{Label: "Same id", Value: strings.Join(e.SameID, ", ")},
		term.Fact{Label: "Policy key", Value: e.View.PolicyKey},
	)
	if t.Err != nil {
		facts = append(facts, term.Fact{Label: "Problem", Value: t.Err.Error(), Style: term.Red})
	}
	out.Facts(facts...)
	if len(e.Stamps) > 0 {
		out.Printf("\n")
		table := out.Table(term.Column{Head: "Time"}, term.Column{Head: "When"}, term.Column{Head: "Age", Right: true, Style: futureStyle})
		for _, st := range e.Stamps {
			if st.Valid {
				when := term.Time(int64(st.MS))
				if st.Name == row.UpdatedAt.String() && r.InSeconds() {
					when += " (in seconds? then " + term.Time(int64(st.MS)*1000) + ")"
				}
				table.Row(st.Name, when, ageOf(st.MS, e.l.now))
			} else {
				table.Row(st.Name, "impossible: "+string(r.Raw(fieldNamed(st.Name))), term.Unknown)
			}
		}
		table.End()
	}
	if len(e.Lineage) > 0 {
		out.Printf("\nEarlier transcripts of this session:\n")
		table := out.Table(term.Column{Head: "What"}, term.Column{Head: "Age", Right: true}, term.Column{Head: "Size", Right: true}, term.Column{Head: "Session id", Cut: term.Middle, Min: 13}, term.Column{Head: "File", Cut: term.Middle, Min: 30})
		for _, a := range e.Lineage {
			table.Row(a.Reason, ageOf(float64(a.At.UnixMilli()), e.l.now), term.Bytes(a.Bytes), or(a.ID, term.Unknown), or(a.Path, "in the database"))
		}
		table.End()
	}
	if e.heard != nil {
		e.heard.text(e.call)
	}
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (e *explained) status() string {
	status, _ := e.Row.Text(row.Status)
	var words []string
	if status != "" {
		words = append(words, status)
	}
	if e.run != nil {
		words[0] += " (" + string(e.run.Word) + ")"
	}
	if e.Row.Archived() {
		words = append(words, "archived")
	}
	if e.Row.Pinned() {
		words = append(words, "pinned")
	}
	return or(strings.Join(words, ", "), "not said")
}

func (e *explained) evidence() []string {
	if e.run == nil {
		return nil
	}
	return e.run.Evidence
}

func (e *explained) transcriptLine() string {
	t := e.Transcript
	if e.Row.Era() == store.SQLiteEra {
		return fmt.Sprintf("in the database, %s in %s rows", term.Bytes(t.Bytes), term.Count(t.Rows))
	}
	switch {
	case t.Path == "":
		return "none: the row names no file and no session id"
	case t.Missing && t.Err != nil:
		return "unusable: " + t.Err.Error()
	case t.Missing:
		return fmt.Sprintf("missing: looked for %s (by %s)", t.Path, t.How)
	}
	link := ""
	if t.Link {
		link = ", through a link"
	}
	lines := "an unknown number of lines"
	if t.Rows >= 0 {
		lines = term.Count(t.Rows) + " lines"
	}
	if t.Damaged > 0 {
		lines += fmt.Sprintf(", %s of them damaged", term.Count(t.Damaged))
	}
	return fmt.Sprintf("%s (by %s%s), %s in %s", t.Path, t.How, link, term.Bytes(t.Bytes), lines)
}

func (e *explained) messagesLine() string {
	t := e.Transcript
	if t.First == 0 && t.Last == 0 {
		return ""
	}
	return fmt.Sprintf("first %s, last %s", moment(t.First), moment(t.Last))
}

func moment(ms int64) string {
	if ms <= 0 {
		return term.Unknown
	}
	return term.Time(ms)
}

func (e *explained) tokensLine() string {
	n, known, fresh := e.Row.Tokens()
	line := tokensCell(e.Row, e.View)
	switch {
	case !known:
		return line + ": never counted"
	case fresh:
		line = fmt.Sprintf("%s, %s as of the last run", line, term.Count(int64(n)))
	default:
		line = fmt.Sprintf("%s, %s, stale: the context has changed since", line, term.Count(int64(n)))
	}
	window := "window from the row"
	if !e.Row.HasContextTokens() {
		window = "window from " + contextSource(e.View.Model.ContextSource)
	}
	return line + "; " + window
}

func modelSource(s string) string {
	switch s {
	case "override":
		return "the row's override"
	case "entry":
		return "its last run"
	case "agent":
		return "the configuration of the agent"
	case "defaults":
		return "the configuration's defaults"
	case "built-in":
		return "the release's default"
	case "acp":
		return "its ACP runtime"
	}
	return s
}

func contextSource(s string) string {
	switch s {
	case "defaults":
		return "the configuration's defaults"
	case "model":
		return "the configuration of the model"
	case "default-model":
		return "the configuration of the default model"
	}
	return "the release's default"
}

func originLine(origin []byte) string {
	var parts []string
	for _, name := range []string{"provider", "surface", "chatType", "label", "from", "to", "accountId", "threadId"} {
		raw := span.Member(origin, name)
		if s, ok := span.Text(raw); ok {
			parts = append(parts, name+" "+s)
		} else if span.KindOf(raw) == span.Number {
			parts = append(parts, name+" "+string(raw))
		}
	}
	return strings.Join(parts, ", ")
}

func deliveryLine(d row.Delivery) string {
	var parts []string
	for _, p := range [][2]string{{"", d.Channel}, {"to ", d.To}, {"account ", d.Account}, {"thread ", strings.Trim(string(d.Thread), `"`)}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func fieldNamed(name string) row.Field {
	for _, f := range row.Fields() {
		if f.String() == name {
			return f
		}
	}
	return row.Undocumented
}

// document is the session as one JSON document: the row of the list, and what explains it.
func (e *explained) document(p *span.Printer) error {
	r, s := e.Row, e.Row.Store()
	p.Object()
	p.Key("session")
	e.l.row(p, r)
	p.End()
	p.Key("era").String(string(s.Era))
	p.Key("store").String(s.Path)
	if s.Era == store.SQLiteEra {
		p.Key("schema").Int(int64(s.Schema.UserVersion))
	}
	if s.Quarantine != "" {
		p.Key("quarantine").String(s.Quarantine)
	}
	p.Key("class").String(string(e.Class))
	p.Key("modelSource").String(e.View.Model.Source)
	if p.Key("contextTokensSource"); r.HasContextTokens() {
		p.String("entry")
	} else {
		p.String(e.View.Model.ContextSource)
	}
	t := e.Transcript
	p.Key("transcript").Object()
	if s.Era == store.FileEra {
		if p.Key("path"); t.Path == "" {
			p.Null()
		} else {
			p.String(t.Path)
		}
		p.Key("foundBy").String(t.How)
		p.Key("missing").Bool(t.Missing)
		p.Key("link").Bool(t.Link)
		p.Key("candidates").Array()
		for _, c := range t.Tried {
			p.Object()
			p.Key("path").String(c.Path)
			p.Key("by").String(c.How)
			p.End()
		}
		p.End()
	}
	if t.Missing {
		p.Key("bytes").Null()
		p.Key("rows").Null()
	} else {
		p.Key("bytes").Int(t.Bytes)
		if p.Key("rows"); t.Rows < 0 {
			p.Null()
		} else {
			p.Int(t.Rows)
		}
		p.Key("damagedRows").Int(t.Damaged)
	}
	stamp(p, "firstMessageAt", t.First)
	stamp(p, "lastMessageAt", t.Last)
	if t.Err != nil {
		p.Key("error").String(t.Err.Error())
	}
	p.End()
	p.Key("route").Object()
	if p.Key("origin"); e.Origin == nil {
		p.Null()
	} else {
		p.Raw(e.Origin)
	}
	p.Key("active").String(term.Unknown)
	p.Key("deliveryContext").Object()
	for _, part := range [][2]string{{"channel", e.Delivery.Channel}, {"to", e.Delivery.To}, {"accountId", e.Delivery.Account}} {
		if part[1] != "" {
			p.Key(part[0]).String(part[1])
		}
	}
	if e.Delivery.Thread != nil {
		p.Key("threadId").Raw(e.Delivery.Thread)
	}
	p.End()
	p.End()
	if p.Key("protection"); e.protection == "" {
		p.Null()
	} else {
		p.String(e.protection)
	}
	optional(p, "parent", e.Parent)
	optional(p, "threadId", e.Thread)
	for _, list := range []struct {
		name string
		keys []string
	}{{"children", e.Children}, {"aliases", e.Aliases}, {"sameSessionId", e.SameID}} {
		p.Key(list.name).Array()
		for _, k := range list.keys {
			p.String(k)
		}
		p.End()
	}
	if e.run != nil {
		judgement(p, "run", *e.run)
	}
	if e.heard != nil {
		e.heard.print(p)
	}
	p.Key("stamps").Object()
	for _, st := range e.Stamps {
		p.Key(st.Name).Raw(r.Raw(fieldNamed(st.Name)))
	}
	p.End()
	p.Key("lineage").Array()
	for _, a := range e.Lineage {
		p.Object()
		p.Key("reason").String(a.Reason)
		p.Key("sessionId").String(a.ID)
		if a.Path != "" {
			p.Key("path").String(a.Path)
		}
		p.Key("bytes").Int(a.Bytes)
		stamp(p, "at", a.At.UnixMilli())
		p.End()
	}
	p.End()
	e.l.sight.print(p)
	e.l.failed.print(p)
	p.End()
	return nil
}

func optional(p *span.Printer, name, value string) {
	if p.Key(name); value == "" {
		p.Null()
	} else {
		p.String(value)
	}
}
