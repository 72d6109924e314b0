package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/threats.md names is there, and every threat names one.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(raw, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	threats := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| threat") || strings.HasPrefix(line, "|---") {
			continue
		}
		threats++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("nothing holds this: %s", line)
		}
		for _, m := range tests {
			if !there[m[1]] {
				t.Errorf("there is no %s: %s", m[1], line)
			}
		}
	}
	if threats < 20 {
		t.Errorf("only %d threats are told", threats)
	}
}
