package commands

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/gateway"
	"oc/maintenance/doctor"
	"oc/store"
)

const reportHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<title>OpenClaw sessions, %s</title>
<style>
:root { color-scheme: light dark;
  --ground: #fcfcfb; --raised: #f1f1ee; --ink: #1a1a18; --faint: #62625c; --line: #d9d9d3;
  --p0: #2b6cb0; --p1: #c2570c; --p2: #12806f; --p3: #7b50bd; --p4: #a07400; --p5: #83837c;
  --a0: #0b3c6f; --a1: #1f5f9e; --a2: #4a88c4; --a3: #82b1dd; --a4: #b9d3ec; --a5: #a9a9a2;
  --error: #b42318; --warn: #8a5a00; --info: #62625c; }
@media screen and (prefers-color-scheme: dark) { :root {
  --ground: #191918; --raised: #242423; --ink: #ececea; --faint: #a2a29b; --line: #3d3d3a;
  --p0: #6aa8e6; --p1: #e8905a; --p2: #45b8a3; --p3: #b296e6; --p4: #cda53a; --p5: #8d8d86;
  --a0: #d6e8fa; --a1: #a4cbf0; --a2: #6aa8e6; --a3: #3d79b5; --a4: #284f78; --a5: #6d6d67;
  --error: #ff8a7a; --warn: #e3b341; --info: #a2a29b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 2.4rem 0 .3rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
.faint, figcaption { color: var(--faint); font-size: .87rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .7rem; margin: 1.2rem 0 0; padding: 0; list-style: none; }
.tiles li { background: var(--raised); border-radius: 6px; padding: .6rem .8rem; }
.tiles b { display: block; font-size: 1.35rem; font-weight: 600; }
.tiles span { color: var(--faint); font-size: .83rem; }
figure { margin: .8rem 0; }
svg { display: block; width: 100%%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint); }
svg .name { text-anchor: end; }
.grid { stroke: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; margin: .2rem 0 .6rem; padding: 0; font-size: .83rem; color: var(--faint); }
.legend svg { display: inline-block; width: .7rem; margin-right: .4rem; }
.p0 { fill: var(--p0); } .p1 { fill: var(--p1); } .p2 { fill: var(--p2); } .p3 { fill: var(--p3); } .p4 { fill: var(--p4); } .p5 { fill: var(--p5); }
.a0 { fill: var(--a0); } .a1 { fill: var(--a1); } .a2 { fill: var(--a2); } .a3 { fill: var(--a3); } .a4 { fill: var(--a4); } .a5 { fill: var(--a5); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; color: var(--faint); border-bottom: 1px solid var(--line); }
th, td { padding: .25rem .6rem .25rem 0; }
td { text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
article { border-left: 3px solid var(--line); padding-left: .8rem; margin: .9rem 0; }
article.error { border-color: var(--error); } article.warn { border-color: var(--warn); }
article b { font-weight: 600; } article em { font-style: normal; font-size: .8rem; font-weight: 600; text-transform: uppercase; color: var(--info); }
article.error em { color: var(--error); } article.warn em { color: var(--warn); }
article ul { margin: .2rem 0; padding-left: 1.1rem; overflow-wrap: anywhere; font-size: .87rem; }
footer { border-top: 1px solid var(--line); margin-top: 2.4rem; padding-top: .5rem; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { break-after: avoid; } figure, article, tr, .tiles { break-inside: avoid; } .wide { overflow: visible; } }
</style>
</head>
<body>
`

// page writes the report.
func (r *report) page(w io.Writer) error {
	d := &page{w: w}
	when := term.Time(r.now)
	d.printf(reportHead, when)
	d.printf("<h1>OpenClaw sessions</h1>\n<p class=\"faint\">%s · %s · gateway: %s</p>\n", term.Escape(r.cfg.StateDir), when, term.Escape(r.gatewayLine()))
	r.tiles(d)
	r.space(d)
	r.kinds(d)
	r.spending(d)
	r.findings(d)
	d.printf("<footer class=\"faint\">\n<p>%s</p>\n", "Tokens and cost are what OpenClaw recorded with each answer: "+(&spending{Spending: r.spent, lib: nil, volumes: make([]*store.Volume, r.volumes)}).coverage()+".")
	for _, a := range r.agents {
		if a.err != nil {
			d.printf("<p>Not on this page: the sessions of agent %s: %s</p>\n", term.Escape(a.id), term.Escape(a.err.Error()))
		}
	}
	for _, problem := range r.problems {
		d.printf("<p>%s</p>\n", term.Escape(problem.Error()))
	}
	d.printf("<p>Made by oc %s. The page loads nothing and runs nothing.</p>\n</footer>\n</body>\n</html>\n", build().Version)
	return d.err
}

// tiles are the sums of the page.
func (r *report) tiles(d *page) {
	rows, bytes := 0, int64(0)
	unknown := false
	for _, a := range r.agents {
		rows += len(a.sessions.Rows)
		bytes += a.usage.Total()
		unknown = unknown || a.err != nil
	}
	count := term.Count(int64(rows))
	if unknown {
		count += "+"
	}
	stuck := 0
	for _, run := range r.running {
		if run.Word != gateway.Live {
			stuck++
		}
	}
	doubt := ""
	if stuck > 0 {
		doubt = fmt.Sprintf(", %d in doubt", stuck)
	}
	t := &r.spent.Total
	cost := money(t)
	if t.Answers == 0 {
		cost = "none"
	}
	d.printf("<ul class=\"tiles\">\n")
	for _, tile := range [][2]string{
		{count, "sessions of " + plural(len(r.agents), "agent", "agents")},
		{term.Bytes(bytes), "on disk"},
		{fmt.Sprint(len(r.running)), "say they are running" + doubt},
		{tokens(t.Tokens()), "tokens in " + plural(t.Answers, "answer", "answers")},
		{cost, "recorded cost"},
		{fmt.Sprintf("%d / %d", r.found.Count(string(doctor.Error)), r.found.Count(string(doctor.Warn))), "errors / warnings"},
	} {
		d.printf("<li><b>%s</b><span>%s</span></li>\n", tile[0], tile[1])
	}
	d.printf("</ul>\n")
}

func (r *report) space(d *page) {
	var parts []string
	for _, s := range spaces {
		parts = append(parts, s.name)
	}
	var all []bar
	for i := range r.agents {
		a := &r.agents[i]
		b := bar{name: a.id, note: a.limits.bytesOf(a.usage.Total()), values: space(a.usage)}
		if a.usage.Database < 0 {
			b.note += ", database " + term.Unknown
		}
		all = append(all, b)
	}
	d.printf("<h2>Where the space goes</h2>\n")
	if len(all) == 0 {
		d.printf("<p class=\"faint\">There is no agent here.</p>\n")
		return
	}
	slices.SortStableFunc(all, func(a, b bar) int { return cmp.Compare(b.sum(), a.sum()) })
	d.printf("<figure>\n")
	d.legend("p", parts)
	d.bars("Bytes on disk by agent and class", "p", parts, all, size)
	d.printf("<figcaption>Bytes on disk by agent and class of file, against the limit where there is one.</figcaption>\n</figure>\n")
	var rows [][]string
	for i := range all {
		row := []string{all[i].name}
		for _, v := range all[i].values {
			row = append(row, bytesOrDash(int64(v)))
		}
		rows = append(rows, append(row, size(all[i].sum())))
	}
	d.table(slices.Concat([]string{"Agent"}, parts, []string{"total"}), rows)
}

func (r *report) kinds(d *page) {
	var parts []string
	for _, a := range ages {
		parts = append(parts, a.name)
	}
	var all []bar
	counts := r.kindAges()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		b := bar{name: kind, values: counts[kind]}
		b.note = amount(b.sum())
		all = append(all, b)
	}
	d.printf("<h2>Sessions by kind and age</h2>\n")
	if len(all) == 0 {
		d.printf("<p class=\"faint\">There is no session here.</p>\n")
		return
	}
	slices.SortStableFunc(all, func(a, b bar) int { return cmp.Compare(b.sum(), a.sum()) })
	d.printf("<figure>\n")
	d.legend("a", parts)
	d.bars("Sessions by kind and age", "a", parts, all, amount)
	d.printf("<figcaption>Age is the time since the row was last written.</figcaption>\n</figure>\n")
	var rows [][]string
	for i := range all {
		row := []string{all[i].name}
		for _, v := range all[i].values {
			if v == 0 {
				row = append(row, "-")
			} else {
				row = append(row, amount(v))
			}
		}
		rows = append(rows, append(row, all[i].note))
	}
	d.table(slices.Concat([]string{"Kind"}, parts, []string{"all"}), rows)
}

func (r *report) spending(d *page) {
	d.printf("<h2>Tokens and cost</h2>\n")
	if r.spent.Total.Answers == 0 {
		d.printf("<p class=\"faint\">No answer of a model is recorded in %s.</p>\n", plural(r.volumes, "transcript", "transcripts"))
		return
	}
	var names []string
	var used, paid []float64
	for _, g := range r.days() {
		names, used = append(names, g.Name), append(used, g.Tokens())
		cost := g.Cost
		if g.Priced == 0 {
			cost = math.NaN()
		}
		paid = append(paid, cost)
	}
	if len(names) > 0 {
		d.printf("<figure>\n")
		d.columns("Tokens by day", "p0", names, used, tokens)
		d.printf("<figcaption>Tokens by day, in, out and cached together%s.</figcaption>\n</figure>\n", shownOf(len(names)))
		if r.spent.Total.Priced > 0 {
			d.printf("<figure>\n")
			d.columns("Cost by day", "p1", names, paid, usd)
			d.printf("<figcaption>Recorded cost by day, in US dollars%s.</figcaption>\n</figure>\n", shownOf(len(names)))
		}
	}
	var rows [][]string
	for _, g := range r.spent.Models {
		rows = append(rows, []string{named(g.Name), term.Count(int64(g.Answers)), tokens(g.Input), tokens(g.Output), tokens(g.CacheRead + g.CacheWrite), tokens(g.Tokens()), money(&g.Spent)})
	}
	var all []bar
	for _, g := range r.spent.Models[:min(len(r.spent.Models), 12)] {
		all = append(all, bar{name: named(g.Name), note: tokens(g.Tokens()) + ", " + money(&g.Spent), values: []float64{g.Input, g.Output, g.CacheRead + g.CacheWrite}})
	}
	parts := []string{"in", "out", "cached"}
	d.printf("<figure>\n")
	d.legend("p", parts)
	d.bars("Tokens by model", "p", parts, all, tokens)
	d.printf("<figcaption>Tokens by model, the costliest first, with what they cost.</figcaption>\n</figure>\n")
	d.table([]string{"Model", "answers", "in", "out", "cached", "tokens", "cost"}, rows)
}

// shownOf says where a picture leaves days out.
func shownOf(days int) string {
	if days == daysShown {
		return fmt.Sprintf(", the last %d days", days)
	}
	return ""
}

// foundShown is how many places of one check are on the page.
const foundShown = 10

func (r *report) findings(d *page) {
	d.printf("<h2>Findings</h2>\n")
	if len(r.found.Findings) == 0 {
		d.printf("<p class=\"faint\">Nothing is wrong, as far as oc doctor looks.</p>\n")
		return
	}
	shown := diagnosis{Report: r.found, cfg: r.cfg}
	for i := 0; i < len(r.found.Findings); {
		n, total := i, 0
		f := r.found.Findings[i]
		for ; n < len(r.found.Findings) && r.found.Findings[n].Code == f.Code && r.found.Findings[n].Severity == f.Severity; n++ {
			total += 1 + r.found.Findings[n].More
		}
		all := r.found.Findings[i:n]
		i = n
		times := ""
		if total > 1 {
			times = ", " + term.Count(int64(total)) + " times"
		}
		d.printf("<article class=\"%s\">\n<p><em>%s</em> <b>%s</b>%s <span class=\"faint\">%s</span></p>\n<ul>\n", f.Severity, f.Severity, checkOf(f.Code).Says, times, f.Code)
		for _, one := range all[:min(len(all), foundShown)] {
			said := shown.place(one)
			if evidence := strings.Join(one.Evidence, "; "); evidence != "" && said != "" {
				said += ": " + evidence
			} else {
				said += evidence
			}
			d.printf("<li>%s</li>\n", term.Escape(said))
		}
		if rest := len(all) - foundShown; rest > 0 {
			d.printf("<li>and %s more: oc doctor --only %s --json has all</li>\n", term.Count(int64(rest)), f.Code)
		}
		d.printf("</ul>\n<p class=\"faint\">%s</p>\n", term.Escape(f.Consequence))
		for _, command := range commandsOf(all) {
			d.printf("<p class=\"faint\">To do: %s</p>\n", term.Escape(command))
		}
		d.printf("</article>\n")
	}
}
