package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oc/awareness"
	"oc/commands/term"
	"oc/gateway"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

func awarenessUpstream() *Command {
	return &Command{
		Name:  "upstream",
		Short: "the conversations that adopted sessions came from",
		Long: "Shows the links of adopted sessions to the conversations of other tools that they came from, how far each was scanned, and whether anybody watches the session: only then is it " +
			"scanned.",
		Examples: []Example{{"oc awareness upstream", "all links"}},
		Exits:    []int{ExitBusy},
		Sub: []*Command{{
			Name:  "scan",
			Short: "look once for new turns of people in them",
			Long: "Does one tick of the monitor that a gateway runs every minute, on watched sessions whose conversation is a local file of Claude's command line. New turns of people become one " +
				"event; a conversation that is missing at three ticks in a row becomes another, and its link is removed. What the session itself sent there does not count. It is refused beside a gateway " +
				"that lives.",
			Examples: []Example{{"oc awareness upstream scan --json", "one tick, as a cron job does it"}},
			Exits:    []int{ExitBusy, ExitRefused},
			Run:      scanUpstream,
		}},
		Run: showUpstream,
	}
}

func showUpstream(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var all []awareness.Link
	err = s.read(ctx, func(snap *awareness.Snapshot) error {
		all = nil
		return snap.Links(func(l awareness.Link) error {
			all = append(all, l)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(all)))
			p.Key("links").Array()
			for _, l := range all {
				printLink(p, l)
				stamp(p, "lastScannedAt", l.Scanned)
				stamp(p, "createdAt", l.Created)
				stamp(p, "updatedAt", l.Updated)
				printRaw(p, "upstreamRef", l.Ref)
				printRaw(p, "lastMarker", l.Marker)
				p.End()
			}
			p.End()
			s.print(p)
			p.End()
			return nil
		})
	}
	if len(all) == 0 {
		c.Out.Printf("No session was adopted from another tool.\n")
		return nil
	}
	t := c.Out.Table(
		term.Column{Head: "Session", Cut: term.Middle, Min: 16}, term.Column{Head: "From"}, term.Column{Head: "Conversation", Cut: term.Middle, Min: 12},
		term.Column{Head: "Watched"}, term.Column{Head: "Scanned", Right: true},
	)
	for _, l := range all {
		t.Row(l.SessionKey, l.Catalog, l.Thread, map[bool]string{true: "yes", false: "no"}[l.Watched], ageOf(float64(l.Scanned), c.nowMs()))
	}
	t.End()
	return nil
}

// printLink prints what names a link, and leaves the object open.
func printLink(p *span.Printer, l awareness.Link) {
	p.Object()
	p.Key("sessionKey").String(l.SessionKey)
	p.Key("agentId").String(l.AgentID)
	p.Key("catalogId").String(l.Catalog)
	p.Key("hostId").String(l.Host)
	p.Key("threadId").String(l.Thread)
	p.Key("upstreamKind").String(l.Kind)
	p.Key("watched").Bool(l.Watched)
}

// printRaw prints JSON as it is stored; null where it is none.
func printRaw(p *span.Printer, name string, value []byte) {
	if p.Key(name); span.Valid(value) != nil {
		p.Null()
	} else {
		p.Raw(value)
	}
}

func scanUpstream(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var scans []awareness.Scan
	var failed error
	err = s.upkeep(ctx, "scan", func() error {
		memory := missedFile{filepath.Join(s.cfg.StateDir, ".oc", "upstream.json")}
		missed, err := memory.load()
		if err != nil {
			return err
		}
		owner := c.owner(ctx, s.cfg)
		tick := &awareness.Upstream{Missed: missed, Session: func(key, agent string) (awareness.Adoption, bool) { return s.adoption(ctx, owner, key, agent) }}
		scans, failed = awareness.ScanUpstream(ctx, s.path, s.options(s.world(ctx, false)), tick)
		if scans == nil && failed != nil {
			return failed
		}
		return memory.save(tick.Missed)
	})
	if err != nil {
		return err
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(scans)))
			p.Key("scans").Array()
			for _, scan := range scans {
				printLink(p, scan.Link)
				p.Key("outcome").String(string(scan.Outcome))
				p.Key("turns").Int(scan.Turns)
				p.Key("missed").Int(int64(scan.Missed))
				if scan.Reason != "" {
					p.Key("reason").String(scan.Reason)
				}
				p.End()
			}
			p.End()
			if failed != nil {
				p.Key("errors").Array()
				p.Object()
				p.Key("message").String(failed.Error())
				p.End()
				p.End()
			}
			s.print(p)
			p.End()
			return nil
		}); err != nil {
			return err
		}
	} else {
		scanTable(c, scans)
	}
	return failed
}

