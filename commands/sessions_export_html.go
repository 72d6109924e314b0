package commands

import (
	"fmt"
	"html"
	"io"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/transcript"
)

// page writes a conversation as one HTML page that loads nothing and runs nothing: its own policy forbids it, and every text is
// escaped.
type page struct {
	w   io.Writer
	err error
}

func (d *page) printf(format string, args ...any) {
	if d.err == nil {
		for i, a := range args {
			args[i] = html.EscapeString(fmt.Sprint(a))
		}
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *page) begin(title string, facts [][2]string) {
	d.printf(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; color: GrayText; font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article { border-left: 3px solid #8888; padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
article.user { border-color: #2a8a3e; }
article.assistant { border-color: #1f78b4; }
header { font-weight: 600; font-size: .9rem; }
time { font-weight: 400; color: GrayText; margin-left: .6rem; }
p { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; background: #8881; padding: .5rem; margin: .3rem 0; max-height: 30rem; overflow: auto; }
details, .aside { color: GrayText; font-size: .9rem; }
img { display: block; max-width: 100%%; height: auto; margin: .4rem 0; border-radius: 4px; }
footer { border-top: 1px solid #8888; margin-top: 2rem; color: GrayText; font-size: .85rem; }
@media print { pre { max-height: none; } }
</style>
</head>
<body>
<h1>%s</h1>
<dl>
`, term.Escape(title), term.Escape(title))
	for _, f := range facts {
		d.printf("<dt>%s</dt><dd>%s</dd>\n", f[0], term.Escape(f[1]))
	}
	d.printf("</dl>\n<main>\n")
}

func (d *page) message(raw []byte, beside []part, images []picture, m store.Message, more bool) error {
	class := "other"
	switch role := transcript.Role(raw); role {
	case "user", "assistant":
		class = role
	}
	when := "unknown time"
	if m.Time != 0 {
		when = term.Time(m.Time)
	}
	if more {
		when += ", continued"
	}
	d.printf("<article class=\"%s\">\n<header>%s<time>%s</time></header>\n", class, term.Escape(speaker(raw)), when)
	for _, p := range append(parts(raw), beside...) {
		text := strings.Join(textLines(p.text), "\n")
		switch {
		case p.picture > 0 && p.picture <= len(images):
			d.picture(images[p.picture-1], p.aside)
		case p.aside != "" && p.text != "":
			d.printf("<details><summary>%s</summary><pre>%s</pre></details>\n", term.Escape(p.aside), text)
		case p.aside != "":
			d.printf("<div class=\"aside\">%s</div>\n", term.Escape(p.aside))
		case p.text == "":
		case speaksForMachines(raw):
			d.printf("<details><summary>result</summary><pre>%s</pre></details>\n", text)
		default:
			d.printf("<p>%s</p>\n", text)
		}
	}
	d.printf("</article>\n")
	return d.err
}

// picture shows an image. Its base64 is not escaped: it was decoded, and written anew.
func (d *page) picture(p picture, aside string) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, "<img alt=\"%s\" src=\"data:%s;base64,%s\">\n", html.EscapeString(term.Escape(aside)), p.kind, p.data)
	}
}

func (d *page) end(remarks []string) error {
	d.printf("</main>\n")
	if len(remarks) > 0 {
		d.printf("<footer>\n")
		for _, r := range remarks {
			d.printf("<p>%s</p>\n", term.Escape(r))
		}
		d.printf("</footer>\n")
	}
	d.printf("</body>\n</html>\n")
	return d.err
}
