package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
	"oc/transcript"
)

func sessionsDiff() *Command {
	return &Command{
		Name:  "diff",
		Args:  "A B",
		Short: "compare two transcripts entry by entry",
		Long: "Compares two transcripts by the ids of their entries: which are only in A, only in B, changed, moved to another place of the tree, or on the active branch of one " +
			"alone. What was said in them is not shown. The exit status is 0 whether they differ or not; with --json, identical says it.\n\n" +
			"A and B are sessions, as for oc sessions show, ids of transcripts, or files: transcripts, archives and copies, compressed or not.",
		Flags: []Flag{
			anyAgentFlag, allAgentsFlag, storeFlag, asFlag,
			{Name: "limit", Value: "N|all", Default: "100", Help: "how many differences to show; all are counted", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
		},
		Examples: []Example{
			{"oc sessions diff main ./main.jsonl", "what happened since a copy was made"},
			{"oc sessions diff before.jsonl after.jsonl --json", "what a repair did, as a document"},
		},
		Run: diffSessions,
	}
}

func diffSessions(ctx context.Context, c *Call) error {
	var sides [2]*talk
	var err error
	if sides[0], err = c.talk(ctx, c.Arg(0), false); err != nil {
		return err
	}
	if sides[1], err = c.talkBeside(ctx, c.Arg(1), false, sides[0]); err != nil {
		return err
	}
	a, b := sides[0].current(), sides[1].current()
	for i, one := range []*store.Conversation{a, b} {
		if one.Missing && one.Odd == "" {
			return Failf("%s has no transcript: %s is not there", sides[i].name(), one)
		}
	}
	limit, all := c.CountOrAll("limit")
	var kept []store.Difference
	result, err := store.Diff(ctx, a, b, func(d store.Difference) error {
		if all || int64(len(kept)) < limit {
			kept = append(kept, d)
		}
		return nil
	})
	if err != nil {
		return c.partError(sides[0], err)
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { c.printDiff(p, sides, result, kept); return nil }); err != nil {
			return err
		}
	} else {
		c.showDiff(sides, result, kept)
	}
	for _, t := range sides {
		if t.row != nil {
			c.remark(t.row.Store())
		}
	}
	page := &store.Page{Broken: result.Broken[0] + result.Broken[1], Findings: result.Flaws}
	failed := sides[1].l.failed
	if len(failed) == 0 {
		failed = sides[0].l.failed
	}
	return cmp.Or(c.tellFlaws(page), c.tell(failed))
}

// changes are the ways in which an entry differs, in the order of the answer, with the sign and the words for them.
var changes = []struct {
	what        store.Change
	name, sign  string
	style       term.Style
	one, others string
}{
	{store.OnlyA, "onlyA", "-", term.Red, "1 entry only in A", "%d entries only in A"},
	{store.OnlyB, "onlyB", "+", term.Green, "1 entry only in B", "%d entries only in B"},
	{store.Changed, "changed", "~", term.Yellow, "1 changed", "%d changed"},
	{store.Moved, "moved", ">", term.Cyan, "1 moved on the tree", "%d moved on the tree"},
	{store.Switched, "switched", "|", term.Cyan, "1 on the active branch of one alone", "%d on the active branch of one alone"},
}

func (c *Call) showDiff(sides [2]*talk, r *store.Comparison, kept []store.Difference) {
	out := c.Out
	for i, t := range sides {
		out.Printf("%s  %s\n   %s, leaf %s\n", "AB"[i:i+1], t.current().String(), plural(r.Rows[i], "entry", "entries"), leafName(r.Leaf[i]))
	}
	if r.Identical() {
		out.Printf("\nNo difference: %d entries are in both, alike and in the same place.\n", r.Same)
		return
	}
	if len(kept) > 0 {
		out.Printf("\n")
	}
	for _, d := range kept {
		for _, x := range changes {
			if x.what == d.What {
				out.Printf("%s %s\n", out.Paint(x.style, x.sign), differenceLine(d))
			}
		}
	}
	var words []string
	for _, x := range changes {
		switch n := r.Counts[x.what]; {
		case n == 1:
			words = append(words, x.one)
		case n > 1:
			words = append(words, fmt.Sprintf(x.others, n))
		}
	}
	if r.Header {
		words = append(words, "the headers differ")
	}
	if r.Order {
		words = append(words, "what both have stands in another order")
	}
	if r.Leaf[0] != r.Leaf[1] {
		words = append(words, "the active branch ends at another entry")
	}
	words = append(words, fmt.Sprintf("%d alike", r.Same))
	out.Printf("\n%s.\n", strings.Join(words, "; "))
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	if n := total - len(kept); n > 0 {
		c.Notef("%d more differences; give --limit all to see them", n)
	}
}

