package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/gateway"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/row"
	"oc/store/sqlfile"
)

// sessionsHook marks the rows of sessions of a database that a gateway was asked to change.
const sessionsHook = "sessions"

// entrusted are the sessions of such a step, by key.
type entrusted struct {
	Whole []string `json:"whole,omitempty"` // with their transcripts
	Rows  []string `json:"rows,omitempty"`  // what hangs on the key
	Left  []string `json:"left,omitempty"`  // that are not to be taken back: the gateway did not do it, or deleted what was only saved in part
}

// Keep makes a rowMerger a journal.Keeper.
func (rowMerger) Keep(s journal.Step) (sqlfile.Choice, []string, error) {
	if s.Hook == agentHook {
		return ofAgent(s.Payload)
	}
	var e entrusted
	if err := json.Unmarshal(s.Payload, &e); s.Hook != sessionsHook || err != nil {
		return nil, nil, fmt.Errorf("%w: which sessions were to change cannot be read: %w", journal.ErrRefused, err)
	}
	return func(tx *sqlfile.Tx, ties []string, rows func(table, where string, args ...any) error) error {
		return agentdb.Of{Keys: e.Whole, Rows: e.Rows, IDs: ties}.Choose(tx, rows)
	}, e.Left, nil
}

var _ journal.Keeper = rowMerger{}

// DatabaseDelegation is how a change of sessions in a database is handed to a gateway.
type DatabaseDelegation struct {
	Whole []string // keys of sessions that may be deleted, or whose transcripts change
	Rows  []string // of sessions whose rows alone change
	// Call makes the calls, once, after everything that is named was copied: see Delegation.
	Call func(ctx context.Context) error
	// Named tells whether the gateway did to a row that is still there what it was asked for; keys of others are not looked at.
	Named func(key string, was, is *store.Row) (done bool)
}

// DelegateRows hands a change of the sessions in a database to a gateway, as Delegate does one of a file: all rows of the sessions that the plan
// in d names, and the files that it removes, are copied into a run, and what became of them is written down as what the run did. before is the
// database as it was read for the plan.
func (w *Worker) DelegateRows(ctx context.Context, d *Done, before *store.Sessions, g DatabaseDelegation) (err error) {
	j, err := w.journalOf(before.Path)
	if err != nil {
		return err
	}
	release, err := j.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if d.Recovered, err = j.Reconcile(ctx); err != nil {
		return fmt.Errorf("close an earlier run, which only oc undo can do with the gateway stopped: %w", err)
	}
	if !w.Purge {
		if err := w.saveRows(ctx, j, d, before.Path, g); err != nil {
			return fmt.Errorf("save what the gateway is to change: %w", err)
		}
	}
	dir := agentdb.ArtifactDir(before.Path)
	files := archivesIn(dir)
	called := g.Call(ctx)
	var failed *gateway.Error
	if errors.As(called, &failed) && failed.Sent {
		return called
	}
	// What happened is written down even when oc is told to stop now.
	ctx = context.WithoutCancel(ctx)
	after, err := store.Open(ctx, w.Config, before.Target)
	if err != nil {
		return errors.Join(called, fmt.Errorf("what became of it cannot be read: %w", err))
	}
	d.Handed = weighRows(d, before, after, g)
	var made []journal.Step
	for name := range archivesIn(dir) {
		if files[name] {
			continue
		}
		path := filepath.Join(dir, name)
		d.Handed.Archives = append(d.Handed.Archives, path)
		id, _, _ := strings.Cut(name, ".jsonl.")
		if slices.ContainsFunc(before.Rows, func(r store.Row) bool { return r.ID() == id && slices.Contains(g.Whole, r.Key) }) {
			made = append(made, journal.Step{Kind: journal.Create, Path: realPath(path), Tie: id})
		}
	}
	slices.Sort(d.Handed.Archives)
	if d.Run != nil {
		if err := w.settleRows(ctx, j, d, made); err != nil {
			return errors.Join(called, err)
		}
	}
	return errors.Join(called, w.expire(ctx, j, d))
}

