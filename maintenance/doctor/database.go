package doctor

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oc/config"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/sqlfile"
	"oc/transcript"
)

// Which era is this, and is its database sound (field-reports.md S16;
// spec/sqlite-store.md).
const (
	DatabaseUnreadable  Code = "database-unreadable"
	DatabaseNewer       Code = "database-newer"
	DatabaseEarly       Code = "database-early"
	DatabaseVersion     Code = "database-version"
	DatabaseOtherAgent  Code = "database-other-agent"
	DatabaseQuarantined Code = "database-quarantined"
	DatabaseLog         Code = "database-log-large"
	DatabaseDamaged     Code = "database-damaged"
	DatabaseUnchecked   Code = "database-unchecked"
	EraBoth             Code = "era-both"
	LeftoverUncovered   Code = "leftover-uncovered"
	LeftoverCovered     Code = "leftover-covered"
	ImportUnfinished    Code = "import-unfinished"
	ImportArchive       Code = "import-archive"
	AgentUnlisted       Code = "agent-unlisted"
)

var databaseFamily = Family{
	Name: "database",
	Checks: []Check{
		{
			Code: DatabaseUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "an agent's database cannot be read",
			Matters: "None of its sessions can be listed or read.",
			Command: "restore it from a backup; copies of what is there are worth keeping",
		},
		{
			Code: DatabaseNewer, Severity: Warn, Remedy: ByHand,
			Says:    "a database has a schema that oc does not know",
			Matters: "It is read as far as it is understood, and never changed.",
			Command: "use a newer oc",
		},
		{
			Code: DatabaseEarly, Severity: Info, Remedy: None,
			Says:    "a database has the schema of an early or interim release",
			Matters: "It is read as far as it is understood; the gateway of a newer release brings it up to date when it starts.",
		},
		{
			Code: DatabaseVersion, Severity: Warn, Remedy: ByHand,
			Says:    "a database says one version of its schema in its header and another in its content",
			Matters: "An update of it did not end: what it holds may be of both.",
			Command: "start the gateway of the newer release, which goes on with the update; keep a copy of the file before",
		},
		{
			Code: DatabaseOtherAgent, Severity: Warn, Remedy: ByHand,
			Says:    "a database says that it is another agent's",
			Matters: "OpenClaw refuses it in this place: it was copied or moved here.",
			Command: "put it back where it belongs",
		},
		{
			Code: DatabaseQuarantined, Severity: Error, Remedy: ByHand,
			Says:    "OpenClaw has put a database in quarantine",
			Matters: "OpenClaw does not open it: the agent has no sessions until it is mended.",
			Command: "openclaw doctor --fix looks at it again; oc goes on reading it",
		},
		{
			Code: DatabaseLog, Severity: Warn, Remedy: ByHand,
			Says:    "a database's write-ahead log is large",
			Matters: "It is not written back: a reader holds it, or the gateway has no time. Starts become slow, and it takes room.",
			Command: "restart the gateway; it writes the log back when it starts",
		},
		{
			Code: DatabaseDamaged, Severity: Error, Remedy: ByHand,
			Says:    "a database does not pass SQLite's check",
			Matters: "Queries can fail or give other answers than they should.",
			Command: "stop the gateway and keep a copy of the file; restore a backup, or rebuild the index that is named",
		},
		{
			Code: DatabaseUnchecked, Severity: Info, Remedy: None,
			Says:    "a database could not be checked",
			Matters: "A check needs a private copy while the database is in use, and room for it.",
		},
		{
			Code: EraBoth, Severity: Info, Remedy: None,
			Says:    "an agent has sessions of both eras",
			Matters: "OpenClaw from 2026.7.2 on reads the database alone; what only the files hold is not listed there.",
		},
		{
			Code: LeftoverUncovered, Severity: Warn, Remedy: ByHand,
			Says:    "a transcript beside a database has entries that the database lacks",
			Matters: "That part of the conversation is in no session any more: removing the file would lose it.",
			Command: "keep the file; oc sessions diff compares it, oc sessions history FILE reads it",
		},
		{
			Code: LeftoverCovered, Severity: Info, Remedy: None,
			Says:    "a transcript beside a database holds nothing that the database lacks",
			Matters: "It is left of the import and is not read any more.",
		},
		{
			Code: ImportUnfinished, Severity: Warn, Remedy: ByHand,
			Says:    "an import of sessions into a database did not end",
			Matters: "Some sessions may be in the files only, and some in the database only.",
			Command: "start the gateway of the newer release again, which goes on with the import",
		},
		{
			Code: ImportArchive, Severity: Info, Remedy: None,
			Says:    "an import has put the originals away",
			Matters: "They take room; an older release would need them.",
		},
		{
			Code: AgentUnlisted, Severity: Info, Remedy: None,
			Says:    "an agent is on disk and not in the configuration",
			Matters: "OpenClaw's lists leave its sessions out.",
		},
	},
	store: (*exam).databases,
	state: (*exam).imports,
}

