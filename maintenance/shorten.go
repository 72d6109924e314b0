package maintenance

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/maintenance/journal"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// A Shortening is a transcript with new content, and what its row says of it.
type Shortening struct {
	Path    string
	Info    fs.FileInfo // what the content was made from
	Content func(io.Writer) error
	Reason  string

	Summary bool // it ends with a summary, and counts as a compaction; else lines were cut off
	Tokens  int  // of the context then, where Known
	Known   bool

	Successor *Successor // nil: the transcript goes on itself
}

// A Successor is a transcript that goes on in place of the one that was compacted, which stays as it is (spec/transcript.md 1.11 and 1.11b).
// Content is its content then.
type Successor struct {
	ID         string // the session's new id
	Checkpoint string // the id of the checkpoint that the row gets, so that it still names the old transcript
	Before     int    // tokens in context
	Summary    string
	Leaf, Row  string // ids: of the old transcript's leaf, and of the row with the summary
}

// File is the name of the transcript.
func (s *Successor) File(now time.Time) string {
	return strings.NewReplacer(":", "-", ".", "-").Replace(now.UTC().Format("2006-01-02T15:04:05.000Z")) + "_" + s.ID + ".jsonl"
}

// Shorten plans to give the transcript of a session new content, as OpenClaw's sessions.compact does (spec/transcript.md 3.8 and 7): what
// it held stays beside it, as <file>.bak.<time>, and what the row counted of it goes. Store and transcript change together or not at all.
// The error is a *NoRow, or a *Denied: for an archived session, a transcript that is a link, lies elsewhere or is another session's too,
// and one that was written since.
func Shorten(s *Snapshot, key string, how Shortening, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	m := Mend(s, now)
	r := &s.Rows[i]
	switch {
	case r.IsSet(row.ArchivedAt):
		return nil, &Denied{key, "it is archived; restore it first"}
	case r.File == "" || realPath(r.File) != realPath(how.Path):
		return nil, &Denied{key, fmt.Sprintf("its row names the transcript %s, not %s, which was read", r.File, how.Path)}
	case !within(r.File, s.Dir):
		return nil, &Denied{key, fmt.Sprintf("its transcript, %s, lies outside of the directory of the store", r.File)}
	}
	for _, f := range r.names {
		if s.Files[f].Path != r.File && realPath(s.Files[f].Path) != realPath(r.File) {
			continue
		}
		if by, why := m.d.guard(f); by != "" && by != Locked {
			return nil, &Denied{key, "its transcript stays: " + why}
		}
		if m.d.uses()[f] > 1 || m.d.sessions()[r.ID] > 1 {
			return nil, &Denied{key, "another row of the store has the same transcript"}
		}
	}
	if !m.d.idle(i) {
		return m.Plan(), nil
	}
	switch info, err := os.Lstat(r.File); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &Denied{key, fmt.Sprintf("its transcript, %s, is no file but leads elsewhere", r.File)}
	case !os.SameFile(info, how.Info) || info.Size() != how.Info.Size() || !info.ModTime().Equal(how.Info.ModTime()):
		return nil, fmt.Errorf("%s was written while it was read: %w", r.File, journal.ErrChanged)
	}
	if how.Successor != nil {
		return how.rotate(m, r), nil
	}
	bak := r.File + ".bak." + m.d.stamp
	for t := now; m.d.taken(bak); bak = r.File + ".bak." + Stamp(t) {
		t = t.Add(time.Millisecond)
	}
	m.Create(bak, how.Info.Size(), SplicedFile(r.File), ByHand, "what the transcript held")
	m.d.files[len(m.d.files)-1].Class = jsonfile.Archive
	m.Replace(r.File, how.Info, how.Content, ByHand, how.Reason)
	m.d.files[len(m.d.files)-1].Place = true
	m.Edit(key, ByHand, how.Reason, how.changes(m.d, r)...)
	return m.Plan(), nil
}

