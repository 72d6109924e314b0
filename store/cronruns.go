package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/store/span"
	"oc/store/sqlfile"
)

// Where releases keep what the runs of cron jobs came to.
const (
	RunLogTable  = "cron_run_logs" // of the shared database: releases up to 2026.7.35
	RunTaskTable = "task_runs"     // of the shared database: 2026.8.2 and 2026.9.6
	RunLogFile   = "file"          // cron/runs/<job>.jsonl: releases before the shared database
)

// A CronRun is one run of a cron job that has ended, as it was written down. Times are epoch milliseconds, 0 unknown.
type CronRun struct {
	Job        string
	Kept       string // in which of the tables, or in a file
	Store      string // the job store that the job is of, where the release has more than one; "" unknown
	ID         string // of the row: its number in the table of logs, its task id, its line in the file
	RunID      string
	Status     string // "ok", "error" or "skipped", or what the task ended as
	At         int64  // when it ended
	StartedAt  int64
	Duration   int64 // milliseconds; -1 unknown
	Error      string
	Summary    string
	SessionID  string
	SessionKey string
	Model      string
	Delivery   string // what became of the answer: "delivered", "not-delivered", "not-requested" ...
	Quiet      bool   // a trigger that did not fire: it counts apart, and no history shows it
	Row        int64  // the row of the table that it is
}

// CronHistory is what is kept of the runs of cron jobs.
type CronHistory struct {
	Path     string            // of the shared database
	Names    map[string]string // of the jobs that there are, by their ids
	Runs     []CronRun         // the newest first
	Problems []error           // rows, files and tables that cannot be read
}

// CronRuns reads the runs of one job, or of all where job is "". Every place where a release keeps them is looked at: they
// hold what was written down before an update and after it. A database that is not there holds none; one that cannot be
// read is the error, a *sqlfile.Error, and what files hold is given all the same.
func CronRuns(ctx context.Context, stateDir, job string) (*CronHistory, error) {
	h := &CronHistory{Path: StateDatabase(stateDir)}
	var runs []CronRun
	var problems []error
	err := sqlfile.Read(ctx, h.Path, func(tx *sqlfile.Tx) error {
		h.Names, runs, problems = map[string]string{}, nil, nil
		take := func(r CronRun, err error) {
			switch {
			case err != nil:
				problems = append(problems, fmt.Errorf("%s: %w", h.Path, err))
			case job == "" || r.Job == job:
				runs = append(runs, r)
			}
		}
		if err := jobNames(tx, h.Names); err != nil {
			return err
		}
		if err := loggedRuns(tx, take); err != nil {
			return err
		}
		return taskRuns(tx, take)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	h.Runs, h.Problems = runs, problems
	h.files(filepath.Join(stateDir, "cron", "runs"), job)
	slices.SortStableFunc(h.Runs, newerRun)
	return h, err
}

// newerRun is the order in which OpenClaw keeps runs: by the time they ended, then by the row.
func newerRun(a, b CronRun) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(a.Kept, b.Kept), cmp.Compare(b.Row, a.Row), cmp.Compare(b.ID, a.ID))
}

func jobNames(tx *sqlfile.Tx, names map[string]string) error {
	has, err := tx.Columns("cron_jobs")
	if err != nil || !has["job_id"] || !has["name"] {
		return err
	}
	return tx.Each("SELECT job_id, name FROM cron_jobs", func(r *sqlfile.Row) error {
		names[r.Text(0)] = r.Text(1)
		return nil
	})
}

// loggedRuns reads the table of logs. Its columns go before what the JSON says.
func loggedRuns(tx *sqlfile.Tx, take func(CronRun, error)) error {
	has, err := tx.Columns(RunLogTable)
	if err != nil || !has["job_id"] || !has["seq"] || !has["entry_json"] {
		return err
	}
	pick := func(names ...string) string {
		for i, n := range names {
			if !has[n] {
				names[i] = "NULL"
			}
		}
		return strings.Join(names, ", ")
	}
	query := "SELECT rowid, " + pick("store_key", "job_id", "seq", "ts", "status", "error", "summary", "delivery_status", "session_id", "session_key", "run_id", "run_at_ms", "duration_ms", "model", "entry_json") + " FROM " + RunLogTable
	return tx.Each(query, func(r *sqlfile.Row) error {
		c, err := runOf(r.Bytes(15))
		if err != nil {
			take(c, fmt.Errorf("the log of job %s, number %v: %w", r.Text(2), r.Value(3), err))
			return nil
		}
		c.Kept, c.Store, c.Job = RunLogTable, r.Text(1), r.Text(2)
		c.Row, _ = r.Int(0)
		seq, _ := r.Int(3)
		c.ID = fmt.Sprint(seq)
		for i, to := range map[int]*string{5: &c.Status, 6: &c.Error, 7: &c.Summary, 8: &c.Delivery, 9: &c.SessionID, 10: &c.SessionKey, 11: &c.RunID, 14: &c.Model} {
			if !r.Null(i) {
				*to = r.Text(i)
			}
		}
		for i, to := range map[int]*int64{4: &c.At, 12: &c.StartedAt, 13: &c.Duration} {
			if n, ok := r.Int(i); ok {
				*to = n
			}
		}
		take(c, nil)
		return nil
	})
}

