package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
)

// The index of the file era, sessions.json, as a whole, and rows that are none
// (field-reports.md S4; spec/file-store.md 2, release 2026.7.35).
const (
	IndexDamaged    Code = "index-damaged"
	IndexEmpty      Code = "index-empty"
	IndexMissing    Code = "index-missing"
	IndexUnreadable Code = "index-unreadable"
	IndexLink       Code = "index-link"
	IndexNeighbour  Code = "index-neighbour"
	RowRefused      Code = "row-refused"
	RowHollow       Code = "row-hollow"
	RowNoID         Code = "row-no-id"
	RowProblem      Code = "row-problem"
)

var indexFamily = Family{
	Name: "index",
	Checks: []Check{
		{
			Code: IndexDamaged, Severity: Error, Remedy: ByHand,
			Says:    "the index of sessions does not parse",
			Matters: "OpenClaw takes it for empty, and its next write replaces it: every session is lost from the list. The transcripts are untouched.",
			Command: "stop OpenClaw before it writes; oc repair index --dry-run shows what comes back from which copy",
		},
		{
			Code: IndexEmpty, Severity: Error, Remedy: ByHand,
			Says:    "the index of sessions is empty, and transcripts lie beside it",
			Matters: "No session is listed, and a cleanup by OpenClaw takes every transcript for one that nobody needs.",
			Command: "stop OpenClaw; oc repair index --dry-run shows what comes back from which copy",
		},
		{
			Code: IndexMissing, Severity: Error, Remedy: ByHand,
			Says:    "there is no index of sessions, and transcripts lie where it should be",
			Matters: "No session is listed, and OpenClaw begins a new index that knows none of them.",
			Command: "oc repair index --dry-run shows what comes back from which copy; oc sessions --history lists the transcripts",
		},
		{
			Code: IndexUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "the index of sessions, or its directory, cannot be read",
			Matters: "Nothing is known of its sessions. OpenClaw takes an index that it may not read for empty.",
			Command: "look at the modes and owners of the file and of the directories above it",
		},
		{
			Code: IndexLink, Severity: Warn, Remedy: ByHand,
			Says:    "the index of sessions is a symbolic link",
			Matters: "OpenClaw's next write replaces the link by a file, and what it led to is left behind.",
			Command: "link the directory instead, or set session.store to where the file is",
		},
		{
			Code: IndexNeighbour, Severity: Warn, Remedy: ByHand,
			Says:    "another store has its transcripts in the same directory and cannot be read",
			Matters: "Which transcripts nobody names is not known, so that none is touched.",
			Command: "mend that store first",
		},
		{
			Code: RowRefused, Severity: Warn, Remedy: ByHand,
			Says:    "a row is one that OpenClaw does not load",
			Matters: "The session is not listed, and OpenClaw's next write leaves the row out for good.",
			Command: "correct the row in the index while OpenClaw is down",
		},
		{
			Code: RowHollow, Severity: Warn, Remedy: ByHand,
			Says:    "a row has neither a session id nor a file",
			Matters: "It has no conversation: what a reset, a deletion or a write that was lost has left. The next message begins a new one.",
			Command: "oc sessions delete KEY, if nobody needs the row",
		},
		{
			Code: RowNoID, Severity: Warn, Remedy: ByHand,
			Says:    "a row names a file and has no session id",
			Matters: "OpenClaw begins a new conversation at the next message, and the file is no longer read.",
			Command: "give the row the id that the first line of the file has, while OpenClaw is down",
		},
		{
			Code: RowProblem, Severity: Warn, Remedy: ByHand,
			Says:    "something about a row cannot be read",
			Matters: "OpenClaw may stop over it in the middle of a cleanup.",
			Command: "correct the row in the index while OpenClaw is down",
		},
	},
	store: (*exam).index,
}

func (x *exam) index(s *site) {
	if s.indexErr != nil && s.database == nil {
		x.badIndex(s)
	}
	if s.listErr != nil && s.alone {
		x.find(Finding{Code: IndexUnreadable, Subject: s.at(s.dir), Evidence: []string{"the directory cannot be listed: " + reason(s.listErr)}})
	}
	i := s.live()
	if i == nil {
		for _, r := range s.skipped() {
			x.find(Finding{Code: RowRefused, Subject: s.row(r.Key), Evidence: []string{r.Reason}})
		}
		return
	}
	at := s.at(i.Store)
	if i.Linked {
		to, err := filepath.EvalSymlinks(i.Store)
		if err != nil {
			to = "an unknown place"
		}
		x.find(Finding{Code: IndexLink, Subject: at, Evidence: []string{"it leads to " + to}})
	}
	if i.Blind != "" {
		x.find(Finding{Code: IndexNeighbour, Subject: at, Evidence: []string{i.Blind}})
	}
	if n := s.transcripts(); n > 0 && len(i.Rows) == 0 && len(i.Skipped) == 0 {
		at.Byte = 0
		x.find(Finding{Code: IndexEmpty, Subject: at, Evidence: s.leftovers(fmt.Sprintf("it has no row in its %d bytes", len(i.Text)))})
	}
	for _, r := range i.Skipped {
		x.find(Finding{Code: RowRefused, Subject: s.row(r.Key), Evidence: []string{r.Reason}})
	}
	for k := range i.Rows {
		x.rowIdentity(s, &i.Rows[k])
	}
	for _, p := range i.Problems {
		if !strings.Contains(p, "OpenClaw does not load it") { // a RowRefused
			x.find(Finding{Code: RowProblem, Subject: s.at(i.Store), Evidence: []string{p}})
		}
	}
}