// rotate plans the transcript that goes on, and the row that names it.
func (how *Shortening) rotate(m *Mending, r *Row) *Plan {
	next := how.Successor
	name := next.File(m.d.at)
	path := filepath.Join(filepath.Dir(r.File), name)
	m.Create(path, how.Info.Size(), how.Content, ByHand, how.Reason)
	m.d.files[len(m.d.files)-1].Class = jsonfile.Live
	m.d.holds = append(m.d.holds, held{r.File, how.Info})
	said := []byte(span.Quote(nil, path))
	if file, _ := r.Text(row.SessionFile); span.Trim(file) != "" && !filepath.IsAbs(span.Trim(file)) {
		said = span.Quote(nil, name)
	}
	changes := append(
		how.changes(m.d, r),
		row.Change{Name: row.SessionID.String(), Val: span.Quote(nil, next.ID)},
		row.Change{Name: row.SessionFile.String(), Val: said},
		row.Change{Name: row.UsageFamilySessionIDs.String(), Val: []byte(family(r, next.ID))},
		row.Change{Name: row.CompactionCheckpoints.String(), Val: how.checkpoints(m.d, r, path)},
	)
	if key, _ := r.Text(row.UsageFamilyKey); key == "" {
		changes = append(changes, row.Change{Name: row.UsageFamilyKey.String(), Val: span.Quote(nil, r.Key)})
	}
	m.Edit(r.Key, ByHand, how.Reason, changes...)
	return m.Plan()
}

// mostCheckpoints are kept in a row, the newest.
const mostCheckpoints = 25

// checkpoints are those of the row and the one of this compaction. What is no list is replaced.
func (how *Shortening) checkpoints(d *draft, r *Row, path string) []byte {
	var all [][]byte
	_, err := span.Items(r.Raw(row.CompactionCheckpoints), 0, func(item []byte) error {
		all = append(all, item)
		return nil
	})
	if err != nil {
		all = nil
	}
	next, text := how.Successor, func(s string) []byte { return span.Quote(nil, s) }
	one := fmt.Appendf(nil, `{"checkpointId":%s,"sessionKey":%s,"sessionId":%s,"createdAt":%s,"reason":"manual","tokensBefore":%d`,
		text(next.Checkpoint), text(r.Key), text(next.ID), d.stampOf(d.now), next.Before)
	if how.Known {
		one = fmt.Appendf(one, `,"tokensAfter":%d`, how.Tokens)
	}
	one = fmt.Appendf(one, `,"summary":%s,"preCompaction":{"sessionId":%s,"sessionFile":%s,"leafId":%s},"postCompaction":{"sessionId":%s,"sessionFile":%s,"leafId":%s,"entryId":%s}}`,
		text(span.Trim(next.Summary)), text(r.ID), text(r.File), text(next.Leaf), text(next.ID), text(path), text(next.Row), text(next.Row))
	all = append(all, one)
	out := []byte{'['}
	for i, c := range all[max(0, len(all)-mostCheckpoints):] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c...)
	}
	return append(out, ']')
}

// changes are those of the row.
func (how *Shortening) changes(d *draft, r *Row) []row.Change {
	changes := []row.Change{d.touched(r)}
	out := func(fields ...row.Field) {
		for _, f := range fields {
			changes = append(changes, row.Change{Name: f.String()})
		}
	}
	set := func(f row.Field, raw []byte) { changes = append(changes, row.Change{Name: f.String(), Val: raw}) }
	out(row.InputTokens, row.OutputTokens, row.ContextBudgetStatus)
	if !how.Summary {
		out(row.TotalTokens, row.TotalTokensFresh)
		return changes
	}
	out(row.CacheRead, row.CacheWrite)
	count, _ := r.Number(row.CompactionCount)
	set(row.CompactionCount, d.stampOf(max(count, 0)+1))
	if how.Known {
		set(row.TotalTokens, d.stampOf(float64(how.Tokens)))
	}
	set(row.TotalTokensFresh, fmt.Appendf(nil, "%t", how.Known))
	return changes
}

// ShortenElsewhere plans what a gateway is asked to do: which row and transcript it changes, not how.
func ShortenElsewhere(s *Snapshot, key string, summary bool, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	r := &s.Rows[i]
	info, err := os.Lstat(r.File)
	if err != nil {
		return nil, &Denied{key, "its transcript is not there"}
	}
	m := Mend(s, now)
	how := Shortening{Summary: summary}
	if info.Mode().IsRegular() && within(r.File, s.Dir) {
		m.Replace(r.File, info, nil, ByHand, "its conversation is compacted")
	}
	m.Edit(key, ByHand, "its conversation is compacted", how.changes(m.d, r)...)
	return m.Plan(), nil
}
