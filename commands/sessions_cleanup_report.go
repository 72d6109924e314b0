package commands

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/maintenance"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// cleanupDocument is OpenClaw's document of a cleanup (spec/maintenance.md 3.1), one store bare and more of them in a list, with oc's
// actions, protected rows and undo beside it.
func cleanupDocument(p *span.Printer, all []cleaned, failed failures, policy *maintenance.Policy, dry bool, limit int) {
	p.Object()
	if len(all) == 1 {
		cleanupMembers(p, all[0], dry, limit)
		p.End()
		return
	}
	p.Key("allAgents").Bool(true)
	p.Key("mode").String(string(policy.Mode))
	p.Key("dryRun").Bool(dry)
	p.Key("stores").Array()
	for _, x := range all {
		if x.err == nil {
			p.Object()
			cleanupMembers(p, x, dry, limit)
			p.End()
		}
	}
	p.End()
	failed.print(p)
	p.End()
}

func cleanupMembers(p *span.Printer, x cleaned, dry bool, limit int) {
	d := x.done
	if d.Handed != nil {
		handedCleanupMembers(p, x)
		planMembers(p, d, limit)
		doneMembers(p, d)
		return
	}
	s := d.Plan.Summary(dry)
	p.Key("agentId").String(s.AgentID)
	p.Key("storePath").String(s.StorePath)
	p.Key("mode").String(string(s.Mode))
	p.Key("dryRun").Bool(dry)
	for _, n := range []struct {
		name string
		n    int
		said bool // by the release
	}{
		{"beforeCount", s.BeforeCount, true},
		{"afterCount", s.AfterCount, true},
		{"repaired", s.Repaired, s.Schema == 0},
		{"missing", s.Missing, true},
		{"dmScopeRetired", s.DMScopeRetired, true},
		{"modelRunPruned", s.ModelRunPruned, true},
		{"archived", s.Archived, s.Schema > 0},
		{"capArchived", s.CapArchived, s.Schema >= 23},
		{"pruned", s.Pruned, true},
		{"capped", s.Capped, true},
	} {
		if n.said {
			p.Key(n.name).Int(int64(n.n))
		}
	}
	p.Key("unreferencedArtifacts").Object()
	p.Key("scannedFiles").Int(int64(s.Artifacts.ScannedFiles))
	p.Key("removedFiles").Int(int64(s.Artifacts.RemovedFiles))
	p.Key("freedBytes").Int(s.Artifacts.FreedBytes)
	if p.Key("olderThanMs"); math.IsInf(s.Artifacts.OlderThanMs, 0) {
		p.Null()
	} else {
		p.Float(s.Artifacts.OlderThanMs)
	}
	p.End()
	if b := s.DiskBudget; b == nil {
		p.Key("diskBudget").Null()
	} else {
		p.Key("diskBudget").Object()
		p.Key("totalBytesBefore").Int(b.TotalBytesBefore)
		p.Key("totalBytesAfter").Int(b.TotalBytesAfter)
		p.Key("removedFiles").Int(int64(b.RemovedFiles))
		p.Key("removedEntries").Int(int64(b.RemovedEntries))
		p.Key("freedBytes").Int(b.FreedBytes)
		p.Key("maxBytes").Int(b.MaxBytes)
		p.Key("highWaterBytes").Int(b.HighWaterBytes)
		p.Key("overBudget").Bool(b.OverBudget)
		p.End()
	}
	p.Key("wouldMutate").Bool(s.WouldMutate)
	if !dry {
		p.Key("applied").Bool(true)
		p.Key("appliedCount").Int(int64(s.AfterCount))
		p.Key("via").String(x.via)
	}
	p.Key("cronPruned").Int(int64(s.CronPruned))
	p.Key("byHand").Int(int64(s.ByHand))
	planMembers(p, d, limit)
	if dry {
		p.Key("undo").Null()
	} else {
		doneMembers(p, d)
	}
}

