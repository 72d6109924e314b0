package maintenance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/store/row"
	"oc/store/span"
)

// Rebased is the rule of paths that follow a directory to its new place.
const Rebased Rule = "rebased"

// Rebase plans to name files and directories at their new place, after the
// directory from was moved to to: in every row of the store, and in the
// pointers to trajectories beside it (field-reports.md S6). A path is a text
// that is from, or begins with it and a separator. Of each row and pointer all
// other bytes stay. A row stays as it is while somebody works on it, and while
// there is no file at the new place of its transcript: the plan says so among
// its problems.
//
// from may be a directory of another system, as [Elsewhere] tells: one of
// Windows is found in whatever case and with either separator.
func Rebase(s *Snapshot, from, to string, now time.Time) *Plan {
	m := Mend(s, now)
	if to = filepath.Clean(to); !Elsewhere(from) {
		from = filepath.Clean(from)
	}
	d := moved{from, to}
	for i := range s.Rows {
		r := &s.Rows[i]
		val, n := d.rebase(r.Val)
		if n == 0 {
			continue
		}
		if why := m.Busy(r); why != "" {
			m.Note("the row %s stays as it is: %s", r.Key, why)
			continue
		}
		text, _ := r.Text(row.SessionFile)
		if path, ok := d.place(span.Trim(text)); ok {
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				m.Note("the row %s stays as it is: there is no file %s", r.Key, path)
				continue
			}
		}
		m.Put(r.Key, val, Rebased, fmt.Sprintf("%d %s of it %s below %s", n, wordFor(n, "path", "paths"), wordFor(n, "lies", "lie"), from))
	}
	for i := range s.Files {
		f := &s.Files[i]
		if !f.direct || f.Held != "" || f.Size > 1<<16 || !strings.HasSuffix(f.Base, ".trajectory-path.json") {
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err != nil || span.Valid(text) != nil {
			continue
		}
		if out, n := d.rebase(text); n > 0 {
			m.Replace(f.Path, f.Info, func(w io.Writer) error { _, err := w.Write(out); return err }, Rebased, "it points below "+from)
		}
	}
	return m.Plan()
}

// ofWindows tells whether a path begins with a drive, or with the name of a host, as Windows writes it.
func ofWindows(path string) bool {
	drive := len(path) >= 2 && path[1] == ':' && (path[0]|0x20 >= 'a' && path[0]|0x20 <= 'z') && (len(path) == 2 || path[2] == '\\' || path[2] == '/')
	return drive || strings.HasPrefix(path, `\\`)
}

// Elsewhere tells whether an absolute path is one of the other kind of system, so that nothing lies there on this machine: of Windows where
// this is none, else of all others.
func Elsewhere(path string) bool {
	if filepath.Separator == '\\' {
		return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//")
	}
	return ofWindows(path)
}

// moved is a directory, as paths named it and where it is by now.
type moved struct{ from, to string }

// place is where a path leads by now; false where it is neither the directory nor below it.
func (d moved) place(path string) (string, bool) {
	from, separators := d.from, "/"
	if ofWindows(from) {
		separators = `\/`
	}
	from = strings.TrimRight(from, separators)
	if len(path) < len(from) || !same(path[:len(from)], from, separators) {
		return "", false
	}
	rest := path[len(from):]
	switch {
	case rest == "":
		return d.to, true
	case !strings.ContainsRune(separators, rune(rest[0])):
		return "", false
	case ofWindows(d.from) && !ofWindows(d.to):
		rest = strings.ReplaceAll(rest, `\`, "/")
	case !ofWindows(d.from) && ofWindows(d.to):
		rest = strings.ReplaceAll(rest, "/", `\`)
	}
	return strings.TrimRight(d.to, separators) + rest, true
}

// same tells whether two paths of equal length mean the same: with two separators they are of Windows, which minds neither them nor case.
func same(a, b, separators string) bool {
	if len(separators) == 1 {
		return a == b
	}
	return strings.EqualFold(strings.ReplaceAll(a, "/", `\`), strings.ReplaceAll(b, "/", `\`))
}

// rebase writes a valid JSON value with every text that is a path of the
// directory as one of its new place, and counts them. Names of members stay.
func (d moved) rebase(val []byte) (out []byte, n int) {
	for at := 0; at < len(val); {
		quote := bytes.IndexByte(val[at:], '"')
		if quote < 0 {
			return append(out, val[at:]...), n
		}
		start := at + quote
		end, err := span.Skip(val, start)
		if err != nil {
			return val, 0
		}
		out = append(out, val[at:start]...)
		text, ok := span.Text(val[start:end])
		name := bytes.HasPrefix(bytes.TrimLeft(val[end:], " \t\r\n"), []byte(":"))
		if to, follows := d.place(text); ok && follows && !name && len(text) < 4096 && !strings.ContainsAny(text, "\n\r") {
			out = span.Quote(out, to)
			n++
		} else {
			out = append(out, val[start:end]...)
		}
		at = end
	}
	return out, n
}
