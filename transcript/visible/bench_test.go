package visible

import (
	"strings"
	"testing"
)

// texts are what redaction meets: talk, which has the words that rules look
// for; the output of programs; JSON; a log with credentials in it.
func texts() map[string]string {
	token := "ghp" + "_" + strings.Repeat("aB3d", 9) // made here: no file holds a credential
	times := func(s string) string { return strings.Repeat(s, 256<<10/len(s)+1) }
	return map[string]string{
		"plain": times("The lamp of the lighthouse was lit again, and nobody knew by whom. They went up the stairs one by one;\nthe door was open.\n"),
		"talk":  times("The key to a good answer is to pass the test; see https://example.com/a?b=c and `code`. Each token costs; the author's card is 12: 30.\n"),
		"code":  times("\tif err := session.Write(ctx, \"config\", value); err != nil {\n\t\treturn fmt.Errorf(\"write %s: %w\", path, err) // a key: none\n\t}\n"),
		"json":  times(`{"type":"message","id":"0a1b2c3d","parentId":"4e5f6a7b","usage":{"input":120,"output":44,"totalTokens":164},"path":"/srv/app/main.go","sessionKey":"agent:main:main"},` + "\n"),
		"log":   times("2026-01-02T03:04:05Z INFO  request id=7f3a method=GET url=https://api.example.com/v1/items?page=2&token=" + token + " auth: Bearer " + token + " status=200\n"),
	}
}

// The promise is 40 MB a second, of a text that has none of the words and of one that is full of them.
func BenchmarkRedact(b *testing.B) {
	patterns := Redactor{Values: []string{"a secret of the configuration"}}
	for _, p := range []string{`/ticket-(\d+)/g`, `internal-[a-z]{8}`} {
		re, err := Pattern(p)
		if err != nil {
			b.Fatal(err)
		}
		patterns.Patterns = append(patterns.Patterns, re)
	}
	all := texts()
	for _, name := range []string{"plain", "talk", "code", "json", "log"} {
		s := all[name]
		for _, way := range []struct {
			name string
			f    func(string) string
		}{{"redact", Redact}, {"show", Show}, {"patterns", patterns.Show}} {
			b.Run(name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					way.f(s)
				}
			})
		}
	}
}
