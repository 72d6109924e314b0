package commands

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"oc/config"
	"oc/gateway"
	"oc/maintenance/doctor"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/lock"
	"oc/store/span"
)

func metricsCommand() *Command {
	return &Command{
		Name:  "metrics",
		Short: "the state as numbers, for a Prometheus that watches many machines",
		Long: "Prints the state as OpenMetrics text: sessions by kind, bytes and files by class, the limits, running sessions by verdict, when an agent was last active, the findings of " +
			"oc doctor, the signal log, and what oc undo can take back. No session is named, no connection is made, and nothing in the state is changed.\n\n" +
			"With --output it writes a file whole or not at all, readable by everybody, for the textfile collector of a node exporter; give it a name that ends in .prom. A file of " +
			"metrics that is there is replaced, any other is left alone.\n\n" +
			"What is not known has no sample: an agent whose store cannot be read has oc_agent_readable 0 and no number of sessions, and the exit status is 1.",
		Flags: []Flag{{Name: "output", Short: "o", Value: "PATH", Help: "the file to write; without it, or with -, standard output"}},
		Examples: []Example{
			{"oc metrics", "all numbers"},
			{"oc metrics --output /var/lib/prometheus/node-exporter/oc.prom", "for the node exporter, from a timer"},
		},
		Exits: []int{ExitRefused},
		Run:   showMetrics,
	}
}

func showMetrics(ctx context.Context, c *Call) error {
	out, err := c.output("output")
	if err != nil {
		return err
	}
	s, err := c.survey(ctx)
	if err != nil {
		return err
	}
	out.mode, out.overwrite, out.instead = 0o644, isMetrics(out.path), "it holds no metrics and was left alone; give another name"
	if err := out.place("its own", s.cfg.StateDir); err != nil {
		return err
	}
	report, err := c.examine(ctx, s.cfg, s.owner)
	if err != nil {
		return err
	}
	all := s.metrics(report, c.Now().UnixMilli())
	if out.path == "" && c.JSON() {
		err = c.Document(func(p *span.Printer) error { printMetrics(p, all); return nil })
	} else if out.path == "" {
		_, err = c.Out.Write(all.exposition())
	} else {
		n, failed := out.write(func(w io.Writer) error { _, err := w.Write(all.exposition()); return err })
		if failed != nil {
			return failed
		}
		if c.JSON() {
			err = c.Document(func(p *span.Printer) error {
				p.Object()
				p.Key("path").String(out.path)
				p.Key("samples").Int(int64(all.samples()))
				p.Key("bytes").Int(n)
				p.End()
				return nil
			})
		} else {
			c.Notef("%s: %s", out.path, plural(all.samples(), "sample", "samples"))
		}
	}
	if err != nil {
		return err
	}
	return s.remarks(c)
}

// isMetrics tells a file that oc metrics wrote, or that may be written because nothing is in it.
func isMetrics(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	return errors.Is(err, io.EOF) || n > 0 && bytes.HasPrefix(head[:n], []byte("# TYPE oc_"))
}

// examine is what oc doctor finds without flags, for those who show it beside other things.
func (c *Call) examine(ctx context.Context, cfg *config.Config, owner gateway.Ownership) (*doctor.Report, error) {
	targets, err := store.Targets(cfg, store.Pick{All: true})
	if err != nil {
		return nil, err
	}
	bar := c.Progress("reading transcripts")
	defer bar.Done()
	return doctor.Examine(ctx, doctor.Options{
		Config: cfg, Targets: append(targets, store.StrangerTargets(cfg)...), State: true, Machine: lock.Local(), Owner: owner, Now: c.Now(),
		Progress: func(done, total int64) { bar.Set(done, total) },
	})
}

// listKinds are the kinds that a list of sessions knows (spec/file-store.md 3.5).
var listKinds = kinds[:6]

// classes are the classes of file in the order in which they are shown.
var classes = []jsonfile.Class{jsonfile.Live, jsonfile.Archive, jsonfile.Checkpoint, jsonfile.Sidecar, jsonfile.Prompt, jsonfile.Store, jsonfile.Lock, jsonfile.Temp, jsonfile.Other}

