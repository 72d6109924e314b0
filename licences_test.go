package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY.md anew")

// permissive are the licences that a dependency may have: the sentence that only they have, and their name.
var permissive = []struct{ name, says string }{
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "Redistributions of source code must retain the"},
	{"Apache-2.0", "Apache License Version 2.0"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"public domain", "The author disclaims copyright to this source code"},
	{"public domain", "SQLite is in the public domain"},
}

// demanding are licences that ask something of whoever links what is under them, or allow less than all of it.
var demanding = regexp.MustCompile(`(?i)GNU (Lesser |Affero |Library )?General Public License,? (as published|v|version)|Mozilla Public License,? (v|version)|Eclipse Public License|Server Side Public License|Business Source License|Commons Clause|for non-?commercial use only`)

// known are files that name such a licence and do no harm.
var known = map[string]string{
	"modernc.org/sqlite/LICENSE-3RD-PARTY.md": "it also lists what its own tests use: golang-lru, MPL-2.0, which is not linked",
	"pgregory.net/rapid/LICENSE":              "MPL-2.0, for tests alone: no binary has it",
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)`)

// licence names what a module is under, from the texts in its folder, which it gives back; an error when that is not known to be permissive.
func licence(path, dir string) (names []string, texts []string, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range all {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), "-LOGO") { // of a picture, which no binary has
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		text := strings.Join(strings.Fields(string(raw)), " ")
		if found := demanding.FindString(text); found != "" && known[path+"/"+e.Name()] == "" {
			return nil, nil, fmt.Errorf("%s mentions the %s", e.Name(), found)
		}
		for _, p := range permissive {
			if strings.Contains(text, p.says) && !slices.Contains(names, p.name) {
				names = append(names, p.name)
			}
		}
		texts = append(texts, fmt.Sprintf("%s:\n\n%s", e.Name(), strings.ReplaceAll(strings.TrimSpace(string(raw)), "\r\n", "\n")))
	}
	if len(names) == 0 && path == "pgregory.net/rapid" {
		names = []string{"MPL-2.0"} // see known
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("none of its %d files says one that is known to be permissive", len(texts))
	}
	return names, texts, nil
}

type module struct{ path, version, dir string }

// modules are those that packages of ours need on a system.
func modules(t *testing.T, goos string, args ...string) map[string]module {
	t.Helper()
	c := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}"}, args...)...)
	c.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaint.String())
	}
	found := map[string]module{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[0] != "oc" {
			found[f[0]] = module{f[0], f[1], f[2]}
		}
	}
	return found
}

// Every module that is linked into oc, on any system, and every one that its tests need, has a licence that allows it; THIRD_PARTY.md has the
// texts of those that are linked, as they ask for.
func TestLicences(t *testing.T) {
	linked := map[string]module{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		maps.Copy(linked, modules(t, goos, "."))
	}
	if len(linked) < 10 {
		t.Fatalf("only %d modules are linked", len(linked))
	}
	var list, texts strings.Builder
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		m := linked[path]
		names, all, err := licence(m.path, m.dir)
		if err != nil {
			t.Errorf("%s %s: %v", m.path, m.version, err)
			continue
		}
		fmt.Fprintf(&list, "| %s | %s | %s |\n", m.path, m.version, strings.Join(names, ", "))
		fmt.Fprintf(&texts, "\n## %s\n", m.path)
		for _, text := range all {
			name, body, _ := strings.Cut(text, "\n")
			fmt.Fprintf(&texts, "\n%s\n\n~~~~text\n%s\n~~~~\n", name, strings.TrimSpace(body))
		}
	}
	if m, ok := linked["pgregory.net/rapid"]; ok {
		t.Errorf("%s %s is linked, and is under MPL-2.0", m.path, m.version)
	}
	if m, ok := linked["github.com/hashicorp/golang-lru/v2"]; ok {
		t.Errorf("%s %s is linked, and is under MPL-2.0", m.path, m.version)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if names, _, err := licence("go", strings.TrimSpace(string(goroot))); err != nil || !slices.Equal(names, []string{"BSD"}) {
		t.Errorf("Go itself: %v, %v", names, err)
	}
	for path, m := range modules(t, "linux", "-test", "./...") {
		if _, ok := linked[path]; !ok {
			if names, _, err := licence(m.path, m.dir); err != nil {
				t.Errorf("for tests: %s %s: %v", m.path, m.version, err)
			} else {
				t.Logf("for tests: %s %s: %s", m.path, m.version, strings.Join(names, ", "))
			}
		}
	}
	want := "# What oc is made of\n\nThe modules that are linked into `oc` on one system or another, and the texts of their licences. Go's own library is under the BSD licence of the Go authors.\nWritten by `go test . -run Licences -update`, and held by that test.\n\n| module | version | licence |\n|---|---|---|\n" +
		list.String() + texts.String()
	const file = "THIRD_PARTY.md"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not what is linked (%v); write it with: go test . -run Licences -update", file, err)
	}
	t.Logf("%d modules are linked", len(linked))
}

// The check can fail.
func TestLicencesRefused(t *testing.T) {
	for name, text := range map[string]string{
		"none":    "All rights reserved.",
		"demands": "Permission is hereby granted, free of charge, to any person obtaining a copy, or under the GNU General Public License, version 3.",
		"weak":    "Mozilla Public License Version 2.0",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if names, _, err := licence("m", dir); err == nil {
			t.Errorf("%s: taken for %v", name, names)
		}
	}
	if names, _, err := licence("m", t.TempDir()); err == nil {
		t.Errorf("no file: taken for %v", names)
	}
}
