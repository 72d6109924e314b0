package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
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
		say(out, m, h.times[i])
	}
	if parts := h.left(); len(parts) > 0 {
		if len(h.messages) > 0 {
			out.Printf("\n")
		}
		out.Printf("%s\n", term.Styled(term.Wrap(term.Escape("Not shown: "+strings.Join(parts, "; ")+"."), out.Width(), "")))
	}
}

// nothing says why a page is empty.
func (h *history) nothing() string {
	last := h.talk.current()
	switch {
	case last.Missing:
		return fmt.Sprintf("%s has no transcript.", h.talk.name())
	case h.page.Total == 0 && h.page.Outside+h.page.OffBranch+h.page.Before+h.page.Broken == 0:
		return fmt.Sprintf("Nothing was said in %s yet: its transcript has a header and no message.", h.talk.name())
	case h.page.Total >= 0 && h.offset >= h.page.Total && h.offset > 0:
		return fmt.Sprintf("%s has %d messages; none lies behind --offset %d.", h.talk.name(), h.page.Total, h.offset)
	}
	return fmt.Sprintf("No message of %s is to be shown.", h.talk.name())
}

// say shows one message.
func say(out *term.Out, m []byte, at int64) {
	role := transcript.Role(m)
	style := term.Bold
	switch role {
	case "user":
		style |= term.Green
	case "assistant":
		style |= term.Cyan
	default:
		style = term.Yellow
	}
	head := role
	for _, name := range []string{"senderLabel", "toolName", "customType"} {
		if s, ok := span.Text(span.Member(m, name)); ok && s != "" {
			head += " " + s
		}
	}
	if head == "" {
		head = "no role"
	}
	if string(span.Member(m, "isError")) == "true" {
		head += " (failed)"
	}
	when := "unknown time"
	if at != 0 {
		when = term.Time(at)
	}
	out.Printf("%s  %s\n", out.Paint(style, head), out.Paint(term.Dim, when))
	for _, line := range parts(m) {
		if line.text == "" {
			continue
		}
		text := paragraphs(line.text, out.Width())
		if line.aside {
			out.Printf("%s\n", term.Styled(text[:2])+out.Paint(term.Dim, term.CutEnd(strings.TrimPrefix(oneLine(line.text), "  "), max(20, out.Width()-2), "…")))
			continue
		}
		out.Printf("%s\n", term.Styled(text))
	}
}

// part is a piece of a message as people see it. An aside is one line: a call, an image.
type part struct {
	text  string
	aside bool
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
	if s, ok := span.Text(span.Member(m, "text")); ok && content == nil {
		list = append(list, part{text: s})
	}
	if transcript.Role(m) == "bashExecution" {
		command, _ := span.Text(span.Member(m, "command"))
		output, _ := span.Text(span.Member(m, "output"))
		list = append(list, part{text: "$ " + command, aside: true}, part{text: output})
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
		return part{text: "(thinking) " + s, aside: true}
	case "redactedthinking":
		return part{text: "(thinking, encrypted)", aside: true}
	case "toolcall", "tooluse", "functioncall":
		name, _ := span.Text(member("name"))
		return part{text: "→ " + name + arguments(member("arguments", "input", "args")), aside: true}
	case "image", "inputimage", "imageurl":
		text := "(image"
		if s, ok := span.Text(member("mimeType", "media_type")); ok {
			text += ", " + s
		}
		if n, ok := span.Int(member("bytes")); ok {
			text += ", " + term.Bytes(n*3/4)
		}
		return part{text: text + ")", aside: true}
	}
	if s, ok := span.Text(member("text", "content")); ok {
		return part{text: s}
	}
	if kind == "" {
		kind = "something without a type"
	}
	return part{text: "(" + kind + ")", aside: true}
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
		return " " + s
	}
	var all []string
	for _, p := range span.Members(raw) {
		s, ok := span.Text(p.Val)
		if !ok {
			s = string(p.Val)
		}
		all = append(all, p.Name+"="+s)
	}
	return " " + strings.Join(all, ", ")
}

// oneLine is a text on one line, escaped.
func oneLine(s string) string { return term.Escape(strings.Join(strings.Fields(s), " ")) }

// paragraphs is a text of several lines, escaped, wrapped and moved in by two.
func paragraphs(s string, width int) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = term.Escape(strings.ReplaceAll(line, "\t", "    "))
	}
	return term.Wrap(strings.Join(lines, "\n"), width, "  ")
}
