package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"oc/store/span"
	"oc/store/sqlfile"
)

// A SpawnedRun is a run of a sub-agent that OpenClaw has written down
// (spec/session-tools.md 4, "Run records on disk"). Times are epoch ms, 0 for
// none.
type SpawnedRun struct {
	ID                           string
	Child, Requester, Controller string // session keys
	Created, Started, Ended      int64
	Outcome                      string // ok, error, timeout ...; "" for none
	Path                         string // where it is written down
}

// SpawnedRuns calls f for each run of a sub-agent that a state knows of: those
// of the database that all agents share (releases 2026.7.35 to 2026.9.6), and
// those of subagents/runs.json where that has none.
func SpawnedRuns(ctx context.Context, stateDir string, f func(SpawnedRun)) error {
	path := StateDatabase(stateDir)
	var runs []SpawnedRun
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		runs = nil
		has, err := tx.Columns("subagent_runs")
		if err != nil || !has["payload_json"] || !has["run_id"] {
			return err
		}
		column := func(name string) string {
			if has[name] {
				return name
			}
			return "NULL"
		}
		query := "SELECT payload_json, run_id, " + column("child_session_key") + ", " + column("requester_session_key") + ", " + column("controller_session_key") + ", " +
			column("created_at") + ", " + column("started_at") + ", " + column("ended_at") + ", " + column("outcome_json") + " FROM subagent_runs"
		return tx.Each(query, func(r *sqlfile.Row) error {
			run := spawnedRun(r.Bytes(0), path)
			for i, to := range []*string{&run.ID, &run.Child, &run.Requester, &run.Controller} {
				if s := r.Text(i + 1); s != "" {
					*to = s
				}
			}
			for i, to := range []*int64{&run.Created, &run.Started, &run.Ended} {
				if n, ok := r.Int(i + 5); ok && n > 0 {
					*to = n
				}
			}
			if raw := r.Bytes(8); span.KindOf(raw) == span.Object && span.Valid(raw) == nil {
				run.Outcome, _ = span.Text(span.Member(raw, "status"))
			}
			runs = append(runs, run)
			return nil
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if len(runs) == 0 && err == nil {
		path = filepath.Join(stateDir, "subagents", "runs.json")
		if text, e := os.ReadFile(path); e == nil && span.Valid(text) == nil {
			_, _ = span.Each(span.Member(text, "runs"), 0, func(_, val []byte) error {
				runs = append(runs, spawnedRun(val, path))
				return nil
			})
		}
	}
	for _, run := range runs {
		if run.ID != "" && run.Child != "" {
			f(run)
		}
	}
	return err
}

// spawnedRun reads a record.
func spawnedRun(raw []byte, path string) (r SpawnedRun) {
	r.Path = path
	if span.KindOf(raw) != span.Object || span.Valid(raw) != nil {
		return r
	}
	text := func(name string) string { s, _ := span.Text(span.Member(raw, name)); return s }
	stamp := func(names ...string) int64 {
		if ms, ok := span.Float(span.Path(raw, names...)); ok && ms > 0 && ms < 1<<53 {
			return int64(ms)
		}
		return 0
	}
	r.ID, r.Child, r.Requester, r.Controller = text("runId"), text("childSessionKey"), text("requesterSessionKey"), text("controllerSessionKey")
	r.Created, r.Started, r.Ended = stamp("createdAt"), stamp("startedAt"), stamp("endedAt")
	if r.Ended == 0 { // release 2026.9.6
		r.Started, r.Ended = max(r.Started, stamp("execution", "startedAt")), stamp("execution", "endedAt")
	}
	for _, names := range [][]string{{"outcome", "status"}, {"execution", "outcome", "status"}, {"endedReason"}} {
		if r.Outcome == "" {
			r.Outcome, _ = span.Text(span.Path(raw, names...))
		}
	}
	return r
}
