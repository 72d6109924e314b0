package commands

import (
	"fmt"
	"math"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
)

// table is the answer of sessions list for people.
func (l *listing) table(c *Call, details []detail) {
	out := c.Out
	if l.several {
		var names []string
		for _, s := range l.opened {
			names = append(names, s.Agent)
		}
		for _, f := range l.failed {
			names = append(names, f.agent+" unreadable")
		}
		out.Printf("Session stores: %d (%s)\n", len(names), strings.Join(names, ", "))
	} else {
		out.Printf("Session store: %s\n", l.opened[0].Path)
	}
	line := fmt.Sprintf("Sessions listed: %d", len(l.rows))
	if len(l.rows) < l.total {
		line += fmt.Sprintf(" of %d (limit %d)", l.total, l.limit)
	}
	if !l.several {
		line += ", " + eraWord(l.opened[0])
	}
	for _, o := range l.others {
		line += ", and " + eraWord(o) + " of " + o.Agent
	}
	out.Printf("%s\n", line)
	if c.Given("active") {
		out.Printf("Filtered to last %d minute(s)\n", c.Int("active"))
	}
	if len(l.rows) == 0 {
		out.Printf("%s\n", l.nothing())
		return
	}
	out.Printf("\n")
	wide := c.Bool("wide")
	columns := []term.Column{{Head: "Kind"}, {Head: "Key", Cut: term.Middle, Min: 28}, {Head: "Age", Right: true, Style: futureStyle}, {Head: "Model", Cut: term.End, Min: 8, Drop: 3}}
	if l.several {
		columns = append([]term.Column{{Head: "Agent", Cut: term.End}}, columns...)
	}
	if l.copies != nil {
		columns = append(columns, term.Column{Head: "Era"})
	}
	if wide {
		columns = append(columns, term.Column{Head: "Runtime"})
	}
	columns = append(columns, term.Column{Head: "Tokens (ctx %)", Right: true, Drop: 1})
	if l.judged != nil {
		columns = append(columns, term.Column{Head: "Verdict"})
	}
	titles, previews := c.Bool("titles"), c.Bool("preview")
	if titles {
		columns = append(columns, term.Column{Head: "Title", Cut: term.End, Min: 16})
	}
	if previews {
		columns = append(columns, term.Column{Head: "Last message", Cut: term.End, Min: 16})
	}
	flags := wide || !titles && !previews
	if flags {
		columns = append(columns, term.Column{Head: "Flags", Cut: term.End, Min: 12, Drop: 2})
	}
	if wide {
		columns = append(columns, term.Column{Head: "Session id"})
	}
	out.Wide = out.Wide || wide
	t := out.Table(columns...)
	short := l.shorten(wide)
	for i, r := range l.rows {
		v := r.View(l.acp)
		cells := make([]string, 0, len(columns))
		if l.several {
			cells = append(cells, v.Agent)
		}
		cells = append(cells, v.Kind, short(r, v), l.age(r), v.Model.Model)
		if l.copies != nil {
			cells = append(cells, l.era(r))
		}
		if wide {
			cells = append(cells, v.Model.RuntimeLabel)
		}
		cells = append(cells, tokensCell(r, v))
		if l.judged != nil {
			cells = append(cells, string(l.judged[r].Word))
		}
		if titles {
			cells = append(cells, details[i].cell(details[i].title))
		}
		if previews {
			cells = append(cells, details[i].cell(details[i].Glimpse.Preview))
		}
		if flags {
			cells = append(cells, flagsCell(r, v))
		}
		if wide {
			cells = append(cells, r.ID())
		}
		t.Row(cells...)
	}
	t.End()
	for _, r := range l.rows {
		if j, ok := l.judged[r]; ok {
			out.Printf("\n%s: %s\n", out.Paint(term.Bold, r.Key), out.Paint(verdictStyle(j.Word), string(j.Word)))
			reasons(out, "  ", j.Evidence)
		}
	}
	for i := range details {
		if details[i].withMessages {
			said(c, l.rows[i].Key, details[i].Messages)
		}
	}
}

// nothing says that no row is shown, without denying those that the other era holds.
func (l *listing) nothing() string {
	for _, s := range l.opened {
		if s.Other != nil {
			return fmt.Sprintf("None in the %s era, which is the one in use; the other holds some.", s.Era)
		}
	}
	switch {
	case len(l.failed) > 0:
		return "None in the stores that could be read."
	case l.hidden > 0:
		return "No session passes the filters."
	}
	return "No sessions found."
}

// reasons lists sentences below a line, indented by the margin and wrapped to the terminal.
func reasons(out *term.Out, margin string, all []string) {
	for _, why := range all {
		out.Printf("%s\n", term.Styled(margin+"- "+strings.TrimLeft(term.Wrap(term.Escape(why), out.Width(), margin+"  "), " ")))
	}
}

