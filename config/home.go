package config

import (
	"path/filepath"
	"regexp"
	"strings"
)

// trim cuts white space as JavaScript does, which counts the byte order mark and every Unicode space.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		switch {
		case r >= '\t' && r <= '\r', r == ' ', r == 0xA0, r == 0xFEFF, r == 0x1680, r >= 0x2000 && r <= 0x200A:
			return true
		}
		return r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000
	})
}

// lower is JavaScript's toLowerCase, which keeps the dot of a capital dotted I.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307")) }

// set returns the trimmed value of a variable that names a home; the words that a careless script leaves count as nothing.
func (l *Location) set(name string) string {
	v := trim(l.Getenv(name))
	if v == "undefined" || v == "null" {
		return ""
	}
	return v
}

var termux = regexp.MustCompile(`(^|/)com\.termux/files/usr/?$`)

// osHome is the home that ~ in OPENCLAW_HOME stands for; empty if nothing names one.
func (l *Location) osHome(o Options) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if v := l.set(name); v != "" {
			return v
		}
	}
	prefix := l.set("PREFIX")
	if l.set("ANDROID_DATA") != "" && termux.MatchString(strings.ReplaceAll(prefix, `\`, "/")) {
		return filepath.Join(l.absolute(prefix), "..", "home")
	}
	return trim(o.Home)
}

// home is the directory that .openclaw stands in (spec/file-store.md 1.1).
func (l *Location) home(o Options) string {
	raw := l.set("OPENCLAW_HOME")
	if raw == "" {
		raw = l.osHome(o)
	} else if startsWithTilde(raw) {
		if home := l.osHome(o); home != "" {
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
