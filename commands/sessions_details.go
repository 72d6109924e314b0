package commands

import (
	"context"

	"oc/store"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// detail is what a listing shows of a row's transcript, where it was asked for.
type detail struct {
	title, preview, speaker string
	failed                  string // why the transcript could not be looked at

	withTitle, withPreview, withMessages bool
}

func titled(details []detail) bool {
	return len(details) > 0 && (details[0].withTitle || details[0].withPreview)
}

// describe opens the transcripts of the rows that are shown, if titles, previews or messages are asked for.
func (c *Call) describe(ctx context.Context, l *listing) ([]detail, error) {
	all := make([]detail, len(l.rows))
	n := int(c.Int("messages"))
	if !c.Bool("titles") && !c.Bool("preview") && n == 0 {
		return all, nil
	}
	for i, r := range l.rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := &all[i]
		d.withTitle, d.withPreview, d.withMessages = c.Bool("titles"), c.Bool("preview"), n > 0
		g, err := r.Glance(ctx)
		if err != nil {
			d.failed = err.Error()
		}
		d.title, d.preview, d.speaker = titleOf(r, g), g.Preview, g.Speaker
	}
	return all, nil
}

func titleOf(r *store.Row, g transcript.Glimpse) string {
	n := transcript.Named{SessionID: r.ID(), UpdatedAt: r.Updated}
	n.Label, _ = r.Text(row.Label)
	n.DisplayName, _ = r.Text(row.DisplayName)
	n.Subject, _ = r.Text(row.Subject)
	return transcript.Title(n, g.FirstUser)
}

// line is a detail in one cell of a table.
func (d *detail) line() string {
	switch {
	case d.failed != "":
		return "unreadable: " + d.failed
	case d.withTitle && d.withPreview && d.preview != "":
		return d.title + " | " + d.preview
	case d.withTitle:
		return d.title
	}
	return d.preview
}

func (d *detail) print(p *span.Printer) {
	if d.withTitle {
		p.Key("derivedTitle").String(d.title)
	}
	if d.withPreview {
		if p.Key("lastMessagePreview"); d.preview == "" {
			p.Null()
		} else {
			p.String(d.preview)
		}
	}
	if d.withMessages {
		p.Key("messages").Array()
		p.End()
	}
	if d.failed != "" {
		p.Key("transcriptError").String(d.failed)
	}
}
