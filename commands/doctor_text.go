package commands

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance/doctor"
	"oc/store/span"
)

// A diagnosis is a report as it is shown.
type diagnosis struct {
	*doctor.Report
	cfg  *config.Config
	both bool // of both eras
}

// shownPlaces is how many places of one check are shown to a person.
const shownPlaces = 5

const doctorIndent = "       "

// text shows the findings, those of one check together, the worst first.
func (d diagnosis) text(c *Call) {
	for i := 0; i < len(d.Findings); {
		n := i + 1
		for n < len(d.Findings) && d.Findings[n].Code == d.Findings[i].Code && d.Findings[n].Severity == d.Findings[i].Severity {
			n++
		}
		if i > 0 {
			c.Out.Printf("\n")
		}
		d.group(c, d.Findings[i:n])
		i = n
	}
	if len(d.Findings) > 0 {
		c.Out.Printf("\n")
	}
	d.summary(c)
}

// group shows the findings of one check: what, where, why it matters, what to do.
func (d diagnosis) group(c *Call, all []doctor.Finding) {
	f := all[0]
	check := checkOf(f.Code)
	head := fmt.Sprintf("%s (%s)", check.Says, f.Code)
	total := 0
	for i := range all {
		total += 1 + all[i].More
	}
	if total > 1 {
		head = fmt.Sprintf("%s, %s times (%s)", check.Says, term.Count(int64(total)), f.Code)
	}
	c.hang(c.Out.Paint(severityStyle(f.Severity), term.Pad(strings.ToUpper(string(f.Severity)), len(doctorIndent), false)), head)
	for _, f := range all[:min(len(all), shownPlaces)] {
		said := strings.Join(f.Evidence, "; ")
		if d.both && f.Era != "" {
			said = fmt.Sprintf("%s (%s era)", said, f.Era)
		}
		if place := d.place(f); place != "" && said != "" {
			said = place + ": " + said
		} else {
			said += place
		}
		if f.More > 0 {
			said += fmt.Sprintf(" (and %s more there)", term.Count(int64(f.More)))
		}
		c.hang(doctorIndent, "- "+said)
	}
	if rest := len(all) - shownPlaces; rest > 0 {
		c.hang(doctorIndent, fmt.Sprintf("- and %s more: oc doctor --only %s --json has all", term.Count(int64(rest)), f.Code))
	}
	c.hang(doctorIndent, f.Consequence)
	for _, command := range commandsOf(all) {
		c.hang(doctorIndent, "To do: "+command)
	}
}

// commandsOf are the different things to do about some findings, the first few.
func commandsOf(all []doctor.Finding) (out []string) {
	for i := range all {
		if command := all[i].Command; command != "" && !slices.Contains(out, command) && len(out) < 3 {
			out = append(out, command)
		}
	}
	return out
}

// hang prints a text behind a mark, wrapped, its further lines below its first.
func (c *Call) hang(mark term.Styled, text string) {
	indent := doctorIndent
	if rest, ok := strings.CutPrefix(text, "- "); ok {
		mark, indent, text = doctorIndent+"- ", doctorIndent+"  ", rest
	}
	lines := strings.Split(term.Wrap(term.Escape(text), max(40, c.Out.Width()-len(indent)), ""), "\n")
	for i, line := range lines {
		if i > 0 {
			mark = term.Styled(indent)
		}
		c.Out.Printf("%s%s\n", mark, term.Styled(line))
	}
}

// place is where a finding is, in words.
func (d diagnosis) place(f doctor.Finding) string {
	where := ""
	if f.File != "" {
		where = d.short(f.File)
		if f.Line > 0 {
			where += fmt.Sprintf(":%d", f.Line)
		}
		if f.Byte >= 0 {
			where += fmt.Sprintf(" byte %d", f.Byte)
		}
	}
	switch {
	case f.Key != "" && where != "":
		where += ", session " + f.Key
	case f.Key != "":
		where = f.Key
	case where == "" && f.Store != "":
		where = d.short(f.Store)
	case where == "" && f.Agent != "":
		where = "agent " + f.Agent
	}
	return where
}

