package commands

import (
	"fmt"
	"io"
	"strings"

	"oc/commands/term"
	"oc/store"
)

// markdown writes a conversation as Markdown. What was said stands in quotes, so that no text can pass for a heading of the document,
// and its HTML is shown, not meant.
type markdown struct {
	w   io.Writer
	err error
}

func (d *markdown) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *markdown) begin(title string, facts [][2]string) {
	d.printf("# %s\n\n", plain(title))
	for _, f := range facts {
		d.printf("- %s: %s\n", f[0], plain(f[1]))
	}
}

func (d *markdown) message(raw []byte, beside []part, _ []picture, m store.Message, more bool) error {
	when := "unknown time"
	if m.Time != 0 {
		when = term.Time(m.Time)
	}
	if more {
		when += ", continued"
	}
	d.printf("\n## %s, %s\n", plain(speaker(raw)), when)
	for _, p := range append(parts(raw), beside...) {
		if p.aside != "" {
			d.printf("\n> *%s*\n", plain(p.aside))
		}
		if p.text == "" {
			continue
		}
		d.printf("\n")
		if p.aside != "" || speaksForMachines(raw) {
			d.code(p.text)
		} else {
			d.quote(p.text)
		}
	}
	return d.err
}

// speaksForMachines tells whether what a message says is no prose.
func speaksForMachines(raw []byte) bool {
	words := speaker(raw)
	return strings.HasPrefix(words, "tool") || strings.HasPrefix(words, "bash")
}

func (d *markdown) end(remarks []string) error {
	if len(remarks) > 0 {
		d.printf("\n---\n\n")
	}
	for _, r := range remarks {
		d.printf("%s\n\n", plain(r))
	}
	return d.err
}

// quote writes prose, which is Markdown itself, as a quotation.
func (d *markdown) quote(text string) {
	fence := ""
	for _, line := range textLines(text) {
		mark := line[:len(line)-len(strings.TrimLeft(line, "`~"))]
		switch {
		case fence == "" && len(mark) >= 3 && strings.Count(mark, mark[:1]) == len(mark) && !strings.Contains(line[len(mark):], "`"):
			fence = mark
		case fence != "" && len(mark) >= len(fence) && mark[0] == fence[0] && strings.TrimSpace(line[len(mark):]) == "":
			fence = ""
		case fence == "":
			line = strings.NewReplacer("<", `\<`, "&", `\&`, "![", `!\[`).Replace(line)
		}
		if line == "" {
			d.printf(">\n")
			continue
		}
		d.printf("> %s\n", line)
	}
}

// code writes a text that is no prose.
func (d *markdown) code(text string) {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	d.printf("> %s\n", fence)
	for _, line := range textLines(text) {
		d.printf("> %s\n", line)
	}
	d.printf("> %s\n", fence)
}

// textLines are the lines of a text, each safe to show.
func textLines(text string) []string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = term.Escape(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// plain is a text on one line that Markdown shows as it is.
func plain(s string) string {
	var b strings.Builder
	for _, r := range term.Escape(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
