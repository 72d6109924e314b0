package commands

import (
	"context"
	"math"
	"time"

	"oc/maintenance/doctor"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/span"
)

func reportCommand() *Command {
	return &Command{
		Name:  "report",
		Short: "the state as one page with pictures, to read, print or send",
		Long: "Writes one HTML page that needs nothing else and loads nothing: where the space goes by class and agent, sessions by kind and age, tokens and cost by day and model, and the " +
			"findings of oc doctor. It reads every transcript once and changes nothing.\n\n" +
			"No title, label or message is on it; findings name session keys, in which telephone numbers and names may stand. The file is made with the rights 0600, whole or not at all, and " +
			"one that is there is never replaced without --overwrite.",
		Flags: []Flag{
			{Name: "html", Value: "FILE", Help: "the file to write, or - for standard output"},
			{Name: "overwrite", Help: "replace the file if it is there"},
		},
		Examples: []Example{
			{"oc report --html report.html", "the page"},
			{"oc report --html report.html --overwrite --quiet", "every night, from a timer"},
		},
		Exits: []int{ExitRefused},
		Run:   writeReport,
	}
}

// report is what the page shows.
type report struct {
	*standing
	call     *Call
	found    *doctor.Report
	spent    *store.Spending
	volumes  int
	problems []error
	now      int64 // epoch ms
}

func writeReport(ctx context.Context, c *Call) error {
	if !c.Given("html") {
		return Usagef("oc report makes a page; give --html FILE, or --html - for standard output")
	}
	out, err := c.output("html")
	if err != nil {
		return err
	}
	if c.JSON() && out.path == "" {
		return Usagef("--json says what was written and needs standard output for itself; give --html FILE for the page")
	}
	r := &report{call: c, now: c.Now().UnixMilli()}
	if r.standing, err = c.survey(ctx); err != nil {
		return err
	}
	out.overwrite, out.instead = c.Bool("overwrite"), "give another name, or --overwrite to replace it"
	if err := out.place("its own", r.cfg.StateDir); err != nil {
		return err
	}
	if r.found, err = c.examine(ctx, r.cfg, r.owner); err != nil {
		return err
	}
	corpus := store.ReadCorpus(ctx, r.cfg, r.l.opened)
	bar := c.Progress("counting")
	r.spent, err = (&store.Count{Zone: time.Local}).Run(ctx, corpus.Volumes)
	if bar.Done(); err != nil {
		return err
	}
	r.volumes, r.problems = len(corpus.Volumes), append(corpus.Problems, r.spent.Failed...)
	var n int64
	if out.path == "" {
		err = r.page(c.Out)
	} else if n, err = out.write(r.page); err == nil && c.JSON() {
		err = c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("path").String(out.path)
			p.Key("bytes").Int(n)
			p.End()
			return nil
		})
	} else if err == nil {
		c.Notef("%s was written", out.path)
	}
	if err != nil {
		return err
	}
	for _, problem := range r.problems {
		c.Warnf("%v", problem)
	}
	if err := r.remarks(c); err != nil || len(r.problems) == 0 {
		return err
	}
	return Status(ExitFailed)
}

// spaces are the classes of file as people tell them apart.
var spaces = []struct {
	name    string
	classes []jsonfile.Class
}{
	{"database", nil},
	{"transcripts", []jsonfile.Class{jsonfile.Live}},
	{"archives", []jsonfile.Class{jsonfile.Archive}},
	{"sidecars, checkpoints", []jsonfile.Class{jsonfile.Sidecar, jsonfile.Checkpoint}},
	{"imported originals", nil},
	{"index and the rest", []jsonfile.Class{jsonfile.Store, jsonfile.Prompt, jsonfile.Lock, jsonfile.Temp, jsonfile.Other}},
}

// space is the bytes of an agent by spaces.
func space(u *store.Usage) (all []float64) {
	for _, s := range spaces {
		n := int64(0)
		for _, k := range s.classes {
			n += u.Classes[k].Bytes
		}
		switch s.name {
		case "database":
			n = max(u.Database, 0) + u.WAL
		case "imported originals":
			n = u.Imported.Bytes
		}
		all = append(all, float64(n))
	}
	return all
}

// ages are the classes of age of the page, the youngest first.
var ages = []struct {
	name string
	ms   float64
}{{"today", 86_400_000}, {"a week", 7 * 86_400_000}, {"a month", 30 * 86_400_000}, {"three months", 90 * 86_400_000}, {"older", math.Inf(1)}, {"unknown", 0}}

// ageClass is the index in ages of a row. A time that can be none, or lies more than a day ahead, is unknown.
func ageClass(updated, now float64) int {
	old := now - updated
	if !(updated > 0) || old < -86_400_000 {
		return len(ages) - 1
	}
	for i, a := range ages {
		if old < a.ms {
			return i
		}
	}
	return len(ages) - 1
}

// kindAges are the sessions of all agents by kind and age.
func (r *report) kindAges() (counts map[string][]float64) {
	counts = map[string][]float64{}
	for i := range r.agents {
		if r.agents[i].err != nil {
			continue
		}
		rows := r.agents[i].sessions.Rows
		for j := range rows {
			kind := rows[j].ListKind()
			if counts[kind] == nil {
				counts[kind] = make([]float64, len(ages))
			}
			counts[kind][ageClass(rows[j].Updated, float64(r.now))]++
		}
	}
	return counts
}

// daysShown is how many days the pictures show at most.
const daysShown = 90

// days are the last days on which something was used, without gaps: a day without an answer has none.
func (r *report) days() (all []store.Group) {
	known := map[string]store.Group{}
	first, last := "", ""
	for _, g := range r.spent.Days {
		if g.Name == "" {
			continue
		}
		if known[g.Name] = g; first == "" || g.Name < first {
			first = g.Name
		}
		last = max(last, g.Name)
	}
	day, err := time.Parse(time.DateOnly, last)
	if err != nil {
		return nil
	}
	begin := max(first, day.AddDate(0, 0, 1-daysShown).Format(time.DateOnly))
	for at, _ := time.Parse(time.DateOnly, begin); !at.After(day); at = at.AddDate(0, 0, 1) {
		name := at.Format(time.DateOnly)
		g := known[name]
		g.Name = name
		all = append(all, g)
	}
	return all
}