// planMembers is what a plan does and what it leaves, with at most so many actions; 0: all.
func planMembers(p *span.Printer, d *maintenance.Done, limit int) {
	skipped := map[*maintenance.Action]string{}
	for _, k := range d.Skipped {
		skipped[k.Action] = k.Reason
	}
	shown := d.Plan.Actions
	if limit > 0 {
		shown = shown[:min(len(shown), limit)]
	}
	p.Key("actionCount").Int(int64(len(d.Plan.Actions)))
	p.Key("actions").Array()
	for i := range shown {
		a := &shown[i]
		p.Object()
		p.Key("action").String(string(a.Kind))
		if a.Key != "" {
			p.Key("key").String(a.Key)
		}
		if a.Target != "" {
			p.Key("target").String(a.Target)
		}
		if a.To != "" {
			p.Key("to").String(a.To)
		}
		if a.Class != "" {
			p.Key("class").String(string(a.Class))
		}
		p.Key("rule").String(string(a.Rule))
		p.Key("reason").String(a.Reason)
		p.Key("bytes").Int(a.Bytes)
		p.Key("applies").Bool(a.Applies)
		if why, ok := skipped[a]; ok {
			p.Key("skipped").String(why)
		}
		p.End()
	}
	p.End()
	p.Key("protected").Array()
	for _, k := range d.Plan.Protected {
		p.Object()
		if k.Key != "" {
			p.Key("key").String(k.Key)
		}
		if k.Target != "" {
			p.Key("target").String(k.Target)
		}
		p.Key("rule").String(string(k.Rule))
		p.Key("asked").String(string(k.Asked))
		p.Key("reason").String(k.Reason)
		p.Key("bytes").Int(k.Bytes)
		p.End()
	}
	p.End()
	if len(d.Plan.Unmet) > 0 {
		p.Key("unmet").Array()
		for _, u := range d.Plan.Unmet {
			p.Object()
			p.Key("rule").String(string(u.Rule))
			p.Key("limit").Int(u.Limit)
			p.Key("left").Int(u.Left)
			p.Key("protected").Int(int64(u.Protected))
			p.Key("protectedBytes").Int(u.Bytes)
			p.Key("reason").String(u.Reason)
			p.End()
		}
		p.End()
	}
}

// doneMembers is what came of a plan.
func doneMembers(p *span.Printer, d *maintenance.Done) {
	if d.Handed != nil {
		handedMembers(p, d)
		return
	}
	freed, saved := d.Freed()
	rows, files := committed(d)
	p.Key("committed").Object()
	p.Key("rows").Int(int64(rows))
	p.Key("files").Int(int64(files))
	p.Key("freedBytes").Int(freed)
	p.Key("savedBytes").Int(saved)
	p.Key("reclaimedNow").Int(max(0, freed-saved))
	p.Key("skipped").Int(int64(len(d.Skipped)))
	p.End()
	if p.Key("undo"); d.Run == nil {
		p.Null()
	} else {
		p.Object()
		p.Key("run").String(d.Run.ID)
		p.Key("possible").Bool(!d.Run.Purge)
		p.End()
	}
}

// locally prints what oc itself does, or has done.
func locally(p *span.Printer, d *maintenance.Done, dry bool) {
	if !dry {
		p.Key("via").String(viaLocal)
	}
	planMembers(p, d, 0)
	if dry {
		p.Key("undo").Null()
	} else {
		doneMembers(p, d)
	}
}

// committed counts what a run did.
func committed(d *maintenance.Done) (rows, files int) {
	if d.Run == nil {
		return 0, 0
	}
	for i := range d.Plan.Actions {
		switch a := &d.Plan.Actions[i]; {
		case !a.Applies:
		case a.Kind == maintenance.DropRow || a.Kind == maintenance.PutRow:
			rows++
		case a.Kind == maintenance.Move || a.Kind == maintenance.Remove || a.Kind == maintenance.Replace || a.Kind == maintenance.Create:
			files++
		}
	}
	return rows, files - len(d.Skipped)
}