// said shows the last messages of a session below its key.
func said(c *Call, key string, messages []store.Said) {
	c.Out.Printf("\n%s\n", c.Out.Paint(term.Bold, key))
	if len(messages) == 0 {
		c.Out.Printf("  nothing was said\n")
	}
	for _, m := range messages {
		when := term.Unknown
		if m.At > 0 {
			when = term.Time(int64(m.At))
		}
		c.Out.Printf("  %s, %s\n", m.Role, when)
		for line := range strings.Lines(m.Text) {
			c.Out.Printf("%s\n", term.Styled(term.Wrap(term.Escape(strings.TrimRight(line, "\r\n")), c.Out.Width(), "    ")))
		}
	}
}

// shorten leaves "agent:<id>:" out of keys where the agent stands beside them, unless another row has just that shorter key. Commands
// understand the shorter form.
func (l *listing) shorten(wide bool) func(*store.Row, store.View) string {
	taken := map[string]bool{}
	for _, r := range l.rows {
		taken[r.Key] = true
	}
	return func(r *store.Row, v store.View) string {
		rest, ok := strings.CutPrefix(r.Key, "agent:"+v.Agent+":")
		if !ok || wide || rest == "" || taken[rest] || !l.several && v.Agent != l.opened[0].Agent {
			return keyWord(r.Key)
		}
		return rest
	}
}

// keyWord is a key as it is shown: one of blanks alone stands in quotes, as it would not be seen.
func keyWord(key string) string {
	if strings.TrimSpace(key) == "" {
		return `"` + key + `"`
	}
	return key
}

// era is the era of a row, or that both have it.
func (l *listing) era(r *store.Row) string {
	if l.copies[r] != nil {
		return "both"
	}
	return string(r.Era())
}

func eraWord(s *store.Sessions) string {
	switch s.Era {
	case store.FileEra:
		return "file era"
	case store.SQLiteEra:
		return fmt.Sprintf("SQLite era, schema %d", s.Schema.UserVersion)
	}
	return "there is no store yet"
}

// age shows how long ago a row was written; an impossible stamp is unknown.
func (l *listing) age(r *store.Row) string { return ageOf(r.Updated, l.now) }

// lastStamp is the last time that JavaScript knows, in ms since 1970.
const lastStamp = 8.64e15

func ageOf(stamp, now float64) string {
	if stamp <= 0 || stamp > lastStamp {
		return term.Unknown
	}
	return term.Age(int64(now - stamp))
}

func futureStyle(v string) term.Style {
	if strings.HasPrefix(v, "in ") {
		return term.Yellow
	}
	return term.Plain
}

// tokensCell shows the context's size, its window and the share: "45k/200k (23%)"; a stale size has a ~ before it.
func tokensCell(r *store.Row, v store.View) string {
	window := v.Model.ContextTokens
	if r.HasContextTokens() {
		window, _ = r.Number(row.ContextTokens)
	}
	total, known, fresh := r.Tokens()
	size, share := term.Unknown, "?"
	if known {
		size = thousands(total)
		if !fresh {
			size = "~" + size
		}
	}
	if window <= 0 || math.IsInf(window, 0) {
		return fmt.Sprintf("%s/? (?%%)", size)
	}
	if known {
		share = fmt.Sprintf("%.0f", math.Min(999, math.Floor(total/window*100+0.5)))
	}
	return fmt.Sprintf("%s/%s (%s%%)", size, thousands(window), share)
}

// thousands shows a number of tokens as OpenClaw does: 9.9k, 10k.
func thousands(n float64) string {
	if n >= 1e12 { // no context is that large
		return fmt.Sprintf("%.2g", n)
	}
	if n >= 10_000 {
		return fmt.Sprintf("%.0fk", n/1000)
	}
	return fmt.Sprintf("%.1fk", n/1000)
}

var flagWords = []struct {
	field row.Field
	word  string
}{
	{row.ThinkingLevel, "think"},
	{row.VerboseLevel, "verbose"},
	{row.TraceLevel, "trace"},
	{row.ReasoningLevel, "reasoning"},
	{row.ElevatedLevel, "elev"},
	{row.ResponseUsage, "usage"},
	{row.GroupActivation, "activation"},
}

// flagsCell shows what is set in a row, in a few words.
func flagsCell(r *store.Row, v store.View) string {
	var flags []string
	if r.InSeconds() {
		flags = append(flags, "seconds?")
	}
	if own := rowFlags(&r.Entry); own != "" {
		flags = append(flags, own)
	}
	if v.PolicyKey != "" {
		flags = append(flags, "policy:"+v.PolicyKey)
	}
	return strings.Join(flags, " ")
}

func rowFlags(r *row.Entry) string {
	var flags []string
	if r.IsSet(row.ArchivedAt) {
		flags = append(flags, "archived")
	}
	if r.IsSet(row.PinnedAt) {
		flags = append(flags, "pinned")
	}
	if status, ok := r.Text(row.Status); ok && status != "done" {
		flags = append(flags, status)
	}
	for _, f := range flagWords {
		if s, ok := r.Text(f.field); ok && s != "" {
			flags = append(flags, f.word+":"+s)
		}
	}
	if row.Truthy(r.Raw(row.SystemSent)) {
		flags = append(flags, "system")
	}
	if row.Truthy(r.Raw(row.AbortedLastRun)) {
		flags = append(flags, "aborted")
	}
	return strings.Join(flags, " ")
}
