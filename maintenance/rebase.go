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
func Rebase(s *Snapshot, from, to string, now time.Time) *Plan {
	m := Mend(s, now)
	from, to = filepath.Clean(from), filepath.Clean(to)
	for i := range s.Rows {
		r := &s.Rows[i]
		val, n := rebase(r.Val, from, to)
		if n == 0 {
			continue
		}
		if why := m.Busy(r); why != "" {
			m.Note("the row %s stays as it is: %s", r.Key, why)
			continue
		}
		if text, _ := r.Text(row.SessionFile); follows(span.Trim(text), from) {
			path := filepath.Join(to, strings.TrimPrefix(span.Trim(text), from))
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
		if out, n := rebase(text, from, to); n > 0 {
			m.Replace(f.Path, f.Info, func(w io.Writer) error { _, err := w.Write(out); return err }, Rebased, "it points below "+from)
		}
	}
	return m.Plan()
}

// follows tells whether a path is a directory or lies below it.
func follows(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || strings.HasSuffix(dir, string(filepath.Separator)))
}

// rebase writes a valid JSON value with every text that is a path below from
// below to instead, and counts them. Names of members stay.
func rebase(val []byte, from, to string) (out []byte, n int) {
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
		if ok && !name && len(text) < 4096 && follows(text, from) && !strings.ContainsAny(text, "\n\r") {
			out = span.Quote(out, to+strings.TrimPrefix(text, from))
			n++
		} else {
			out = append(out, val[start:end]...)
		}
		at = end
	}
	return out, n
}
