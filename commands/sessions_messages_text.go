package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
	"oc/transcript"
)

// text shows a page to people: who, when, what, and calls of tools in a line.
func (h *history) text(ctx context.Context, c *Call) {
	stop := c.page(ctx)
	defer stop()
	out := c.Out
	if len(h.messages) == 0 {
		out.Printf("%s\n", h.nothing())
	}
	if h.more {
		out.Printf("%s\n\n", out.Paint(term.Dim, fmt.Sprintf("Older messages: --offset %d", h.next)))
	}
	for i, m := range h.messages {
		if i > 0 {
			out.Printf("\n")
		}
		if of := h.of[i]; (len(h.talk.all) > 1 || h.bound != nil) && (i == 0 || of != h.of[i-1]) {
			out.Printf("%s\n\n", out.Paint(term.Dim, "-- "+h.origin(of)+" --"))
		}
		say(out, m, h.times[i], h.beside[i])
	}
	h.waiting.show(out)
	if parts := h.left(); len(parts) > 0 {
		if len(h.messages) > 0 {
			out.Printf("\n")
		}
		out.Printf("%s\n", term.Styled(term.Wrap(term.Escape("Not shown: "+strings.Join(parts, "; ")+"."), out.Width(), "")))
	}
}

// origin names a transcript among several, with its era where there are two.
func (h *history) origin(of *store.Conversation) string {
	if era, ok := h.talk.era[of]; ok {
		return origin(of) + ", " + string(era) + " era"
	}
	return origin(of)
}

func origin(of *store.Conversation) string {
	if of.Reason == store.Current {
		return "the current transcript, " + of.ID
	}
	if of.Reason == store.ClaudeCLI {
		return "kept by Claude's own program, " + of.ID
	}
	return fmt.Sprintf("%s %s, %s", of.Reason, term.Time(of.At.UnixMilli()), of.ID)
}

// nothing says why a page is empty.
func (h *history) nothing() string {
	last := h.talk.current()
	switch {
	case last.Missing:
		return fmt.Sprintf("%s has no transcript.", h.talk.name())
	case last.Bytes == 0 && !last.InDatabase() && h.page.Total == 0:
		return fmt.Sprintf("Nothing was said in %s yet: its transcript is empty, it has not even a header.", h.talk.name())
	case h.page.Total == 0 && h.page.Outside+h.page.OffBranch+h.page.Before+h.page.Broken == 0:
		return fmt.Sprintf("Nothing was said in %s yet: its transcript has a header and no message.", h.talk.name())
	case h.page.Total >= 0 && h.offset >= h.page.Total && h.offset > 0:
		return fmt.Sprintf("%s has %d messages; none lies behind --offset %d.", h.talk.name(), h.page.Total, h.offset)
	}
	return fmt.Sprintf("No message of %s is to be shown.", h.talk.name())
}

// callSign stands before the name of a tool that is called, thought for what a model thought.
const (
	callSign = "→ "
	thought  = "(thinking"
)

// say shows one message.
func say(out *term.Out, m []byte, at int64, beside []part) {
	style := term.Yellow
	switch transcript.Role(m) {
	case "user":
		style = term.Bold | term.Green
	case "assistant":
		style = term.Bold | term.Cyan
	}
	when := "unknown time"
	if at != 0 {
		when = term.Time(at)
	}
	out.Printf("%s  %s\n", out.Paint(style, speaker(m)), out.Paint(term.Dim, when))
	for _, p := range append(parts(m), beside...) {
		if p.aside == "" {
			if p.text != "" {
				out.Printf("%s\n", term.Styled(paragraphs(p.text, out.Width())))
			}
			continue
		}
		line := p.aside
		if p.text != "" {
			line += " " + p.text
		}
		out.Printf("  %s\n", out.Paint(term.Dim, term.CutEnd(strings.Join(strings.Fields(line), " "), max(20, out.Width()-2), "…")))
	}
}

// speaker is who says a message, in words.
func speaker(m []byte) string {
	words := transcript.Role(m)
	for _, name := range []string{"senderLabel", "toolName", "customType"} {
		if s, ok := span.Text(span.Member(m, name)); ok && s != "" {
			words += " " + s
		}
	}
	if words == "" {
		words = "no role"
	}
	if string(span.Member(m, "isError")) == "true" {
		words += " (failed)"
	}
	return words
}

