package config

import (
	"path/filepath"
	"strings"

	"oc/store/lazy"
	"oc/store/span"
)

// set returns the trimmed value of a variable that names a home; the words that a careless script leaves count as nothing.
func (l *Location) set(name string) string {
	v := span.Trim(l.Getenv(name))
	if v == "undefined" || v == "null" {
		return ""
	}
	return v
}

var termux = lazy.Regexp(`(^|/)com\.termux/files/usr/?$`)

// osHome is the home that ~ in OPENCLAW_HOME stands for; empty if nothing names one.
func (l *Location) osHome() string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if v := l.set(name); v != "" {
			return v
		}
	}
	prefix := l.set("PREFIX")
	if l.set("ANDROID_DATA") != "" && termux().MatchString(strings.ReplaceAll(prefix, `\`, "/")) {
		return filepath.Join(l.absolute(prefix), "..", "home")
	}
	return span.Trim(l.system)
}

// UserHome is the home of the user, whatever OPENCLAW_HOME says: where other programs keep what is theirs.
func (l *Location) UserHome() string { return l.absolute(l.osHome()) }

// home is the directory that .openclaw stands in (spec/file-store.md 1.1).
func (l *Location) home() string {
	raw := l.set("OPENCLAW_HOME")
	if raw == "" {
		raw = l.osHome()
	} else if startsWithTilde(raw) {
		if home := l.osHome(); home != "" {
			raw = home + raw[1:]
		} else {
			raw = ""
		}
	}
	return l.absolute(raw)
}

// absolute resolves a path from the working directory.
func (l *Location) absolute(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(l.Cwd, p)
}

// resolve makes a path that a person wrote absolute: a leading ~ is the home, ~user is not expanded.
func (l *Location) resolve(p string) string {
	if startsWithTilde(p) {
		p = l.Home + p[1:]
	}
	return l.absolute(p)
}

func startsWithTilde(p string) bool {
	return p == "~" || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, `~\`)
}