func scanTable(c *Call, scans []awareness.Scan) {
	if len(scans) == 0 {
		c.Out.Printf("No watched session was adopted from another tool.\n")
		return
	}
	t := c.Out.Table(term.Column{Head: "Session", Cut: term.Middle, Min: 16}, term.Column{Head: "From"}, term.Column{Head: "Outcome"}, term.Column{Head: "What", Cut: term.End, Min: 16})
	for _, scan := range scans {
		what := scan.Reason
		switch scan.Outcome {
		case awareness.Active:
			what = plural(int(scan.Turns), "new turn of people", "new turns of people")
		case awareness.Missing:
			what = "not there, for " + plural(scan.Missed, "tick", "ticks")
		case awareness.Lost:
			what = "not there any more; the link is removed"
		}
		t.Row(scan.Link.SessionKey, scan.Link.Catalog, string(scan.Outcome), what)
	}
	t.End()
}

const ownTexts = 10 // messages that may come back as echoes (spec/awareness.md 2.3)

// adoption is what the store of its agent knows of an adopted session; false where it has none, or where a run of it seems to live.
func (s *signals) adoption(ctx context.Context, owner gateway.Ownership, key, agent string) (a awareness.Adoption, ok bool) {
	for _, t := range storesOf(s.cfg, agent) {
		found, err := store.Open(ctx, s.cfg, t)
		if err != nil {
			s.call.Warnf("%v", storeError(found, err))
			continue
		}
		for i := range found.Rows {
			r := &found.Rows[i]
			if r.Key != key {
				continue
			}
			if status, _ := r.Text(row.Status); status == "running" && judge(ctx, s.call, r, owner).Word != gateway.ProbablyDead {
				return a, false
			}
			a.SessionID, a.Parent = r.ID(), parentOf(&r.Entry)
			if a.Own, err = spoken(ctx, r); err != nil {
				s.call.Warnf("%s: what it said itself cannot be read: %v", key, err)
				return a, false
			}
			return a, true
		}
	}
	return a, false
}

// spoken are the latest texts that a session itself sent.
func spoken(ctx context.Context, r *store.Row) (texts []string, err error) {
	current, err := r.Conversation(ctx)
	if err != nil || current.Missing {
		return nil, err
	}
	_, err = store.Walk(ctx, []*store.Conversation{current}, store.Part{Long: -1}, func(m store.Message) error {
		if text := awareness.Own(m.Raw); text != "" {
			if texts = append(texts, text); len(texts) > ownTexts {
				texts = texts[1:]
			}
		}
		return nil
	})
	return texts, err
}

// missedFile keeps, from scan to scan, which conversations were missing. It is oc's own: nobody else reads it.
type missedFile struct{ path string }

func (f missedFile) load() (map[string]awareness.Missed, error) {
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]awareness.Missed{}, nil
	}
	all := map[string]awareness.Missed{}
	if err != nil {
		return nil, fmt.Errorf("read what the last scans missed: %w", err)
	}
	if json.Unmarshal(b, &all) != nil { // counting anew only makes a loss be told later
		return map[string]awareness.Missed{}, nil
	}
	return all, nil
}

func (f missedFile) save(all map[string]awareness.Missed) error {
	if len(all) == 0 {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget what the last scans missed: %w", err)
		}
		return nil
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("keep what this scan missed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("keep what this scan missed: %w", err)
	}
	aside := f.path + ".tmp"
	if err := os.WriteFile(aside, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep what this scan missed: %w", err)
	}
	if err := os.Rename(aside, f.path); err != nil {
		return fmt.Errorf("keep what this scan missed: %w", err)
	}
	return nil
}
