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
	store.Detail
	title string

	withTitle, withPreview, withMessages bool
}

// describe opens the transcripts of the rows that are shown, if titles, previews or messages are asked for.
func (c *Call) describe(ctx context.Context, l *listing) ([]detail, error) {
	all := make([]detail, len(l.rows))
	n := int(c.Int("messages"))
	titles, previews := c.Bool("titles"), c.Bool("preview")
	if !titles && !previews && n == 0 {
		return all, nil
	}
	found, err := store.Details(ctx, l.rows, store.Want{Glance: titles || previews, Messages: n})
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		if d.Err != nil {
			l.unread++
			if l.unreadWhy == "" {
				l.unreadWhy = d.Err.Error()
			}
		}
		l.damaged += d.Damaged
		all[i] = detail{Detail: d, withTitle: titles, withPreview: previews, withMessages: n > 0}
		if titles {
			all[i].title = titleOf(l.rows[i], d.Glimpse)
		}
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

// cell is a text in a cell of a table, or why there is none.
func (d *detail) cell(text string) string {
	if d.Err != nil {
		return "unreadable: " + d.Err.Error()
	}
	return text
}

func (d *detail) print(p *span.Printer) {
	if d.withTitle {
		p.Key("derivedTitle").String(d.title)
	}
	if d.withPreview {
		optional(p, "lastMessagePreview", d.Glimpse.Preview)
	}
	if d.withMessages {
		p.Key("messages").Array()
		for _, m := range d.Messages {
			p.Object()
			p.Key("role").String(m.Role)
			p.Key("text").String(m.Text)
			if p.Key("timestamp"); m.At > 0 {
				p.Float(m.At)
			} else {
				p.Null()
			}
			p.End()
		}
		p.End()
	}
	if d.Err != nil {
		p.Key("transcriptError").String(d.Err.Error())
	}
	if d.Damaged > 0 {
		p.Key("damagedLines").Int(int64(d.Damaged))
	}
}