// part is a piece of a message as people see it: a text, or an aside with what it is (a call of a tool, an image) and the text in it.
type part struct {
	aside, text string
	picture     int // the number of the image that it is, from 1; 0 for none
}

// parts are the pieces of a message, masked as it is.
func parts(m []byte) (list []part) {
	content := span.Member(m, "content")
	if s, ok := span.Text(content); ok {
		list = append(list, part{text: s})
	}
	_, _ = span.Items(content, 0, func(b []byte) error {
		if s, ok := span.Text(b); ok {
			list = append(list, part{text: s})
			return nil
		}
		list = append(list, block(b))
		return nil
	})
	member := func(name string) string { s, _ := span.Text(span.Member(m, name)); return s }
	if content == nil {
		list = append(list, part{text: member("text")})
	}
	if transcript.Role(m) == "bashExecution" {
		list = append(list, part{aside: "$", text: member("command")}, part{text: member("output")})
	}
	if s := member("errorMessage"); s != "" {
		list = append(list, part{aside: "(error)", text: s})
	}
	return list
}

// block is one block of a message's content.
func block(b []byte) part {
	member := func(names ...string) []byte {
		for _, name := range names {
			if v := span.Member(b, name); v != nil {
				return v
			}
		}
		return nil
	}
	kind, _ := span.Text(member("type"))
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(kind)) {
	case "text", "inputtext", "outputtext":
		s, _ := span.Text(member("text"))
		return part{text: s}
	case "thinking", "reasoning":
		s, _ := span.Text(member("thinking", "text"))
		return part{aside: thought + ")", text: s}
	case "redactedthinking":
		return part{aside: thought + ", encrypted)"}
	case "toolcall", "tooluse", "functioncall":
		name, _ := span.Text(member("name"))
		return part{aside: callSign + name, text: arguments(member("arguments", "input", "args"))}
	case "toolresult":
		name, _ := span.Text(member("name"))
		return part{aside: strings.TrimSpace("← " + name), text: strings.Join(blockTexts(member("content", "text")), " ")}
	case "image", "inputimage", "imageurl":
		text := "(image"
		if s, ok := span.Text(member("mimeType", "media_type")); ok {
			text += ", " + s
		}
		if n, ok := span.Int(member("bytes")); ok {
			text += ", " + term.Bytes(n*3/4)
		} else if s, ok := span.Text(member("data")); ok {
			text += ", " + term.Bytes(int64(len(s))*3/4)
		}
		n, _ := span.Int(member(pictureMark))
		return part{aside: text + ")", picture: int(n)}
	}
	if s, ok := span.Text(member("text", "content")); ok {
		return part{text: s}
	}
	if kind == "" {
		kind = "something without a type"
	}
	return part{aside: "(" + kind + ")"}
}

// blockTexts are the texts of a result: a string, or those of blocks.
func blockTexts(raw []byte) (all []string) {
	if s, ok := span.Text(raw); ok {
		return []string{s}
	}
	_, _ = span.Items(raw, 0, func(b []byte) error {
		all = append(all, block(b).text)
		return nil
	})
	return all
}

// arguments are those of a call on one line: "command=ls -l, timeout=5".
func arguments(raw []byte) string {
	if raw == nil {
		return ""
	}
	if span.KindOf(raw) != span.Object {
		s, ok := span.Text(raw)
		if !ok {
			s = string(raw)
		}
		return s
	}
	var all []string
	for _, p := range span.Members(raw) {
		s, ok := span.Text(p.Val)
		if !ok {
			s = string(p.Val)
		}
		all = append(all, p.Name+"="+s)
	}
	return strings.Join(all, ", ")
}

// paragraphs is a text of several lines, escaped, wrapped and moved in by two.
func paragraphs(s string, width int) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = term.Escape(strings.ReplaceAll(line, "\t", "    "))
	}
	return term.Wrap(strings.Join(lines, "\n"), width, "  ")
}