func leafName(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// differenceLine is one difference in words: which entry, what it is, when, and where it hangs.
func differenceLine(d store.Difference) string {
	id := d.ID
	if id == "" {
		id = "without id"
	}
	what := d.Kind.String()
	if what == "" {
		what = "entry"
	}
	if d.Role != "" {
		what += " " + d.Role
	}
	line := fmt.Sprintf("%-8s  %s", id, what)
	if d.Time != 0 {
		line += "  " + term.Time(d.Time)
	}
	if d.A.Line > 0 {
		line += fmt.Sprintf("  A line %d", d.A.Line)
	}
	if d.B.Line > 0 {
		line += fmt.Sprintf("  B line %d", d.B.Line)
	}
	if both := d.What == store.Changed || d.What == store.Moved || d.What == store.Switched; both {
		if d.Parent[0] != d.Parent[1] {
			line += fmt.Sprintf("  below %s, then %s", leafName(d.Parent[0]), leafName(d.Parent[1]))
		}
		if d.Active[0] != d.Active[1] {
			line += map[bool]string{true: "  left the active branch", false: "  came to the active branch"}[d.Active[0]]
		}
	}
	return line
}

func (c *Call) printDiff(p *span.Printer, sides [2]*talk, r *store.Comparison, kept []store.Difference) {
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	p.Object()
	p.Key("identical").Bool(r.Identical())
	for i, t := range sides {
		one := t.current()
		p.Key("ab"[i : i+1]).Object()
		p.Key("path").String(one.Path)
		p.Key("sessionKey").String(t.key)
		p.Key("sessionId").String(one.ID)
		p.Key("entries").Int(int64(r.Rows[i]))
		p.Key("broken").Int(int64(r.Broken[i]))
		p.Key("leaf").String(r.Leaf[i])
		p.End()
	}
	p.Key("same").Int(int64(r.Same))
	for _, x := range changes {
		p.Key(x.name).Int(int64(r.Counts[x.what]))
	}
	p.Key("headerDiffers").Bool(r.Header)
	p.Key("orderDiffers").Bool(r.Order)
	p.Key("count").Int(int64(len(kept)))
	p.Key("totalCount").Int(int64(total))
	p.Key("differences").Array()
	for _, d := range kept {
		p.Object()
		p.Key("change").String(string(d.What))
		if p.Key("id"); d.ID == "" {
			p.Null()
		} else {
			p.String(d.ID)
		}
		p.Key("type").String(d.Kind.String())
		if d.Role != "" {
			p.Key("role").String(d.Role)
		}
		stamp(p, "at", d.Time)
		for i, at := range []transcript.Place{d.A, d.B} {
			if at.Line == 0 {
				continue
			}
			p.Key("ab"[i : i+1]).Object()
			p.Key("line").Int(int64(at.Line))
			p.Key("byte").Int(at.Offset)
			p.Key("bytes").Int(int64(at.Size))
			if p.Key("parentId"); d.Parent[i] == "" {
				p.Null()
			} else {
				p.String(d.Parent[i])
			}
			p.Key("active").Bool(d.Active[i])
			p.End()
		}
		p.End()
	}
	p.End()
	sides[1].sight.print(p)
	printFlaws(p, &store.Page{Broken: r.Broken[0] + r.Broken[1], Findings: r.Flaws})
	p.End()
}
