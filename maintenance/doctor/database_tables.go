package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/lazy"
	"oc/store/row"
	"oc/store/span"
)

// What the tables of a database say of each other, and of the files beside it
// (spec/sqlite-store.md 2.2 to 2.7, release 2026.9.6). The codes are those of
// agentdb's faults.
const EarlierWindows Code = "windows-earlier"

// refusesAll is what a row means over which OpenClaw's listing stops.
const refusesAll = "From 2026.9.6 on OpenClaw then refuses to list any session of the agent, and its gateway may not start."

var tableFamily = Family{
	Name: "tables",
	Checks: []Check{
		{
			Code: Code(agentdb.RowDoubted), Severity: Error, Remedy: ByHand,
			Says:    "a sound row of a database is marked as unsound",
			Matters: refusesAll,
			Command: "openclaw doctor --fix of the newer release, with the gateway down",
		},
		{
			Code: Code(agentdb.RowUnverified), Severity: Info, Remedy: None,
			Says:    "a row of a database was not looked at by OpenClaw since it was written",
			Matters: "OpenClaw does that when it opens the database the next time.",
		},
		{
			Code: Code(agentdb.LineageDiffers), Severity: Error, Remedy: ByHand,
			Says:    "the columns of a row that name its parents are not what its JSON says",
			Matters: refusesAll,
			Command: "openclaw doctor --fix of the newer release, with the gateway down",
		},
		{
			Code: Code(agentdb.ColumnsDiffer), Severity: Warn, Remedy: ByHand,
			Says:    "the columns of a row are not what its JSON says",
			Matters: "OpenClaw filters and sorts by the columns and shows the JSON: a list leaves the session out, or cleanup takes it for another.",
			Command: "the session's next message sets the columns right",
		},
		{
			Code: Code(agentdb.KeyNotCanonical), Severity: Error, Remedy: ByHand,
			Says:    "a session is stored under a key that OpenClaw would not give it",
			Matters: refusesAll,
			Command: "openclaw doctor --fix of the newer release, with the gateway down, moves it to its key",
		},
		{
			Code: Code(agentdb.NoWindow), Severity: Warn, Remedy: ByHand,
			Says:    "a session's conversation is not in its database",
			Matters: "The session cannot be read; the next message may fail. oc sessions trace KEY looks where its conversation went.",
		},
		{
			Code: Code(agentdb.NoNode), Severity: Warn, Remedy: ByHand,
			Says:    "a database holds a conversation whose session is gone",
			Matters: "It is history that no session names, and takes room. OpenClaw neither shows nor removes it.",
			Command: "oc sessions history ID reads it, oc sessions export ID takes it out",
		},
		{
			Code: Code(agentdb.EmptyWindow), Severity: Info, Remedy: None,
			Says:    "a session's conversation in a database is empty",
			Matters: "It was begun and nothing was said, or its transcript was missing when it was imported.",
		},
		{
			Code: Code(agentdb.OrphanIndex), Severity: Info, Remedy: None,
			Says:    "a database's indexes have rows of a conversation that has no event",
			Matters: "They take room and can be found by a search that then shows nothing. OpenClaw takes them out in its own time.",
		},
		{
			Code: Code(agentdb.BrokenIndex), Severity: Warn, Remedy: ByHand,
			Says:    "what a database has worked out of a conversation contradicts its events",
			Matters: "OpenClaw reads histories by it and takes it for true: messages are left out, or those of another branch are shown. oc reads the events themselves then.",
			Command: "the session's next message may set it right; nothing is lost",
		},
		{
			Code: Code(agentdb.DamagedArchive), Severity: Error, Remedy: ByHand,
			Says:    "an archived conversation in a database is not what was archived",
			Matters: "What was deleted or reset cannot be restored from it.",
			Command: "restore it from a backup, or from the file of the same name beside the database",
		},
		{
			Code: Code(agentdb.WaitingArchive), Severity: Info, Remedy: None,
			Says:    "an archived conversation is in the database and not in its file yet",
			Matters: "OpenClaw writes the file with the next deletion; oc reads it from the database.",
		},
		{
			Code: Code(agentdb.LostArchive), Severity: Info, Remedy: None,
			Says:    "the file of an archived conversation is gone; the database still has it",
			Matters: "Nothing is lost: oc reads it from the database.",
		},
		{
			Code: Code(agentdb.LostCold), Severity: Error, Remedy: ByHand,
			Says:    "the cold archive of a conversation, its only copy, is not there or not whole",
			Matters: "The conversation cannot be read.",
			Command: "put the file back from a backup, into the folder cold beside the transcripts",
		},
		{
			Code: EarlierWindows, Severity: Info, Remedy: None,
			Says:    "a database holds earlier conversations of sessions",
			Matters: "Resets and expiries left them. They count against the disk budget, which takes them when there is no room.",
		},
	},
	store: (*exam).tables,
}

func (x *exam) tables(s *site) {
	if s.database == nil {
		return
	}
	var flaws []agentdb.Flaw
	var windows []agentdb.Window
	err := agentdb.Read(x.ctx, s.database.Path, func(db *agentdb.DB) (err error) {
		if flaws, err = db.Audit(x.Deep); err == nil {
			windows, err = db.Transcripts()
		}
		return err
	})
	if err != nil {
		if x.ctx.Err() == nil {
			x.find(Finding{Code: DatabaseUnchecked, Subject: s.at(s.database.Path), Evidence: []string{err.Error()}})
		}
		return
	}
	strict := s.database.Schema.UserVersion >= 21 // what was called pending before then stopped nothing
	for _, f := range flaws {
		out := Finding{Code: Code(f.Fault), Subject: s.at(f.File), Evidence: f.Said}
		out.Key, out.ID = f.Key, f.ID
		if f.Fault == agentdb.NoNode {
			out.Command = fmt.Sprintf("oc sessions history %s reads it, oc sessions export %s takes it out", f.ID, f.ID)
		}
		if !strict && x.checks[out.Code].Severity == Error && x.checks[out.Code].Matters == refusesAll {
			out.Severity = Warn
		}
		x.find(out)
	}
	x.earlier(s, windows)
}