// saveRows copies the rows, and the files that the plan removes, into a run.
func (w *Worker) saveRows(ctx context.Context, j *journal.Journal, d *Done, path string, g DatabaseDelegation) error {
	var steps []journal.Step
	if len(g.Whole)+len(g.Rows) > 0 {
		payload, err := json.Marshal(entrusted{Whole: g.Whole, Rows: g.Rows})
		if err != nil {
			return err
		}
		step := Rows(path, nil)
		step.Hook, step.Payload = sessionsHook, payload
		// Archives are published when the gateway likes, a conversation may be another session's too, and the undo of a later run marks the state of
		// an index: where they have changed since they stay.
		step.Rows.Derived = append(step.Rows.Derived, "session_transcript_archives", "conversations", "session_transcript_index_state")
		step.Rows.Stale.Of = "transcript_events"
		steps = append(steps, step)
	}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Applies && a.Kind == Remove && a.Target != "" {
			if info, err := os.Lstat(a.Target); err == nil && info.Mode().IsRegular() {
				steps = append(steps, journal.Step{Kind: journal.Remove, Phase: journal.Clear, Path: realPath(a.Target)})
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	facts := w.facts(d.Plan)
	facts.Via = "gateway"
	said, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		r, err := j.Save(ctx, journal.Plan{Facts: said, Steps: steps})
		if errors.Is(err, journal.ErrChanged) && try < planTries && ctx.Err() == nil {
			time.Sleep(planPause)
			continue
		}
		if err != nil {
			return err
		}
		d.Run = r
		if w.Group == "" {
			w.Group = r.ID
		}
		return nil
	}
}

// settleRows writes down what became of the rows and files of a run.
func (w *Worker) settleRows(ctx context.Context, j *journal.Journal, d *Done, made []journal.Step) error {
	h := d.Handed
	for i := range d.Run.Steps {
		s := &d.Run.Steps[i]
		if s.Hook != sessionsHook {
			continue
		}
		var e entrusted
		if err := json.Unmarshal(s.Payload, &e); err != nil {
			return err
		}
		for _, key := range slices.Concat(e.Whole, e.Rows) {
			if slices.Contains(h.NotDone, key) || slices.Contains(h.Unsaved, key) {
				e.Left = append(e.Left, key)
			}
		}
		said, err := json.Marshal(e)
		if err != nil {
			return err
		}
		s.Payload = said
	}
	facts := FactsOf(d.Run, "")
	facts.Rows, facts.Files = len(h.Dropped)+len(h.Written), h.Gone
	if said, err := json.Marshal(facts); err == nil {
		d.Run.Facts = said
	}
	if len(h.Dropped)+len(h.Written)+h.Gone == 0 {
		made = nil
	}
	changed, err := j.Settle(ctx, d.Run, made)
	if err == nil && !changed {
		d.Run, h.Covered = nil, 0
	}
	return err
}

// weighRows says what became of the rows of a database and of the files that a plan names, and which others are gone.
func weighRows(d *Done, before, after *store.Sessions, g DatabaseDelegation) *Handed {
	h := &Handed{Before: len(before.Rows), After: len(after.Rows)}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Applies && a.Kind == Remove && a.Target != "" && isGone(a.Target) {
			h.Gone++
			h.Freed += a.Bytes
			if d.Run != nil {
				h.Covered++
			}
		}
	}
	now := map[string]*store.Row{}
	for i := range after.Rows {
		now[after.Rows[i].Key] = &after.Rows[i]
	}
	for i := range before.Rows {
		was := &before.Rows[i]
		is, there := now[was.Key]
		whole, aside := slices.Contains(g.Whole, was.Key), slices.Contains(g.Rows, was.Key)
		switch {
		case !there:
			h.Dropped = append(h.Dropped, was.Key)
			if !whole {
				h.Unplanned, h.Unsaved = append(h.Unplanned, Unplanned{Key: was.Key}), append(h.Unsaved, was.Key)
			}
		case !whole && !aside:
		case g.Named(was.Key, was, is):
			h.Written = append(h.Written, was.Key)
		default:
			h.NotDone = append(h.NotDone, was.Key)
		}
	}
	return h
}

// Written tells whether a row is another one now.
func Written(_ string, was, is *store.Row) bool { return string(was.Val) != string(is.Val) }

// PutAside tells whether a row is archived by now.
func PutAside(_ string, was, is *store.Row) bool {
	return is.IsSet(row.ArchivedAt) && !was.IsSet(row.ArchivedAt)
}

// archivesIn are the names of the archives in a directory.
func archivesIn(dir string) map[string]bool {
	all := map[string]bool{}
	entries, _ := os.ReadDir(dir) // a directory that is not there has none
	for _, e := range entries {
		if strings.Contains(e.Name(), ".jsonl.deleted.") || strings.Contains(e.Name(), ".jsonl.reset.") {
			all[e.Name()] = true
		}
	}
	return all
}
