package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rooms of the house, outermost first. A room may import what stands in a later row, never its own row or an earlier one.
var rooms = [][]string{
	{"."},
	{"commands"},
	{"maintenance/doctor"},
	{"maintenance"},
	{"gateway"},
	{"awareness"},
	{"store"},
	{"store/jsonfile", "store/agentdb", "store/lifecycle"},
	{"store/row"},
	{"transcript/compaction"},
	{"transcript"},
	{"transcript/visible", "transcript/provider", "config"},
	{"config/json5"},
	{"maintenance/journal"},
	{"store/lock"},
	{"store/sqlfile"},
	{"store/span"},
	{"store/lazy"},
}

// Two rooms stand apart: the process hands itself to commands and knows nothing else; commands/term knows no other room.
var only = map[string][]string{
	".":             {"commands"},
	"commands/term": {},
}

// Rooms that one other room alone may enter.
var inner = map[string]string{
	"commands/term": "commands",
	"config/json5":  "config",
}

func TestArrows(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		room := filepath.ToSlash(filepath.Dir(path))
		if !planned(room) {
			t.Errorf("%s: the room %s is not in the plan; add it to rooms, or move the file", path, room)
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			target, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if why := forbidden(room, target, strings.HasSuffix(path, "_test.go")); why != "" {
				t.Errorf("%s imports %s: %s", path, target, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d Go files were looked at", files)
	}
}

// forbidden says why a room may not import a package; "" when it may.
func forbidden(from, target string, test bool) string {
	to, ours := strings.CutPrefix(target, "oc/")
	if !ours || from == to {
		return ""
	}
	if inFixtures(from) {
		return "" // programs that make what all rooms read, and measure all of them
	}
	if to == "fixtures" {
		if test {
			return ""
		}
		return "fixtures is for tests"
	}
	if allowed, narrow := only[from]; narrow {
		if slices.Contains(allowed, to) {
			return ""
		}
		return "it may import only " + strings.Join(allowed, ", ")
	}
	if owner := inner[to]; owner != "" {
		if from == owner {
			return ""
		}
		return to + " is for " + owner + " alone"
	}
	switch below := level(to); {
	case below < 0:
		return "the room " + to + " is not in the plan"
	case below <= level(from):
		return "arrows run only to the right"
	}
	return ""
}

func planned(room string) bool {
	return inFixtures(room) || room == "commands/term" || level(room) >= 0
}

func inFixtures(room string) bool { return room == "fixtures" || strings.HasPrefix(room, "fixtures/") }

func level(room string) int {
	return slices.IndexFunc(rooms, func(row []string) bool { return slices.Contains(row, room) })
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, target string
		test, ok     bool
	}{
		{".", "oc/commands", false, true},
		{".", "oc/store", false, false},
		{"commands", "oc/commands/term", false, true},
		{"commands", "oc/store/span", false, true},
		{"store", "oc/commands/term", false, false},
		{"store", "oc/commands", false, false},
		{"commands/term", "oc/store/span", false, false},
		{"store/jsonfile", "oc/store/agentdb", false, false},
		{"store/jsonfile", "oc/store", true, false},
		{"store", "oc/store/jsonfile", false, true},
		{"config", "oc/maintenance/journal", false, true},
		{"maintenance/journal", "oc/store/row", false, false},
		{"store/span", "oc/store/sqlfile", false, false},
		{"store", "oc/fixtures", true, true},
		{"store", "oc/fixtures", false, false},
		{"fixtures", "oc/commands", false, true},
		{"fixtures/bench", "oc/fixtures", false, true},
		{"store", "oc/util", false, false},
		{"transcript", "oc/config/json5", false, false},
		{"config", "oc/config/json5", false, true},
		{"store", "github.com/tidwall/gjson", false, true},
	} {
		if why := forbidden(c.from, c.target, c.test); (why == "") != c.ok {
			t.Errorf("%s imports %s (test %t): %q", c.from, c.target, c.test, why)
		}
	}
	if planned("util") || !planned("store/row") {
		t.Error("util is no room, store/row is one")
	}
}