// earlier counts the conversations that no row refers to any more
// (spec/sqlite-store.md 2.6).
func (x *exam) earlier(s *site, windows []agentdb.Window) {
	if !x.looksFor(EarlierWindows) {
		return
	}
	needed := map[string]bool{} // session ids
	kept := map[string]bool{}   // keys of which all is kept
	for i := range s.database.Rows {
		r := &s.database.Rows[i]
		if r.Archived() || r.Pinned() {
			kept[r.Key] = true
		}
		for _, id := range refersTo(&r.Entry) {
			needed[id] = true
		}
	}
	n, keys := 0, map[string]bool{}
	for _, w := range windows {
		if w.Key != "" && !w.Current && !needed[w.SessionID] && !kept[w.Key] {
			n++
			keys[w.Key] = true
		}
	}
	if n > 0 {
		x.find(Finding{Code: EarlierWindows, Subject: s.at(s.database.Path), Evidence: []string{fmt.Sprintf("earlier conversations: %d, of sessions: %d; oc sessions history KEY --archives reads them", n, len(keys))}})
	}
}

// refersTo are the session ids that a row names.
func refersTo(e *row.Entry) (ids []string) {
	for _, f := range []row.Field{row.SessionID, row.PreviousSessionID} {
		if id, ok := e.Text(f); ok {
			ids = append(ids, id)
		}
	}
	ids = append(ids, e.Texts(row.UsageFamilySessionIDs)...)
	_, _ = span.Items(e.Raw(row.CompactionCheckpoints), 0, func(item []byte) error {
		for _, at := range [][]string{{"sessionId"}, {"preCompaction", "sessionId"}, {"postCompaction", "sessionId"}} {
			if id, ok := span.Text(span.Path(item, at...)); ok {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids
}

var promptName = lazy.Regexp(`^[0-9a-f]{64}\.txt$`)

// unlinkedBeside tells of files beside a database that no row of it names, nor
// one of an index that is there too: checkpoints, trajectories and skill
// prompts. Transcripts are told as leftovers. With a row that cannot be read
// nobody knows what it names: then nothing is told.
func (x *exam) unlinkedBeside(s *site) {
	if s.database == nil || len(s.skipped()) > 0 || !x.looksFor(UnlinkedCheckpoint, UnlinkedSidecar, UnlinkedPrompt) {
		return
	}
	var l *agentdb.Listing
	var windows []agentdb.Window
	err := agentdb.Read(x.ctx, s.database.Path, func(db *agentdb.DB) (err error) {
		if l, err = db.List(agentdb.Options{Whole: true}); err == nil {
			windows, err = db.Transcripts()
		}
		return err
	})
	if err != nil {
		return // told by another family
	}
	ids, prompts := map[string]bool{}, map[string]bool{}
	checkpoints := []byte{}
	for _, w := range windows {
		ids[strings.ToLower(w.SessionID)] = true
	}
	for i := range l.Rows {
		e := &l.Rows[i].Entry
		for _, id := range refersTo(e) {
			ids[strings.ToLower(id)] = true
		}
		checkpoints = append(append(checkpoints, e.Raw(row.CompactionCheckpoints)...), '\n')
		if hash, ok := span.Text(span.Path(e.Raw(row.SkillsSnapshot), "promptRef", "hash")); ok {
			prompts[hash] = true
		}
	}
	other := map[string]bool{} // what the index beside it does not name either
	if s.index != nil {
		for _, f := range s.index.Unlinked() {
			other[f.Path] = true
		}
	}
	tell := func(code Code, path string, info fs.FileInfo) {
		if s.index == nil || other[path] {
			x.find(Finding{Code: code, Subject: s.at(path), Evidence: []string{fmt.Sprintf("%s, written %s", bytesOf(info.Size()), when(float64(info.ModTime().UnixMilli())))}})
		}
	}
	for k := range s.files {
		f := &s.files[k]
		switch {
		case !f.regular():
		case f.Class == jsonfile.Checkpoint && !strings.Contains(string(checkpoints), f.base):
			tell(UnlinkedCheckpoint, f.Path, f.info)
		case f.Class == jsonfile.Sidecar:
			if id, _, ok := strings.Cut(strings.ToLower(f.base), ".trajectory"); ok && !ids[id] {
				tell(UnlinkedSidecar, f.Path, f.info)
			}
		}
	}
	root := filepath.Join(s.dir, "skills-prompts", "sha256")
	folders, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.find(Finding{Code: AgentUnreadable, Subject: s.at(root), Evidence: []string{reason(err)}})
	}
	for _, d := range folders {
		blobs, _ := os.ReadDir(filepath.Join(root, d.Name())) // a file in place of a folder has none
		for _, b := range blobs {
			info, err := b.Info()
			if err == nil && info.Mode().IsRegular() && promptName().MatchString(b.Name()) && !prompts[b.Name()[:64]] {
				tell(UnlinkedPrompt, filepath.Join(root, d.Name(), b.Name()), info)
			}
		}
	}
}