// short is a path below the state without that.
func (d diagnosis) short(path string) string {
	if rel, err := filepath.Rel(d.cfg.StateDir, path); err == nil && rel != "." && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func (d diagnosis) summary(c *Call) {
	n := func(s doctor.Severity) int { return d.Count(string(s)) }
	over := fmt.Sprintf("%s, %s, %s", howMany(d.Size.Stores, "store"), howMany(d.Size.Rows, "session"), howMany(d.Size.Transcripts, "transcript"))
	line := fmt.Sprintf("%s, %s, %s in %s.", howMany(n(doctor.Error), "error"), howMany(n(doctor.Warn), "warning"), howMany(n(doctor.Info), "note"), over)
	if len(d.Findings) == 0 {
		line = "Nothing is wrong in " + over + "."
	}
	if d.Partly.Transcripts > 0 {
		line += fmt.Sprintf(" Of %s (%s) only the ends were read: --deep reads all.", howMany(d.Partly.Transcripts, "transcript"), term.Bytes(d.Partly.Bytes))
	}
	c.Out.Printf("%s\n", term.Styled(term.Wrap(term.Escape(line), c.Out.Width(), "")))
}

func severityStyle(s doctor.Severity) term.Style {
	switch s {
	case doctor.Error:
		return term.Red
	case doctor.Warn:
		return term.Yellow
	}
	return term.Plain
}

func checkOf(code doctor.Code) doctor.Check { return checksByCode()[code] }

var checksByCode = sync.OnceValue(func() map[doctor.Code]doctor.Check {
	all := map[doctor.Code]doctor.Check{}
	for _, c := range doctor.Checks() {
		all[c.Code] = c
	}
	return all
})

// print writes the report as a document.
func (d diagnosis) print(p *span.Printer) error {
	p.Object()
	p.Key("stateDir").String(d.cfg.StateDir)
	p.Key("config").String(d.cfg.ConfigFile)
	p.Key("deep").Bool(d.Deep)
	p.Key("healthy").Bool(d.Healthy())
	p.Key("counts").Object()
	for _, s := range []doctor.Severity{doctor.Error, doctor.Warn, doctor.Info} {
		p.Key(string(s)).Int(int64(d.Count(string(s))))
	}
	p.End()
	p.Key("codes").Object()
	counts := map[doctor.Code]int{}
	for i := range d.Findings {
		counts[d.Findings[i].Code] += 1 + d.Findings[i].More
	}
	for _, c := range doctor.Checks() {
		if n := counts[c.Code]; n > 0 {
			p.Key(string(c.Code)).Int(int64(n))
		}
	}
	p.End()
	p.Key("stores").Array()
	for _, s := range d.Stores {
		p.Object()
		p.Key("agentId").String(s.Agent)
		p.Key("configured").Bool(s.Configured)
		p.Key("era").String(string(s.Era))
		p.Key("path").String(s.Path)
		if p.Key("rows"); s.Rows < 0 {
			p.Null()
		} else {
			p.Int(int64(s.Rows))
		}
		p.Key("transcripts").Int(int64(s.Files))
		p.Key("transcriptBytes").Int(s.Bytes)
		if s.Other != nil {
			p.Key("otherEra").Object()
			otherEra(p, s.Other)
			p.End()
		}
		p.End()
	}
	p.End()
	p.Key("readInPart").Object()
	p.Key("transcripts").Int(int64(d.Partly.Transcripts))
	p.Key("bytes").Int(d.Partly.Bytes)
	p.End()
	p.Key("findings").Array()
	for i := range d.Findings {
		printFinding(p, &d.Findings[i])
	}
	p.End()
	p.End()
	return nil
}

func printFinding(p *span.Printer, f *doctor.Finding) {
	check := checkOf(f.Code)
	p.Object()
	p.Key("code").String(string(f.Code))
	p.Key("family").String(check.Family)
	p.Key("severity").String(string(f.Severity))
	p.Key("message").String(check.Says)
	optional(p, "agentId", f.Agent)
	optional(p, "store", f.Store)
	optional(p, "era", string(f.Era))
	optional(p, "file", f.File)
	if f.Line > 0 {
		p.Key("line").Int(int64(f.Line))
	}
	if f.Byte >= 0 {
		p.Key("byte").Int(f.Byte)
	}
	if f.Key != "" {
		p.Key("key").String(f.Key)
	}
	optional(p, "sessionId", f.ID)
	optional(p, "entryId", f.Entry)
	p.Key("evidence").Array()
	for _, e := range f.Evidence {
		p.String(e)
	}
	p.End()
	p.Key("consequence").String(f.Consequence)
	p.Key("fix").String(string(f.Remedy))
	optional(p, "command", f.Command)
	if f.More > 0 {
		p.Key("more").Int(int64(f.More))
	}
	p.End()
}

// listChecks shows every check, or those that were asked for, with what it finds.
func listChecks(c *Call, only []doctor.Code) error {
	all := slices.DeleteFunc(doctor.Checks(), func(k doctor.Check) bool { return len(only) > 0 && !slices.Contains(only, k.Code) })
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("checks").Array()
			for _, k := range all {
				p.Object()
				p.Key("code").String(string(k.Code))
				p.Key("family").String(k.Family)
				p.Key("severity").String(string(k.Severity))
				p.Key("message").String(k.Says)
				p.Key("consequence").String(k.Matters)
				p.Key("fix").String(string(k.Remedy))
				optional(p, "command", k.Command)
				p.End()
			}
			p.End()
			p.End()
			return nil
		})
	}
	widest := 0
	for _, k := range all {
		widest = max(widest, len(k.Code))
	}
	family := ""
	for _, k := range all {
		if k.Family != family {
			if family != "" {
				c.Out.Printf("\n")
			}
			family = k.Family
			c.Out.Printf("%s\n", family)
		}
		indent := strings.Repeat(" ", 2+widest+2+7)
		lines := strings.Split(term.Wrap(k.Says, max(30, c.Out.Width()-len(indent)), ""), "\n")
		c.Out.Printf("  %s  %s%s\n", term.Styled(term.Pad(string(k.Code), widest, false)), c.Out.Paint(severityStyle(k.Severity), term.Pad(string(k.Severity), 7, false)), lines[0])
		for _, line := range lines[1:] {
			c.Out.Printf("%s%s\n", indent, line)
		}
	}
	return nil
}