// taskRuns reads the tasks that are ended runs of cron jobs. Those that still wait or run, and those that were lost, are no
// history.
func taskRuns(tx *sqlfile.Tx, take func(CronRun, error)) error {
	has, err := tx.Columns(RunTaskTable)
	if err != nil || !has["runtime"] || !has["source_id"] || !has["detail_json"] || !has["ended_at"] {
		return err
	}
	return tx.Each(`SELECT rowid, source_id, task_id, status, created_at, started_at, ended_at, last_event_at, error, terminal_summary, child_session_key, run_id, detail_json
		FROM `+RunTaskTable+` WHERE runtime = 'cron' AND source_id IS NOT NULL AND status NOT IN ('queued', 'running', 'lost')`, func(r *sqlfile.Row) error {
		detail := r.Bytes(12)
		if len(detail) == 0 {
			detail = []byte("{}")
		}
		c, err := runOf(detail)
		if err != nil {
			take(c, fmt.Errorf("task %s of job %s: %w", r.Text(2), r.Text(1), err))
			return nil
		}
		kind, _ := span.Text(span.Member(detail, "kind"))
		c.Kept, c.Job, c.ID, c.Quiet = RunTaskTable, r.Text(1), r.Text(2), kind != "cron-run"
		c.Store, _ = span.Text(span.Member(detail, "storeKey"))
		c.Row, _ = r.Int(0)
		c.Status = cmp.Or(c.Status, r.Text(3))
		c.Error, c.Summary = cmp.Or(c.Error, r.Text(8)), cmp.Or(c.Summary, r.Text(9))
		c.SessionKey, c.RunID = cmp.Or(r.Text(10), c.SessionKey), cmp.Or(c.RunID, r.Text(11))
		created, _ := r.Int(4)
		started, _ := r.Int(5)
		c.StartedAt = cmp.Or(c.StartedAt, started, created)
		for _, i := range []int{6, 7, 4} {
			if n, ok := r.Int(i); ok {
				c.At = n
				break
			}
		}
		take(c, nil)
		return nil
	})
}

// runOf reads the JSON of a run; what is not there stays unknown.
func runOf(raw []byte) (c CronRun, err error) {
	c.Duration = -1
	if err := span.Valid(raw); err != nil {
		return c, err
	}
	if span.KindOf(raw) != span.Object {
		return c, errors.New("it is no object")
	}
	for name, to := range map[string]*string{
		"jobId": &c.Job, "status": &c.Status, "error": &c.Error, "summary": &c.Summary, "deliveryStatus": &c.Delivery,
		"sessionId": &c.SessionID, "sessionKey": &c.SessionKey, "runId": &c.RunID, "model": &c.Model,
	} {
		*to, _ = span.Text(span.Member(raw, name))
	}
	for name, to := range map[string]*int64{"ts": &c.At, "runAtMs": &c.StartedAt, "durationMs": &c.Duration} {
		if f, ok := span.Float(span.Member(raw, name)); ok && math.Abs(f) < 1<<53 {
			*to = int64(f)
		}
	}
	return c, nil
}

// files reads what releases before the shared database have left: one file a job, one line a run.
func (h *CronHistory) files(dir, job string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			h.Problems = append(h.Problems, err)
		}
		return
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !e.Type().IsRegular() || job != "" && name != job {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := h.file(path, name); err != nil {
			h.Problems = append(h.Problems, fmt.Errorf("%s: %w", path, err))
		}
	}
}

// maxRunLine is how long a line is read; a run has a summary and a few figures.
const maxRunLine = 4 << 20

func (h *CronHistory) file(path, job string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.Reader(f))
	lines.Buffer(nil, maxRunLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		c, err := runOf(line)
		if err != nil {
			h.Problems = append(h.Problems, fmt.Errorf("%s: line %d: %w", path, n, err))
			continue
		}
		if action, _ := span.Text(span.Member(line, "action")); action == "finished" && c.Job == job {
			c.Kept, c.ID, c.Row = RunLogFile, fmt.Sprint(n), int64(n)
			h.Runs = append(h.Runs, c)
		}
	}
	return lines.Err()
}

// Over are the runs that are more than keep of their job, as OpenClaw counts them: in the table of logs by its numbers, of
// the tasks by the time they ended, those of quiet triggers apart. Runs in files are none of them: they are imported and
// put away by an update. keep is at least 1.
func (h *CronHistory) Over(keep int) (over []CronRun) {
	type class struct {
		kept, store, job string
		quiet            bool
	}
	classes := map[class][]CronRun{}
	for _, r := range h.Runs {
		if r.Kept != RunLogFile {
			k := class{r.Kept, r.Store, r.Job, r.Quiet}
			classes[k] = append(classes[k], r)
		}
	}
	for k, runs := range classes {
		order := newerRun
		if k.kept == RunLogTable {
			order = func(a, b CronRun) int { return cmp.Compare(seqOf(b), seqOf(a)) }
		}
		slices.SortFunc(runs, order)
		over = append(over, runs[min(len(runs), max(keep, 1)):]...)
	}
	slices.SortFunc(over, newerRun)
	return over
}

func seqOf(r CronRun) (n int64) {
	_, _ = fmt.Sscan(r.ID, &n)
	return n
}
