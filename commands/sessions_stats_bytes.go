package commands

import (
	"fmt"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
)

// showWeight answers sessions stats --bytes; other is how many transcripts of the era that is not read were left out.
func (c *Call) showWeight(l *library, seen *sight, volumes []*store.Volume, other int, w *store.Weight) error {
	if c.Bool("csv") {
		return Usagef("--bytes has no --csv; give --json")
	}
	l.Problems = append(l.Problems, w.Failed...)
	var err error
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error { return printWeight(p, l, seen, volumes, other, w) })
	} else {
		c.weightText(volumes, w)
	}
	if err != nil {
		return err
	}
	if other > 0 {
		c.Warnf("%s of the era that OpenClaw does not read; weigh them with --both-eras", plural(other, "transcript is left out, that", "transcripts are left out, those"))
	}
	seen.tell(c)
	return l.end(c)
}

// weights are the lists of a weight, and what each is of.
func weights(w *store.Weight) []struct {
	key, head string
	shares    []store.Share
} {
	return []struct {
		key, head string
		shares    []store.Share
	}{{"sources", "Transcripts", w.Sources}, {"contents", "Content", w.Contents}, {"media", "Inline media", w.Media}, {"rowFields", "Field of rows", w.Fields}}
}

func printWeight(p *span.Printer, l *library, seen *sight, volumes []*store.Volume, other int, w *store.Weight) error {
	share := func(s store.Share) {
		p.Key("bytes").Int(s.Bytes)
		p.Key("count").Int(int64(s.Count))
	}
	p.Object()
	p.Key("transcripts").Int(int64(len(volumes)))
	p.Key("otherEraTranscripts").Int(int64(other))
	p.Key("bytes").Int(w.Bytes)
	for _, list := range weights(w) {
		p.Key(list.key).Array()
		for _, s := range list.shares {
			p.Object()
			p.Key("name").String(s.Name)
			share(s)
			p.End()
		}
		p.End()
	}
	p.Key("repeatedEntries").Object()
	share(w.Repeated)
	p.End()
	p.Key("sharedForkPrefixes").Object()
	share(w.Forked)
	p.End()
	p.Key("longestLines").Array()
	for _, x := range w.Longest {
		p.Object()
		printVolume(p, x.Volume)
		if x.Byte >= 0 {
			p.Key("byte").Int(x.Byte)
		}
		if x.Seq >= 0 {
			p.Key("seq").Int(x.Seq)
		}
		p.Key("bytes").Int(int64(x.Size))
		p.End()
	}
	p.End()
	p.Key("unreadTranscripts").Int(int64(len(w.Unread)))
	seen.print(p)
	l.printProblems(p)
	p.End()
	return nil
}

func (c *Call) weightText(volumes []*store.Volume, w *store.Weight) {
	o := c.Out
	of := func(n int64) string {
		if w.Bytes == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(w.Bytes))
	}
	longest := ""
	if len(w.Longest) > 0 {
		x := w.Longest[0]
		longest = fmt.Sprintf("%s, in %s", term.Bytes(int64(x.Size)), volumeName(x.Volume))
	}
	o.Facts(
		term.Fact{Label: "Transcripts", Value: fmt.Sprintf("%s, %s as JSON", term.Count(int64(len(volumes))), term.Bytes(w.Bytes)), Style: term.Bold},
		term.Fact{Label: "Repeated", Value: fmt.Sprintf("%s (%s) in %s that another transcript has too", term.Bytes(w.Repeated.Bytes), of(w.Repeated.Bytes), plural(w.Repeated.Count, "entry", "entries"))},
		term.Fact{Label: "Forks", Value: fmt.Sprintf("%s of them in prefixes that sessions in use share", term.Bytes(w.Forked.Bytes))},
		term.Fact{Label: "Longest line", Value: longest},
	)
	for _, list := range weights(w) {
		if len(list.shares) == 0 {
			continue
		}
		o.Printf("\n")
		t := o.Table(term.Column{Head: list.head, Cut: term.End, Min: 16}, term.Column{Head: "Count", Right: true}, term.Column{Head: "Size", Right: true}, term.Column{Head: "Of all", Right: true})
		for i, s := range list.shares {
			if i == 12 && !c.Bool("verbose") {
				c.Notef("%s not shown; give --verbose to see them", plural(len(list.shares)-i, "smaller one is", "smaller ones are"))
				break
			}
			part := of(s.Bytes)
			if list.key == "rowFields" {
				part = ""
			}
			t.Row(s.Name, term.Count(int64(s.Count)), term.Bytes(s.Bytes), part)
		}
		t.End()
	}
}
