package compaction

import (
	"fmt"
	"strings"

	"oc/store/span"
	"oc/transcript"
	"oc/transcript/provider"
	"oc/transcript/visible"
)

// maxResult is how much of a tool's result a summariser gets, in UTF-16 units.
const maxResult = 2000

// Turns are what a message says to a summariser, part by part: thinking before text before calls, whatever their order in the message;
// images and what is empty left out; of a long result its beginning (spec/transcript.md 3.3). role and raw are those of a Said.
func Turns(role string, raw []byte) (turns []provider.Turn) {
	add := func(as, text string) {
		if text != "" {
			turns = append(turns, provider.Turn{Role: as, Text: text})
		}
	}
	summary := func() string { s, _ := span.Text(span.Member(raw, "summary")); return s }
	switch role {
	case "user", "custom":
		add("user", plain(raw, "", "text"))
	case "assistant":
		add("thinking", plain(raw, "\n", "thinking"))
		add("assistant", plain(raw, "\n", "text"))
		add("calls", calls(raw))
	case "toolResult":
		text := plain(raw, "", "text")
		if n := visible.Units(text); n > maxResult {
			text = fmt.Sprintf("%s\n\n[... %d more characters truncated]", first(text, maxResult), n-maxResult)
		}
		add("tool", text)
	case "bashExecution":
		if string(span.Member(raw, "excludeFromContext")) != "true" {
			add("user", bash(raw))
		}
	case "branchSummary":
		add("user", "What happened on a branch that this conversation came back from:\n\n<summary>\n"+summary()+"</summary>")
	case "compactionSummary":
		add("user", "What came before, in a summary:\n\n<summary>\n"+summary()+"\n</summary>")
	}
	return turns
}

// plain is the text of a message, or of its blocks of one type.
func plain(raw []byte, between, kind string) string {
	content := span.Member(raw, "content")
	if s, ok := span.Text(content); ok {
		if kind != "text" {
			return ""
		}
		return s
	}
	var parts []string
	_, _ = span.Items(content, 0, func(block []byte) error {
		if is, _ := span.Text(span.Member(block, "type")); is == kind {
			s, _ := span.Text(span.Member(block, kind))
			parts = append(parts, s)
		}
		return nil
	})
	return strings.Join(parts, between)
}

// calls are the calls of tools of an assistant's message: name(argument=value, ...); ...
func calls(raw []byte) string {
	var all []string
	for _, c := range transcript.Calls(raw) {
		var b []byte
		for _, m := range span.Members(c.Arguments) {
			if b != nil {
				b = append(b, ", "...)
			}
			b = append(append(b, m.Name...), '=')
			b = visible.AppendJSON(b, m.Val)
		}
		all = append(all, c.Name+"("+string(b)+")")
	}
	return strings.Join(all, "; ")
}

// bash is a command that a user ran, and what it printed.
func bash(raw []byte) string {
	text := func(name string) string { s, _ := span.Text(span.Member(raw, name)); return s }
	is := func(name string) bool { return string(span.Member(raw, name)) == "true" }
	said := "Ran `" + text("command") + "`\n"
	if out := text("output"); out != "" {
		said += "```\n" + first(out, maxResult) + "\n```"
	} else {
		said += "It printed nothing."
	}
	if is("cancelled") {
		said += "\n\nIt was cancelled."
	} else if code, ok := span.Float(span.Member(raw, "exitCode")); ok && code != 0 {
		said += "\n\nIt ended with exit code " + string(span.AppendFloat(nil, code)) + "."
	}
	return said
}