// largeLog is a write-ahead log that is written back too seldom, in bytes.
const largeLog = 64 << 20

func (x *exam) databases(s *site) {
	at := s.at("")
	if !s.configured && !s.Named && !x.Config.Broken && (s.index != nil || s.database != nil || s.indexErr != nil || s.databaseErr != nil || s.transcripts() > 0) {
		f := Finding{Code: AgentUnlisted, Subject: at, Evidence: []string{fmt.Sprintf("agent %s, era %s, %d sessions", s.Agent, s.era, len(s.sessions()))}}
		f.File = s.dir
		x.find(f)
	}
	if s.databaseErr != nil {
		x.badDatabase(s)
		return
	}
	if s.database == nil {
		return
	}
	d := s.database
	at.File = d.Path
	if d.Schema.Newer {
		x.find(Finding{Code: DatabaseNewer, Subject: at, Evidence: []string{fmt.Sprintf("schema %d, written by %s", d.Schema.UserVersion, or(d.Schema.AppVersion, "an unknown release"))}})
	}
	if !d.Schema.Newer && !d.Schema.Known {
		x.find(Finding{Code: DatabaseEarly, Subject: at, Evidence: []string{fmt.Sprintf("schema %d, written by %s", d.Schema.UserVersion, or(d.Schema.AppVersion, "an unknown release"))}})
	}
	if id := d.Schema.AgentID; id != "" && config.NormalizeAgentID(id) != s.Agent && !s.Named {
		x.find(Finding{Code: DatabaseOtherAgent, Subject: at, Evidence: []string{fmt.Sprintf("it is that of agent %s, in the place of %s", id, s.Agent)}})
	}
	if v, ok := contentVersion(x.ctx, d.Path); ok && v != int64(d.Schema.UserVersion) {
		x.find(Finding{Code: DatabaseVersion, Subject: at, Evidence: []string{fmt.Sprintf("its header says %d, its content %d", d.Schema.UserVersion, v)}})
	}
	if d.Quarantine != "" {
		x.find(Finding{Code: DatabaseQuarantined, Subject: at, Evidence: []string{"OpenClaw's reason: " + d.Quarantine}})
	}
	if info, err := os.Stat(d.Path + "-wal"); err == nil && info.Size() >= largeLog {
		at := at
		at.File += "-wal"
		x.find(Finding{Code: DatabaseLog, Subject: at, Evidence: []string{fmt.Sprintf("%s, written %s", bytesOf(info.Size()), when(float64(info.ModTime().UnixMilli())))}})
	}
	if x.Deep && x.looksFor(DatabaseDamaged, DatabaseUnchecked) {
		x.quickCheck(s)
	}
	if s.alone && x.looksFor(EraBoth, LeftoverCovered, LeftoverUncovered) {
		x.leftovers(s)
	}
	if u := store.Measure(s.Target); u.Imported.Files > 0 {
		at := s.at(filepath.Join(filepath.Dir(s.dir), "session-sqlite-import-archive"))
		x.find(Finding{Code: ImportArchive, Subject: at, Evidence: []string{fmt.Sprintf("%d files, %s", u.Imported.Files, bytesOf(u.Imported.Bytes))}})
	}
}

// contentVersion is the version of the schema that the content of a database
// says (spec/sqlite-store.md 1.4); false where it says none.
func contentVersion(ctx context.Context, path string) (v int64, ok bool) {
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		columns, err := tx.Columns("schema_meta")
		if err != nil || !columns["schema_version"] {
			return err
		}
		v, ok, err = tx.Int("SELECT schema_version FROM schema_meta WHERE meta_key = 'primary'")
		return err
	})
	return v, ok && err == nil
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (x *exam) badDatabase(s *site) {
	f := Finding{Code: DatabaseUnreadable, Subject: s.at(s.Databases[0]), Evidence: []string{s.databaseErr.Error()}}
	var file *sqlfile.Error
	var damage *store.Damage
	switch {
	case errors.As(s.databaseErr, &file):
		f.File = file.Path
		if errors.Is(s.databaseErr, sqlfile.ErrBusy) {
			f.Severity, f.Command = Warn, "wait until its writer is done, and look again"
		}
	case errors.As(s.databaseErr, &damage):
		f.File, f.Byte = damage.Path, damage.Offset
	}
	if s.index != nil {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the index beside it has %d rows, which were looked at instead", len(s.index.Rows)))
	}
	x.find(f)
}