// metrics are the numbers of a state.
func (s *standing) metrics(report *doctor.Report, now int64) families {
	var all families
	b := build()
	all.gauge("oc_build_info", "", "The oc that made these numbers.").add(1, "version", b.Version, "commit", b.Commit)
	all.gauge("oc_collected_timestamp_seconds", "seconds", "When these numbers were made.").add(seconds(float64(now)))

	life := all.gauge("oc_gateway_life", "", "Whether a gateway lives here, as far as files, processes and ports tell: 1 for the one that holds.")
	for _, l := range []gateway.Life{gateway.Alive, gateway.None, gateway.Maybe} {
		life.add(truth(s.owner.Life == l), "life", string(l))
	}
	all.gauge("oc_config_readable", "", "Whether the configuration can be read.").add(truth(!s.cfg.Broken))

	readable := all.gauge("oc_agent_readable", "", "Whether the session store of an agent, and all of its folder, can be read.")
	known := all.gauge("oc_agent_configured", "", "Whether the configuration names the agent; 0 for one that is only on disk.")
	rows := all.gauge("oc_sessions", "", "Sessions in the store, by kind.")
	rowLimit := all.gauge("oc_sessions_limit", "", "Sessions that OpenClaw keeps at most; without a limit there is no sample.")
	size := all.gauge("oc_size_bytes", "bytes", "Bytes on disk, by class.")
	sizeLimit := all.gauge("oc_size_limit_bytes", "bytes", "Bytes that OpenClaw keeps at most; without a limit there is no sample.")
	files := all.gauge("oc_files", "", "Files in the folder of the store, by class.")
	last := all.gauge("oc_last_activity_timestamp_seconds", "seconds", "When a session of the agent was last written, by its row.")
	skipped := all.gauge("oc_sessions_unusable", "", "Rows that neither OpenClaw nor oc can use.")
	for i := range s.agents {
		a := &s.agents[i]
		era := string(a.sessions.Era)
		readable.add(truth(a.err == nil && len(a.usage.Problems) == 0), "agent", a.id, "era", era)
		known.add(truth(a.configured), "agent", a.id)
		if a.err == nil {
			for _, kind := range listKinds {
				rows.add(0, "agent", a.id, "kind", kind)
			}
			for j := range a.sessions.Rows {
				rows.add(1, "agent", a.id, "kind", a.sessions.Rows[j].ListKind())
			}
			if at := newestOf(a.sessions.Rows, now); at > 0 {
				last.add(seconds(at), "agent", a.id)
			}
			skipped.add(float64(len(a.sessions.Skipped)), "agent", a.id)
		}
		if a.limits.known && a.limits.rows > 0 {
			rowLimit.add(float64(a.limits.rows), "agent", a.id)
		}
		if a.limits.known && a.limits.bytes > 0 {
			sizeLimit.add(float64(a.limits.bytes), "agent", a.id)
		}
		for _, k := range classes {
			n := a.usage.Classes[k]
			size.add(float64(n.Bytes), "agent", a.id, "class", string(k))
			files.add(float64(n.Files), "agent", a.id, "class", string(k))
		}
		if a.usage.Database >= 0 {
			size.add(float64(a.usage.Database), "agent", a.id, "class", "database")
		}
		size.add(float64(a.usage.WAL), "agent", a.id, "class", "wal")
		size.add(float64(a.usage.Imported.Bytes), "agent", a.id, "class", "import-archive")
	}

	running := all.gauge("oc_running_sessions", "", "Sessions that say they are running, by what their traces say.")
	for i := range s.agents {
		for _, w := range []gateway.Word{gateway.Live, gateway.ProbablyDead, gateway.Contradictory, gateway.Unknown} {
			running.add(0, "agent", s.agents[i].id, "verdict", string(w))
		}
	}
	for _, r := range s.running {
		running.add(1, "agent", r.row.Store().Agent, "verdict", string(r.Word))
	}

	found := all.gauge("oc_findings", "", "What oc doctor finds, by severity.")
	for _, w := range []doctor.Severity{doctor.Error, doctor.Warn, doctor.Info} {
		found.add(float64(report.Count(string(w))), "severity", string(w))
	}
	checks := all.gauge("oc_check_findings", "", "What oc doctor finds, by its code and by agent; codes that find nothing have no sample.")
	for i := range report.Findings {
		f := &report.Findings[i]
		checks.add(float64(1+f.More), "agent", f.Agent, "code", string(f.Code), "severity", string(f.Severity))
	}

	if s.unheard == nil {
		all.gauge("oc_signal_events", "", "Events in the signal log.").add(float64(s.stats.Events))
		all.gauge("oc_watches", "", "Watches of sessions in the signal log.").add(float64(s.stats.Watches))
		all.gauge("oc_pending_notices", "", "Watches with a notice that nobody has taken in.").add(float64(s.stats.Pending))
	}
	runs, cut, saved := s.undoable()
	all.gauge("oc_undo_runs", "", "Changes of oc that can be taken back.").add(float64(runs))
	all.gauge("oc_undo_cut_short", "", "Changes of oc that were cut short.").add(float64(cut))
	all.gauge("oc_undo_saved_bytes", "bytes", "Bytes that are saved to take changes back.").add(float64(saved))
	return all.sorted()
}

// newestOf is when a session of some was last written, as far as that can be: not ahead of the clock by more than a day.
func newestOf(rows []store.Row, now int64) (at float64) {
	for i := range rows {
		if t := rows[i].Updated; t > at && t <= float64(now)+86_400_000 {
			at = t
		}
	}
	return at
}

func seconds(ms float64) float64 { return ms / 1000 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func printMetrics(p *span.Printer, all families) {
	p.Object()
	p.Key("metrics").Array()
	for _, f := range all {
		p.Object()
		p.Key("name").String(f.name)
		p.Key("type").String("gauge")
		if f.unit != "" {
			p.Key("unit").String(f.unit)
		}
		p.Key("help").String(f.help)
		p.Key("samples").Array()
		for _, x := range f.samples {
			p.Object()
			p.Key("labels").Object()
			for i := 0; i < len(x.labels); i += 2 {
				p.Key(x.labels[i]).String(x.labels[i+1])
			}
			p.End()
			p.Key("value").Float(x.value)
			p.End()
		}
		p.End()
		p.End()
	}
	p.End()
	p.End()
}
