package commands

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
	"oc/store/span"
	"oc/store/sqlfile"
)

// altering is a command that changes a state of files or a database, for the matrix of faults.
type altering struct {
	name  string
	first [][]string // commands that go before, without faults
	line  []string
	ready func(t *testing.T, state string) // makes the state fit; nil: it is
	keeps bool                             // it changes nothing but oc's own files
	rows  bool                             // it changes a database: its statements fail too, one by one
	log   bool                             // it changes the signal log in one transaction, and has nothing that undo takes back
	keys  string                           // what a person types at the terminal that it needs
}

func edit(name string, change func(text string) string) func(*testing.T, string) {
	return func(t *testing.T, state string) {
		t.Helper()
		path := filepath.Join(state, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := change(string(raw))
		if text == string(raw) {
			t.Fatalf("%s was not changed", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	workStore = "agents/work/sessions/sessions.json"
	aNote     = "agent:work:hook:web-shop-order"
	aChat     = "agent:work:telegram:direct:5550137"
	aRow      = "agent:main:explicit:tax-2025"
)

var changingCommands = []altering{
	{name: "sessions cleanup", line: []string{"sessions", "cleanup", "--agent", "work"}},
	{name: "sessions cleanup --fix-missing", line: []string{"sessions", "cleanup", "--agent", "work", "--fix-missing"}},
	{name: "sessions cleanup --older-than", line: []string{"sessions", "cleanup", "--agent", "work", "--older-than", "2d"}},
	{name: "sessions cleanup --empty", line: []string{"sessions", "cleanup", "--all-agents", "--empty"}},
	{name: "sessions archive", line: []string{"sessions", "archive", aNote, aChat}},
	{name: "sessions restore, archived", first: [][]string{{"sessions", "archive", aChat}}, line: []string{"sessions", "restore", aChat}},
	{name: "sessions delete", line: []string{"sessions", "delete", aNote, aChat, "--yes"}},
	{name: "sessions restore, deleted", first: [][]string{{"sessions", "delete", aChat, "--yes"}}, line: []string{"sessions", "restore", aChat}},
	{name: "sessions reset", line: []string{"sessions", "reset", aChat}},
	{name: "sessions patch", line: []string{"sessions", "patch", aChat, "--label", "x", "--pin", "--category", "y"}},
	{name: "sessions compact", line: []string{"sessions", "compact", "agent:work:main", "--main", "--keep-recent-tokens", "60"}},
	{name: "sessions compact --max-lines", line: []string{"sessions", "compact", "agent:work:main", "--main", "--max-lines", "4"}},
	{name: "sessions compact --successor", line: []string{"sessions", "compact", "agent:work:main", "--main", "--keep-recent-tokens", "60", "--successor"}},
	{name: "sessions flush", line: []string{"sessions", "flush", "agent:work:main", "--provider", "extract", "--workspace", "{state}/ws"}, ready: notesOfTheDay},
	{name: "agents delete", line: []string{"agents", "delete", "garden", "--yes"}},
	{name: "doctor --fix", line: []string{"doctor", "--fix"}},
	{name: "doctor --fix unlinked-history", line: []string{"doctor", "--fix", "unlinked-history", "--yes"}},
	{name: "doctor --fix config-retired-key", line: []string{"doctor", "--fix", "config-retired-key"}, ready: func(t *testing.T, state string) {
		if err := os.WriteFile(filepath.Join(state, "openclaw.json"), []byte("{\n  // ours\n  agents: {list: [{id: 'work', default: true}, {id: 'garden'}]},\n  session: {maintenance: {rotateBytes: 5, pruneAfter: '30d'}},\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}},
	{name: "repair transcript", line: []string{"repair", "transcript", "agent:work:main"}, ready: func(t *testing.T, state string) {
		edit(transcriptOf(t, state, "agent:work:main"), func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			return strings.Join(slices.Insert(lines, 3, "no JSON\n", lines[2]), "") + `{"type":"message","id":"cut`
		})(t, state)
	}},
	{name: "repair index", line: []string{"repair", "index", "--agent", "work"}, ready: func(t *testing.T, state string) {
		raw, err := os.ReadFile(filepath.Join(state, workStore))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, workStore+".bak"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		edit(workStore, func(text string) string { return text[:len(text)/2] })(t, state)
	}},
	{name: "repair paths", line: []string{"repair", "paths", "--from", "/old/home", "--to", "{state}"}, ready: func(t *testing.T, state string) {
		file := filepath.Base(transcriptOf(t, state, aChat))
		edit(workStore, func(text string) string {
			return strings.Replace(text, `"sessionId"`, `"sessionFile": "/old/home/agents/work/sessions/nowhere.jsonl", "sessionId"`, 1)
		})(t, state)
		edit(workStore, func(text string) string { return strings.Replace(text, "nowhere.jsonl", file, 1) })(t, state)
	}},
	{name: "sessions cleanup, database", line: []string{"sessions", "cleanup", "--agent", "main"}, rows: true},
	{name: "sessions archive, database", line: []string{"sessions", "archive", aRow}, rows: true},
	{name: "sessions restore, database", first: [][]string{{"sessions", "archive", aRow}}, line: []string{"sessions", "restore", aRow}, rows: true},
	{name: "sessions delete, database", line: []string{"sessions", "delete", aRow, "--yes"}, rows: true},
	{name: "sessions reset, database", line: []string{"sessions", "reset", aRow}, rows: true},
	{name: "sessions patch, database", line: []string{"sessions", "patch", aRow, "--label", "x", "--pin"}, rows: true},
	{name: "sessions compact, database", line: []string{"sessions", "compact", "agent:main:main", "--main", "--keep-recent-tokens", "60"}, rows: true},
	{name: "agents delete, database", line: []string{"agents", "delete", "vault", "--yes"}, rows: true, ready: func(t *testing.T, state string) { vaulted(t, state) }},
	{name: "awareness record", ready: withSignals, line: []string{"awareness", "record", "main", "--kind", "goal_changed", "--summary", "x"}, rows: true, log: true},
	{name: "awareness watch", ready: withSignals, line: []string{"awareness", "watch", "agent:main:main", "agent:work:main"}, rows: true, log: true},
	{name: "sessions compact --successor, database", line: []string{"sessions", "compact", "agent:main:main", "--main", "--keep-recent-tokens", "60", "--successor"}, rows: true},
	{name: "sessions flush, database", line: []string{"sessions", "flush", "agent:main:main", "--provider", "extract", "--workspace", "{state}/ws"}, ready: notesOfTheDay, rows: true},
	{name: "cron runs --prune", line: []string{"cron", "runs", "--prune"}, rows: true, ready: func(t *testing.T, state string) {
		edit("openclaw.json", func(text string) string { return strings.Replace(text, "{", `{cron: {runLog: {keepLines: 3}},`, 1) })(t, state)
		shared := store.StateDatabase(state)
		if err := os.RemoveAll(shared); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(shared), 0o700); err != nil {
			t.Fatal(err)
		}
		alterDB(t, shared, cronRunRows(8)...)
	}},
	{name: "undo, database", first: [][]string{{"sessions", "delete", aRow, "--yes"}}, line: []string{"undo"}, rows: true},
	{name: "undo", first: [][]string{{"sessions", "delete", aNote, aChat, "--yes"}}, line: []string{"undo"}},
	{name: "undo of a cleanup", first: [][]string{{"sessions", "cleanup", "--agent", "work", "--fix-missing"}}, line: []string{"undo"}},
	{name: "undo --expire", first: [][]string{{"sessions", "delete", aNote, "--yes"}}, line: []string{"undo", "--expire", "all"}, keeps: true},
}

// withSignals gives a state a signal log.
func withSignals(t *testing.T, state string) {
	t.Helper()
	dir := t.TempDir()
	if a := ocRun(t, dir, nil, "awareness", "init", "--state-dir", dir); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	if err := os.CopyFS(filepath.Join(state, "state"), os.DirFS(filepath.Join(dir, "state"))); err != nil {
		t.Fatal(err)
	}
}

// notesOfTheDay puts a note into the workspace of a flush.
func notesOfTheDay(t *testing.T, state string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(state, "ws", "memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "ws", "memory", time.UnixMilli(fixtures.Now).UTC().Format(time.DateOnly)+".md"), []byte("- tea at five\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// transcriptOf is the name of the transcript of a session of the agent work, below the state.
func transcriptOf(t *testing.T, state, key string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(state, workStore))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := span.Text(span.Member(span.Member(raw, key), "sessionId"))
	if !ok {
		t.Fatalf("%s is not in the store", key)
	}
	return "agents/work/sessions/" + id + ".jsonl"
}

// matrixOfFaults is what the test has tried, a line a command: CI prints it.
var matrixOfFaults struct {
	sync.Mutex
	lines []string
	tried int
}

// Every changing command is stopped, as by a kill, and meets EIO, ENOSPC and EACCES, at every single operation on files that it does. At once the
// store parses and no row has lost its transcript; and one undo, which finishes or rolls back what was begun, brings every byte, name, mode and
// time back; in databases every row, and every statement of a transaction fails too. All of that in CI, which names a file for the table in OC_FAULTS; else at every seventh operation, which takes seconds.
func TestFaultMatrix(t *testing.T) {
	for _, c := range slices.Concat(changingCommands, reviews) {
		t.Run(c.name, func(t *testing.T) { c.suffer(t) })
	}
	m := &matrixOfFaults
	slices.Sort(m.lines)
	table := "| command | operations | stopped | EIO | ENOSPC | EACCES | statements |\n|---|---|---|---|---|---|---|\n" + strings.Join(m.lines, "") + fmt.Sprintf("\n%d commands, %d faults.\n", len(m.lines), m.tried)
	t.Log("\n" + table)
	if file := os.Getenv("OC_FAULTS"); file != "" {
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (c altering) suffer(t *testing.T) {
	root, err := os.MkdirTemp("/dev/shm", "oc-faults-")
	if err != nil {
		root = t.TempDir()
	}
	defer os.RemoveAll(root) //nolint:errcheck // temporary
	state := filepath.Join(root, "state")
	var origin, before, after map[string]string
	fresh := func() {
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		s := fixtures.Demo()
		s.Agents = slices.DeleteFunc(s.Agents, func(a fixtures.Agent) bool { return a.Era == fixtures.SQLiteEra && !c.rows })
		if err := s.Write(state); err != nil {
			t.Fatal(err)
		}
		if c.ready != nil {
			c.ready(t, state)
		}
		longOver(t, state)
		origin = bytesOf(t, state)
		for _, line := range c.first {
			if a := c.oc(t, root, state, nil, line); a.exit != ExitDone {
				t.Fatalf("oc %v: exit %d: %s", line, a.exit, a.errout)
			}
		}
		before = bytesOf(t, state)
	}

	fresh()
	count := &journal.Faults{FS: quickly{journal.OS()}}
	a := c.oc(t, root, state, count, c.line)
	if a.exit != ExitDone && a.exit != ExitFindings {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	after = bytesOf(t, state)
	if same := maps.Equal(before, after); same != c.keeps {
		t.Fatalf("without a fault it changes nothing, or something: %t\n%s%s", same, a.out, a.errout)
	}
	total := count.Count()
	if total < 10 != c.log {
		t.Fatalf("%d operations", total)
	}
	step := 7
	if os.Getenv("OC_FAULTS") != "" {
		step = 1
	}
	fresh()
	clean := true
	faults, statements := []error{nil, syscall.EIO, syscall.ENOSPC, syscall.EACCES}, 0
	if c.rows {
		counting := sqlfile.Breaking(t.Context(), func(string) error { statements++; return nil })
		c.within(t, counting, root, state, nil, c.line)
		if fresh(); statements == 0 {
			t.Fatal("no statement changes the database")
		}
		faults = append(faults, errStatement)
	}
	for _, fault := range faults {
		last := total
		if fault == errStatement {
			last = statements
		}
		for n := 1; n <= last; n += step {
			if !clean {
				fresh()
			}
			f, ctx := &journal.Faults{FS: quickly{journal.OS()}, At: n, Err: fault}, t.Context()
			if fault == errStatement {
				f.At = 0
				at := 0
				ctx = sqlfile.Breaking(ctx, func(string) error {
					if at++; at == n {
						return errStatement
					}
					return nil
				})
			}
			a := c.within(t, ctx, root, state, f, c.line)
			where := fmt.Sprintf("operation %d of %d, %v", n, last, fault)
			if fault != nil && strings.Contains(a.errout, "mistake in oc itself") {
				t.Errorf("%s: %s", where, a.errout)
			}
			if fault != nil && a.exit != ExitDone && strings.TrimSpace(a.errout+a.out) == "" {
				t.Errorf("%s: exit %d, and not a word", where, a.exit)
			}
			unharmed(t, where, state, before, after)
			if c.log { // all of it or nothing
				if now := bytesOf(t, state); !maps.Equal(now, before) {
					t.Fatalf("%s (exit %d: %s):\n%s", where, a.exit, a.errout, cmp.Diff(before, now))
				}
				continue
			}
			back := c.oc(t, root, state, nil, []string{"undo"})
			now := bytesOf(t, state)
			if back.exit != ExitDone && !strings.Contains(back.errout, "no run that can be taken back") {
				t.Errorf("%s: undo: exit %d: %s", where, back.exit, back.errout)
			}
			// Where the command had not begun, undo has taken back the one before it.
			if !maps.Equal(now, before) && !maps.Equal(now, origin) {
				t.Errorf("%s (exit %d: %s), after undo (%s):\n%s", where, a.exit, a.errout, back.out, cmp.Diff(origin, now))
			}
			if t.Failed() {
				return
			}
			if len(c.first) > 0 {
				clean = false
			} else if err := os.RemoveAll(filepath.Join(state, ".oc")); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := &matrixOfFaults
	m.Lock()
	defer m.Unlock()
	each := (total + step - 1) / step
	m.tried += 4*each + (statements+step-1)/step
	m.lines = append(m.lines, fmt.Sprintf("| %s | %d | %[3]d | %[3]d | %[3]d | %[3]d | %d |\n", c.name, total, each, (statements+step-1)/step))
}

// oc runs a command through a seam at which it may fail. One that is stopped there ends like any other mistake: nothing more goes through the seam.
func (c altering) oc(t *testing.T, root, state string, f journal.FS, line []string) answer {
	return c.within(t, context.Background(), root, state, f, line)
}

// errStatement is what a statement fails with.
var errStatement = errors.New("disk I/O error")

func (c altering) within(t *testing.T, ctx context.Context, root, state string, f journal.FS, line []string) answer {
	if f == nil {
		f = quickly{journal.OS()}
	}
	var out, errout bytes.Buffer
	args := []string{"--state-dir", state, "--offline"}
	for _, word := range line {
		args = append(args, strings.ReplaceAll(word, "{state}", state))
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	p := Process{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errout, Dir: root, Now: time.Now, under: under{f, lonely{}, root},
		Environ: []string{"HOME=" + root, "TZ=UTC", "TERM=xterm", "NO_COLOR=1", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", fixtures.Now)},
	}
	if c.keys != "" && line[0] == c.line[0] {
		program, done := seat(t, c.keys)
		defer done()
		p.Stdin, p.Stdout = program, program
	}
	exit := Main(ctx, p)
	return answer{exit, out.String(), errout.String()}
}

// unharmed holds that every store that is there parses, and that no row lacks the transcript that the same row has before or after.
func unharmed(t *testing.T, where, state string, before, after map[string]string) {
	t.Helper()
	for name := range before {
		if filepath.Base(name) != "sessions.json" || json.Unmarshal([]byte(text(before[name])), new(map[string]any)) != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(state, name))
		if err != nil {
			if _, stays := after[name]; stays {
				t.Errorf("%s: %v", where, err)
			}
			continue
		}
		var rows map[string]struct{ SessionID string }
		if err := json.Unmarshal(raw, &rows); err != nil {
			t.Errorf("%s: %s does not parse: %v", where, name, err)
		}
		for key, r := range rows {
			file := filepath.Join(filepath.Dir(name), r.SessionID+".jsonl")
			for _, then := range []map[string]string{before, after} {
				var same map[string]struct{ SessionID string }
				_ = json.Unmarshal([]byte(text(then[name])), &same)
				if _, had := then[file]; had && same[key].SessionID == r.SessionID {
					if _, err := os.Lstat(filepath.Join(state, file)); err != nil {
						t.Errorf("%s: %s has no transcript: %v", where, key, err)
					}
				}
			}
		}
	}
}

// longOver gives every file a time that is long over, and whole seconds.
func longOver(t *testing.T, state string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err == nil && time.Since(info.ModTime()) < time.Hour {
			at := time.UnixMilli(fixtures.Now - fixtures.Day)
			err = os.Chtimes(path, at, at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// bytesOf is every file below a state but those of oc itself: mode, time and bytes.
func bytesOf(t *testing.T, state string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(state, path)
		switch {
		case name == ".oc":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		switch {
		case strings.HasSuffix(name, ".sqlite"):
			all[name] = fmt.Sprintf("%v\n%s", info.Mode(), rowsIn(t, path))
		case strings.HasSuffix(name, ".sqlite-wal"), strings.HasSuffix(name, ".sqlite-shm"):
		default:
			all[name] = fmt.Sprintf("%v %d\n%s", info.Mode(), info.ModTime().UnixNano(), raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rowsIn is every row of every table of a database, read from a copy.
func rowsIn(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Dir(path)), "look-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "x.sqlite"+suffix), raw, 0o600)
		}
		if err != nil && (suffix == "" || !os.IsNotExist(err)) {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "x.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	one := func(query string) (all []string) {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatalf("%s: %s: %v", path, query, err)
		}
		defer rows.Close() //nolint:errcheck // only read
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%v", values))
		}
		return all
	}
	var b strings.Builder
	// How the parts of a full-text index lie does not count, what it answers does.
	for _, name := range one(`SELECT name FROM sqlite_master t WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		AND NOT EXISTS (SELECT 1 FROM sqlite_master v WHERE v.sql LIKE 'CREATE VIRTUAL%' AND t.name LIKE v.name || '\_%' ESCAPE '\') ORDER BY 1`) {
		name = strings.Trim(name, "[]")
		rows := one(`SELECT * FROM "` + name + `"`)
		slices.Sort(rows)
		fmt.Fprintf(&b, "%s\n%s\n", name, strings.Join(rows, "\n"))
	}
	return b.String()
}

// text is the bytes of a file of a tree.
func text(file string) string {
	_, text, _ := strings.Cut(file, "\n")
	return text
}

// lonely is a machine on which nobody else works: looking at all processes of the real one would take most of the time.
type lonely struct{}

func (lonely) Process(pid int) lock.Process {
	if pid == os.Getpid() {
		return lock.Local().Process(pid)
	}
	return lock.Process{PID: pid, Life: lock.Gone}
}
func (lonely) Boot() time.Time                 { return time.Time{} }
func (lonely) Elsewhere(string) (string, bool) { return "", false }
func (lonely) Nested(int, uint64) int          { return 0 }

// quickly is the system without waiting for the disk: a kill of a process loses nothing that it has written.
type quickly struct{ journal.FS }

func (quickly) SyncDir(string) error { return nil }
func (quickly) SyncFS(string) error  { return nil }

func (q quickly) Create(name string, mode fs.FileMode) (journal.File, error) {
	f, err := q.FS.Create(name, mode)
	if err != nil {
		return nil, err
	}
	return unsynced{f}, nil
}

type unsynced struct{ journal.File }

func (unsynced) Sync() error { return nil }
