package commands

import (
	"context"
	"fmt"

	"oc/commands/term"
	"oc/store/span"
	"oc/transcript/visible"
)

// What OpenClaw 2026.9.6 gives of inputs that wait: so many of them, in so many bytes of JSON, which count among those of the page
// (spec/session-tools.md 2.7).
const (
	pendingInputs = 20
	pendingBytes  = 4096
)

// waiting are the inputs that wait to become messages of a session.
type waiting struct {
	items []waitingInput
	total int
	json  []byte // of all
}

type waitingInput struct {
	state   string
	at      int64
	message []byte // masked and cut
}

// wait reads what waits to become a message: nil where the store does not keep that.
func (h *history) wait(ctx context.Context, view visible.View) error {
	if h.talk.row == nil {
		return nil
	}
	list, total, known, err := h.talk.row.Pending(ctx, pendingInputs)
	if err != nil || !known {
		return err
	}
	w := &waiting{total: total}
	w.json = []byte(`{"items":[`)
	budget := max(64, (pendingBytes-len(list)*120)/max(1, len(list)))
	for i := range list {
		p := &list[i]
		message := []byte(`{"role":"user","content":"[input omitted: too long]"}`)
		if shown, ok := visible.Project(p.Message, budget); ok {
			view.Units = max(1, budget/8)
			masked, changed := view.Show(shown)
			h.redacted, h.truncated = h.redacted || changed.Redacted, h.truncated || changed.Truncated
			if content := span.Member(masked, "content"); len(content) > 0 && len(content)+len(`{"role":"user","content":}`) <= budget {
				message = append(append([]byte(`{"role":"user","content":`), content...), '}')
			} else {
				h.truncated = true
			}
		}
		if i > 0 {
			w.json = append(w.json, ',')
		}
		w.json = append(w.json, `{"id":`...)
		w.json = append(span.Quote(w.json, p.ID), `,"state":`...)
		w.json = append(span.Quote(w.json, p.State), fmt.Sprintf(`,"acceptedAt":%d,"message":`, p.AcceptedAt)...)
		w.json = append(append(w.json, message...), '}')
		w.items = append(w.items, waitingInput{p.State, p.AcceptedAt, message})
	}
	w.json = append(w.json, fmt.Sprintf(`],"total":%d}`, total)...)
	h.waiting = w
	return nil
}

// show tells people of them.
func (w *waiting) show(out *term.Out) {
	if w == nil || w.total == 0 {
		return
	}
	out.Printf("\n%s\n", out.Paint(term.Dim, "-- "+plural(w.total, "message waits", "messages wait")+" to be taken in --"))
	for i := range w.items {
		x := &w.items[i]
		out.Printf("\n")
		say(out, x.message, x.at, []part{{aside: "(" + x.state + ")"}})
	}
	if n := w.total - len(w.items); n > 0 {
		out.Printf("\n%s\n", out.Paint(term.Dim, fmt.Sprintf("(%d older ones wait too)", n)))
	}
}