// cleanupText shows a cleanup to a person.
func cleanupText(c *Call, x cleaned, several, dry bool) {
	d, out := x.done, c.Out
	s := d.Plan.Summary(dry)
	if h := d.Handed; h != nil {
		s.AgentID, s.StorePath, s.BeforeCount, s.AfterCount = d.Plan.Agent, d.Plan.Store, h.Before, h.After
		if mode, ok := span.Text(span.Member(x.answer, "mode")); ok {
			s.Mode = maintenance.Mode(mode)
		}
	}
	if several {
		out.Printf("Agent: %s\n", s.AgentID)
	}
	out.Printf("Session store: %s\n", s.StorePath)
	out.Printf("Mode: %s%s\n", string(s.Mode), map[bool]string{true: ", dry run: nothing is changed"}[dry])
	out.Printf("Sessions: %d, %d after\n", s.BeforeCount, s.AfterCount)
	if len(d.Plan.Actions) == 0 {
		if d.Handed == nil {
			out.Printf("Nothing to do.\n")
		} else {
			handedText(c, d)
		}
		cleanupProtected(c, d)
		return
	}
	out.Printf("\n")
	limit := len(d.Plan.Actions)
	if n := int(c.Int("limit-actions")); n > 0 {
		limit = min(limit, n)
	}
	t := out.Table(
		term.Column{Head: "Action"}, term.Column{Head: "Session or file", Cut: term.Middle, Min: 28}, term.Column{Head: "Age", Right: true}, term.Column{Head: "Model", Cut: term.End, Drop: 3},
		term.Column{Head: "Size", Right: true, Drop: 1}, term.Column{Head: "Flags", Cut: term.End, Drop: 2}, term.Column{Head: "Rule"},
	)
	now := c.nowMs()
	for i := range d.Plan.Actions[:limit] {
		a := &d.Plan.Actions[i]
		action, what, age, model, flags := string(a.Kind), a.Key, term.Unknown, "", ""
		if a.Target != "" {
			what, age = baseOf(a.Target), ""
			if f := a.File(d.Snapshot); f != nil {
				age = ageOf(float64(f.ModTime.UnixMilli()), now)
			}
		} else if r, ok := d.Snapshot.Row(a.Key); ok {
			age = ageOf(r.Updated, now)
			model, _ = r.ModelRef()
			flags = rowFlags(&r.Entry)
		}
		if a.Kind == maintenance.PutRow && a.Rule != maintenance.Repair { // in place, as the SQLite era does
			action = "archive"
		}
		size := term.Bytes(a.Bytes)
		if a.Kind == maintenance.Create { // it is compressed when it is made
			size = term.Unknown
		}
		if !a.Applies {
			action = "(" + action + ")"
		}
		t.Row(action, what, age, model, size, flags, string(a.Rule))
	}
	t.End()
	if limit < len(d.Plan.Actions) {
		out.Printf("... and %d more\n", len(d.Plan.Actions)-limit)
	}
	if slices.ContainsFunc(d.Plan.Actions, func(a maintenance.Action) bool { return !a.Applies }) {
		out.Printf("Actions in brackets are not applied in warn mode; --enforce applies them.\n")
	}
	cleanupTotals(c, d)
	cleanupProtected(c, d)
	if dry {
		return
	}
	if d.Handed != nil {
		out.Printf("\n")
		handedText(c, d)
		return
	}
	if d.Plan.Empty() {
		out.Printf("\nNothing was changed: session.maintenance.mode is warn.\n")
		return
	}
	freed, saved := d.Freed()
	rows, files := committed(d)
	out.Printf("\nDone locally: %s and %s changed, %s freed, %s kept for undo.\n", plural(rows, "row", "rows"), plural(files, "file", "files"), term.Bytes(freed), term.Bytes(saved))
	switch {
	case d.Run == nil:
	case d.Run.Purge:
		out.Printf("Nothing was saved; it cannot be taken back.\n")
	default:
		out.Printf("Take it back with: oc undo %s\n", d.Run.ID)
	}
}

