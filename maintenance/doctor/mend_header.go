package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/config"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// headers gives a transcript the header that it lacks, or the id that its
// header lacks: that of the session whose file it is. OpenClaw would give it a
// new one, which no row knows, and keep a copy of the file (release 2026.7.35,
// spec/transcript.md 1.2, 1.3 and 1.8).
func (c *cure) headers(found []transcript.Finding, _ *transcript.Tree) (edits []edit, err error) {
	wanted := transcript.Code("")
	for _, f := range found {
		if (f.Code == transcript.NoHeader || f.Code == transcript.BadHeader) && c.wants[f.Code] {
			wanted = f.Code
			break
		}
	}
	if wanted == "" {
		return nil, nil
	}
	id, err := c.session()
	if err != nil {
		c.decline(wanted, "", err.Error())
		return nil, nil
	}
	named, nameless, begin, start := 0, 0, "", int64(-1)
	var head *transcript.Row
	err = c.each(func(r *transcript.Row) error {
		if start < 0 {
			start = r.Offset
		}
		switch {
		case r.Blank || r.Err != nil:
		case r.Kind == transcript.Header:
			if head == nil {
				head = &transcript.Row{Place: r.Place, Break: r.Break}
				head.Raw = slices.Clone(r.Raw)
			}
		case r.Kind == transcript.Opaque:
		default:
			if r.ID != nil {
				named++
			} else {
				nameless++
			}
			if at, ok := r.Time(); ok && begin == "" {
				begin = time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	version := "3"
	if named == 0 && nameless > 0 {
		version = "1" // OpenClaw gives such entries their ids when it opens the file
	}
	val := []byte(span.Quote(nil, id))
	if head != nil {
		changes := []row.Change{{Name: "id", Val: val}}
		if span.Member(head.Raw, "version") == nil {
			changes = append(changes, row.Change{Name: "version", Val: []byte(version)})
		}
		return []edit{{at: head.Place, brk: head.Break, raw: slices.Clone(row.Edit(head.Raw, changes...)), says: fmt.Sprintf("the header in line %d gets the id %s", head.Line, id)}}, nil
	}
	if begin == "" {
		begin = c.now.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	line := fmt.Appendf(nil, `{"type":"session","version":%s,"id":%s,"timestamp":%s,"cwd":%s}`+"\n", version, val, span.Quote(nil, begin), span.Quote(nil, c.cwd))
	return []edit{{at: transcript.Place{Offset: start}, first: true, behind: line, says: "a header with the id " + id + " goes before all else"}}, nil
}

// sessionID is the id of the session that a transcript is of: that of the row
// that names it, else the one in its name.
func sessionID(s *site, path string) (string, error) {
	if s.index != nil {
		if x, ok := s.index.Row(s.keyOf(path)); ok && x.ID != "" {
			return x.ID, nil
		}
	}
	id := jsonfile.SessionOf(strings.TrimSuffix(filepath.Base(path), ".jsonl"))
	if !row.IsTranscriptID(id) {
		return "", errors.New("no row names it, and its name holds no session id")
	}
	return id, nil
}

// workspace is the directory that an agent works in: what OpenClaw puts into
// the headers of its transcripts.
func workspace(c *config.Config, agent string) string {
	if a, ok := c.Agent(agent); ok {
		if dir, ok := a.Entry.At("workspace").Str(); ok && dir != "" {
			return dir
		}
	}
	if n, ok := c.Value("agents", "defaults", "workspace"); ok {
		if dir, ok := n.Str(); ok && dir != "" {
			return dir
		}
	}
	return filepath.Join(c.StateDir, "workspace")
}