// quickCheck runs SQLite's own check: on the file itself while nobody has it
// open, else on a private copy.
func (x *exam) quickCheck(s *site) {
	path := s.database.Path
	at := s.at(path)
	if !quiet(path) {
		dir, err := privateCopy(path)
		if dir != "" {
			defer os.RemoveAll(dir)
		}
		if err != nil {
			x.find(Finding{Code: DatabaseUnchecked, Subject: at, Evidence: []string{err.Error()}})
			return
		}
		path = filepath.Join(dir, filepath.Base(path))
	}
	var said []string
	err := sqlfile.Read(x.ctx, path, func(tx *sqlfile.Tx) error {
		said = nil
		return tx.Each("PRAGMA quick_check(20)", func(r *sqlfile.Row) error {
			if text := r.Text(0); text != "ok" {
				said = append(said, strings.Join(strings.Fields(text), " "))
			}
			return nil
		})
	})
	switch {
	case errors.Is(err, sqlfile.ErrCorrupt):
		said = append(said, "SQLite gives up on it: "+err.Error())
	case err != nil:
		x.find(Finding{Code: DatabaseUnchecked, Subject: at, Evidence: []string{err.Error()}})
		return
	}
	if len(said) > 0 {
		x.find(Finding{Code: DatabaseDamaged, Subject: at, Evidence: said})
	}
}

// quiet tells that a database has no log, so that nobody writes it and a
// reader leaves no trace.
func quiet(path string) bool {
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// privateCopy copies a database and its log to a directory of its own, which
// the caller removes.
func privateCopy(path string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "oc-check-"); err != nil {
		return "", err
	}
	for _, tail := range []string{"", "-wal"} {
		if err := copyFile(path+tail, filepath.Join(dir, filepath.Base(path)+tail)); err != nil && !(tail != "" && errors.Is(err, fs.ErrNotExist)) {
			return dir, fmt.Errorf("copy it to %s: %w", dir, err)
		}
	}
	return dir, nil
}

func copyFile(from, to string) error {
	in, err := openFile(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// leftovers compares the transcripts that lie beside a database with it, entry
// by entry.
func (x *exam) leftovers(s *site) {
	var files []*file
	for k := range s.files {
		if f := &s.files[k]; f.Class == jsonfile.Live && f.regular() {
			files = append(files, f)
		}
	}
	rows := 0
	if s.index != nil {
		rows = len(s.index.Rows)
	}
	if rows == 0 && len(files) == 0 && s.indexErr == nil {
		return
	}
	f := Finding{Code: EraBoth, Subject: s.at(s.database.Path), Evidence: []string{fmt.Sprintf("the database has %d sessions and is read", len(s.database.Rows))}}
	switch {
	case s.indexErr != nil:
		f.Evidence = append(f.Evidence, "the index beside it cannot be read: "+s.indexErr.Error())
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("the files beside it hold %d rows and %d transcripts", rows, len(files)))
	}
	x.find(f)
	for _, f := range files {
		if x.ctx.Err() != nil {
			return
		}
		x.leftover(s, f)
	}
}

// leftover tells whether a database has every entry of a transcript.
func (x *exam) leftover(s *site, f *file) {
	at := s.at(f.Path)
	at.ID = f.Session
	in, err := openFile(f.Path)
	if err != nil {
		return // told by the family of transcripts
	}
	defer in.Close()
	have := map[uint64]bool{}
	known := 0
	err = agentdb.Events(x.ctx, s.database.Path, f.Session, func(e agentdb.Event) error {
		known++
		if entry, err := transcript.Parse(e.Line); err == nil {
			have[entryHash(&entry)] = true
		}
		return nil
	})
	if err != nil && !errors.Is(err, agentdb.ErrNoSessions) {
		x.find(Finding{Code: LeftoverUncovered, Severity: Info, Subject: at, Evidence: []string{"it could not be compared: " + err.Error()}})
		return
	}
	entries, lacking, messages := 0, 0, 0
	var scan transcript.Scanner
	if err := scan.Read(in, func(r *transcript.Row) error {
		if r.Blank || r.Err != nil || r.Kind == transcript.Header {
			return nil
		}
		entries++
		if !have[entryHash(&r.Entry)] {
			if lacking++; r.Kind == transcript.Message {
				messages++
			}
		}
		return x.ctx.Err()
	}); err != nil {
		return
	}
	switch {
	case lacking == 0:
		x.find(Finding{Code: LeftoverCovered, Subject: at, Evidence: []string{fmt.Sprintf("all of its %d entries are in the database", entries)}})
	case known == 0:
		x.find(Finding{Code: LeftoverUncovered, Subject: at, Evidence: []string{fmt.Sprintf("the database has no conversation of the session id; the file has %d entries, %d of them messages", entries, messages)}})
	default:
		x.find(Finding{Code: LeftoverUncovered, Subject: at, Evidence: []string{fmt.Sprintf("%d of its %d entries are not in the database, %d of them messages", lacking, entries, messages)}})
	}
}

// entryHash is what an entry is known by: its id, or all of it where it has
// none.
func entryHash(e *transcript.Entry) uint64 {
	if len(e.ID) > 0 {
		return maphash.Bytes(seed, e.ID)
	}
	return maphash.Bytes(seed, e.Raw)
}

// imports tells of imports that did not end.
func (x *exam) imports() {
	for _, run := range store.Imports(x.Config.StateDir) {
		if !run.Done && !run.Restored {
			x.find(Finding{Code: ImportUnfinished, Subject: Subject{File: run.Manifest, Byte: -1}, Evidence: []string{"agents " + or(strings.Join(run.Agents, ", "), "unknown")}})
		}
	}
}