// cleanupTotals shows the files by class and the sessions by label, before and after.
func cleanupTotals(c *Call, d *maintenance.Done) {
	c.Out.Printf("\n")
	made := map[jsonfile.Class]int{}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Kind == maintenance.Create && a.Applies {
			made[a.Class]++
		}
	}
	t := c.Out.Table(term.Column{Head: "Files"}, term.Column{Head: "Before", Right: true}, term.Column{Head: "Size", Right: true}, term.Column{Head: "After", Right: true}, term.Column{Head: "Size", Right: true})
	for _, k := range []jsonfile.Class{jsonfile.Store, jsonfile.Live, jsonfile.Archive, jsonfile.Checkpoint, jsonfile.Sidecar, jsonfile.Temp, jsonfile.Lock, jsonfile.Prompt, jsonfile.Other} {
		b, a := d.Plan.Before[k], d.Plan.After[k]
		size := term.Bytes(a.Bytes)
		if made[k] > 0 {
			a.Files, size = a.Files+made[k], term.Unknown
		}
		if b.Files+a.Files > 0 {
			t.Row(string(k), term.Count(int64(b.Files)), term.Bytes(b.Bytes), term.Count(int64(a.Files)), size)
		}
	}
	t.End()
	type labelled struct{ kept, gone int }
	labels := map[string]*labelled{}
	gone := map[string]bool{}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Kind == maintenance.DropRow && a.Applies {
			gone[a.Key] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	for i := range d.Snapshot.Rows {
		r := &d.Snapshot.Rows[i]
		label, ok := r.Text(row.Label)
		if !ok || strings.TrimSpace(label) == "" {
			label = "(unlabeled)"
		}
		if labels[label] == nil {
			labels[label] = &labelled{}
		}
		if gone[r.Key] {
			labels[label].gone++
		} else {
			labels[label].kept++
		}
	}
	names := make([]string, 0, len(labels))
	for name := range labels {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(labels[b].gone, labels[a].gone), cmp.Compare(a, b))
	})
	rest := names[min(len(names), mostLabels):]
	names = names[:len(names)-len(rest)]
	c.Out.Printf("\n")
	t = c.Out.Table(term.Column{Head: "Label", Cut: term.End}, term.Column{Head: "Kept", Right: true}, term.Column{Head: "Removed", Right: true})
	for _, name := range names {
		t.Row(name, term.Count(int64(labels[name].kept)), term.Count(int64(labels[name].gone)))
	}
	t.End()
	if len(rest) > 0 {
		c.Out.Printf("... and %s\n", plural(len(rest), "more label", "more labels"))
	}
}

// mostLabels are shown; where each session has one of its own the table would say what the first one says.
const mostLabels = 20

// mostProtected are named of each rule, unless --limit-actions or --verbose asks for more.
const mostProtected = 3

// cleanupProtected says what stays although a rule asks for it, by the rule that protects it.
func cleanupProtected(c *Call, d *maintenance.Done) {
	by := map[maintenance.Rule][]string{}
	var order []maintenance.Rule
	for _, k := range d.Plan.Protected {
		if by[k.Rule] == nil {
			order = append(order, k.Rule)
		}
		what := k.Key
		if k.Target != "" {
			what = baseOf(k.Target)
		}
		by[k.Rule] = append(by[k.Rule], term.Escape(what))
	}
	if len(order) == 0 {
		return
	}
	most := mostProtected
	if n := int(c.Int("limit-actions")); n > 0 {
		most = n
	}
	c.Out.Printf("\nStay although a rule asks for them:\n")
	for _, rule := range order {
		names, rest := by[rule], ""
		if n := len(names) - most; n > 0 && !c.Bool("verbose") {
			names, rest = names[:most], fmt.Sprintf(" and %d more", n)
		}
		c.Out.Printf("  %d %s: %s%s\n", len(by[rule]), rule, strings.Join(names, ", "), rest)
	}
}

func baseOf(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		return path[i+1:]
	}
	return path
}