// skipped are the rows of a database that OpenClaw does not load.
func (s *site) skipped() []row.Skipped {
	if s.database == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.database.Skipped), func(k store.Skipped) bool { return k.Reason == agentdb.Removed })
}

// rowIdentity tells a row that does not say which conversation it is.
func (x *exam) rowIdentity(s *site, r *maintenance.Row) {
	if r.ID != "" {
		return
	}
	named := r.IsSet(row.SessionFile)
	f := Finding{Code: RowHollow, Subject: s.row(r.Key), Evidence: []string{"it has no sessionId and no sessionFile"}}
	if named {
		f.Code, f.Evidence = RowNoID, []string{"it has a sessionFile and no sessionId"}
		f.File, f.Byte = r.File, -1
	}
	switch class := row.ClassOf(r.Key); {
	case class == row.ClassCron, isSlash(r.Key):
		// OpenClaw makes such rows: before the first run has a transcript, and
		// to route commands.
		f.Severity, f.Remedy, f.Command = Info, None, ""
		f.Consequence = "OpenClaw makes such rows itself."
	}
	x.find(f)
}

// isSlash tells whether a row only routes slash commands.
func isSlash(key string) bool { return strings.Contains(row.Rest(key), ":slash:") }

// badIndex tells what is wrong with an index that is not fit.
func (x *exam) badIndex(s *site) {
	var damage *store.Damage
	var missing *maintenance.Missing
	var alien *maintenance.NotStore
	f := Finding{Subject: s.at(s.Index)}
	switch err := s.indexErr; {
	case errors.As(err, &damage) && s.empty():
		f.Code, f.Byte, f.Evidence = IndexEmpty, 0, s.leftovers("it has 0 bytes")
		if s.transcripts() == 0 {
			f.Consequence = "OpenClaw takes it for a store without sessions, and begins anew."
		}
	case errors.As(err, &damage):
		f.Code, f.Byte = IndexDamaged, damage.Offset
		f.Evidence = s.leftovers(fmt.Sprintf("of its %d bytes those up to %d are sound: %s", damage.Size, damage.Offset, damage.Reason))
		f.Line = lineOf(s.Index, damage.Offset)
	case errors.As(err, &missing):
		f.Code, f.Evidence = IndexMissing, s.leftovers(missing.Error())
	case errors.As(err, &alien):
		f.Code, f.Evidence = IndexDamaged, []string{alien.Error()}
	case errors.Is(err, journal.ErrChanged): // busy, and nothing is wrong with that
		f.Code, f.Evidence = IndexUnreadable, []string{"it is written again and again while it is read"}
		f.Severity, f.Remedy, f.Command = Info, None, ""
		f.Consequence = "Somebody is at work; its sessions were not looked at this time."
	default:
		f.Code, f.Evidence = IndexUnreadable, []string{reason(err)}
	}
	x.find(f)
}

// empty tells whether the index is a file of no bytes.
func (s *site) empty() bool {
	info, err := os.Stat(s.Index)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// transcripts counts the transcripts in the directory.
func (s *site) transcripts() (n int) {
	for i := range s.files {
		if f := &s.files[i]; f.Class == jsonfile.Live && f.regular() {
			n++
		}
	}
	return n
}

// leftovers is what is left to make an index of, behind a first fact.
func (s *site) leftovers(first string) []string {
	out := []string{first}
	if n := s.transcripts(); n > 0 {
		out = append(out, fmt.Sprintf("%d transcripts lie beside it", n))
	}
	base, looked := filepath.Base(s.Index), 0
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		tail, ok := strings.CutPrefix(f.base, base+".")
		if !ok || !f.regular() || f.Class == jsonfile.Lock || !strings.HasSuffix(tail, ".tmp") && !strings.HasPrefix(tail, "bak") && !strings.HasPrefix(tail, "corrupt-") {
			continue
		}
		if looked++; looked > 5 {
			out = append(out, "and further copies")
			break
		}
		if c, err := jsonfile.Read(f.Path); err == nil {
			out = append(out, fmt.Sprintf("%s has %d rows, written %s", f.base, len(c.Entries), f.ModTime.UTC().Format("2006-01-02 15:04:05 UTC")))
		} else {
			out = append(out, f.base+" cannot be read whole either")
		}
	}
	return out
}

// lineOf is the line of a byte; 0 where it cannot be known.
func lineOf(path string, offset int64) int {
	f, err := openFile(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	line, buf := 1, make([]byte, 64<<10)
	for offset > 0 {
		n, err := f.Read(buf[:min(offset, int64(len(buf)))])
		for _, c := range buf[:n] {
			if c == '\n' {
				line++
			}
		}
		if offset -= int64(n); err != nil {
			break
		}
	}
	return line
}

// reason is an error without the path that the finding names already.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Op + ": " + p.Err.Error()
	}
	return err.Error()
}
