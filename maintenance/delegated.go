package maintenance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"oc/gateway"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/span"
)

// Handed is what came of a change that a gateway made.
type Handed struct {
	Before, After int      // rows of the store, as it was read before and after the calls
	Dropped       []string // keys of rows that are gone
	Written       []string // keys of planned rows that have other bytes now
	NotDone       []string // keys whose row the plan drops or writes, and that are as they were
	Archives      []string // that the gateway made: paths
	Gone          int      // planned files that are gone from their names
	Freed         int64    // bytes of those among them that are no archive now
	Covered       int      // files that undo brings back
	Unsaved       []string // keys among Dropped and Written whose rows undo does not put back, though there is a run
	Unplanned     []Unplanned
	Snapshot      *Snapshot // after the calls; nil where the store cannot be read any more
}

// Unplanned is what went although oc's plan does not name it.
type Unplanned struct {
	Key     string // of a row; "" for a file
	Target  string // path of a file; "" for a row
	Covered bool   // undo brings it back
}

// Delegation is how a change is handed to a gateway.
type Delegation struct {
	// Call makes the calls for a plan, after everything that the plan names was copied. Its error is returned; a *gateway.Error that is Sent
	// leaves the run open, because what becomes of it is not known yet.
	Call func(ctx context.Context, s *Snapshot, p *Plan) error
	// Besides are files that the gateway writes too, such as the configuration: they are saved where they lie below the journal's roots.
	Besides []string
	// ByHand says that the change is one of sessions by name: the snapshot is Governed.
	ByHand bool
	// Anyway says that the gateway is called although the plan is empty: it may see more.
	Anyway bool
}

// planTries is how often a plan is made again because the store changed under
// it, and planPause how long oc waits before: a gateway that talks writes its
// store many times a second.
const (
	planTries = 40
	planPause = 20 * time.Millisecond
)

// Delegate plans a change as Apply does and hands it to a gateway: what the plan
// names is copied into a run, the calls are made once, and what became of rows
// and files is read and written down as the run's own state, so that undo
// compares with it (design rule 5). The journal is locked meanwhile.
//
// With an error that is a *gateway.Error and Sent the run stays open; the next
// change writes down what became of it. With any other error Done says what
// was changed nevertheless.
func (w *Worker) Delegate(ctx context.Context, t store.Target, p *Policy, make func(*Snapshot) (*Plan, error), g Delegation) (d *Done, err error) {
	j, err := w.Journal(t.Index)
	if err != nil {
		return nil, err
	}
	d = &Done{}
	release, err := j.Lock(ctx)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if d.Recovered, err = j.Reconcile(ctx); err != nil {
		return d, fmt.Errorf("close an earlier run, which only oc undo can do with the gateway stopped: %w", err)
	}
	for try := 1; ; try++ {
		err := w.plan(ctx, d, t, p, func(s *Snapshot) (*Plan, error) {
			s.Governed = g.ByHand
			return make(s)
		})
		if err != nil || d.Plan.Empty() && !g.Anyway {
			return d, err
		}
		err = w.save(ctx, j, d, g)
		if errors.Is(err, journal.ErrChanged) && try < planTries && ctx.Err() == nil {
			time.Sleep(planPause)
			continue
		}
		if errors.Is(err, journal.ErrChanged) {
			return d, &Changed{t.Index}
		}
		if err != nil {
			return d, err
		}
		break
	}
	called := g.Call(ctx, d.Snapshot, d.Plan)
	var failed *gateway.Error
	if errors.As(called, &failed) && failed.Sent {
		return d, called
	}
	// What happened is written down even when oc is told to stop now.
	if err := errors.Join(called, w.settle(context.WithoutCancel(ctx), j, d, t)); err != nil {
		return d, err
	}
	return d, w.expire(ctx, j, d)
}

// save copies what a plan names into a run.
func (w *Worker) save(ctx context.Context, j *journal.Journal, d *Done, g Delegation) error {
	if w.Purge {
		return nil
	}
	steps, err := w.delegatedSteps(d, g)
	if err != nil || len(steps) == 0 {
		return err
	}
	f := w.facts(d.Plan)
	f.Via = "gateway"
	facts, err := json.Marshal(f)
	if err != nil {
		return err
	}
	r, err := j.Save(ctx, journal.Plan{Facts: facts, Steps: steps})
	if err != nil {
		return err
	}
	d.Run = r
	if w.Group == "" {
		w.Group = r.ID
	}
	return nil
}

// delegatedSteps are what may become of the store and of the files that a plan
// names.
func (w *Worker) delegatedSteps(d *Done, g Delegation) (steps []journal.Step, err error) {
	s := d.Snapshot
	if s.Absent {
		return nil, nil
	}
	var named []string
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		if !a.Applies {
			continue
		}
		switch a.Kind {
		case DropRow, PutRow:
			named = append(named, a.Key)
		case RemoveDir:
			steps = append(steps, journal.Step{Kind: journal.RemoveDir, Phase: journal.Clear, Path: realPath(a.Target)})
		case Replace:
			steps = append(steps, journal.Step{Kind: journal.Replace, Phase: journal.Place, Path: realPath(a.Target)})
		case Move, Remove:
			if SameStore(a.Target, s.Store) {
				continue // the store, below
			}
			step := journal.Step{Kind: journal.Remove, Phase: journal.Clear, Path: realPath(a.Target)}
			if step.Facts, err = usageFacts(a); err != nil {
				return nil, err
			}
			if f := a.File(s); f != nil && f.Info != nil {
				stamp := journal.StampOf(f.Info)
				step.Expect = &stamp
			}
			steps = append(steps, step)
		}
	}
	payload, err := json.Marshal(attribution{Rows: named})
	if err != nil {
		return nil, err
	}
	stamp := journal.StampOf(s.Info)
	steps = append(steps, journal.Step{Kind: journal.Replace, Phase: journal.Swap, Path: realStore(s.Store), Expect: &stamp, Hook: rowHook, Payload: payload})
	steps = append(steps, w.besides(g, Home(w.Config, s.Store))...)
	return steps, nil
}

// settle reads the rows and files again and closes the run with that.
func (w *Worker) settle(ctx context.Context, j *journal.Journal, d *Done, t store.Target) error {
	before := d.Snapshot
	h := &Handed{Before: len(before.Rows)}
	d.Handed = h
	after, err := before, error(nil)
	if !d.Plan.Empty() || !before.still() { // else there is nothing that could have come of it
		after, err = Take(ctx, w.Config, t, Alone(), w.Machine, w.Now())
	}
	switch {
	case err != nil && !isGone(t.Index): // the agent may be gone with its store
		d.Plan.Problems = append(d.Plan.Problems, fmt.Sprintf("what became of it cannot be read: %v", err))
	case err == nil && !after.Absent:
		h.Snapshot, h.After = after, len(after.Rows)
	}
	planned, files := map[string]bool{}, map[string]bool{}
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		if !a.Applies {
			continue
		}
		switch a.Kind {
		case DropRow, PutRow:
			planned[a.Key] = true
			h.weigh(before, after, a)
		case Move, Remove:
			files[a.Target] = true
			if isGone(a.Target) {
				h.Gone++
			}
		}
	}
	if err != nil && !isGone(t.Index) {
		after = nil
	}
	for i := range before.Rows {
		key := before.Rows[i].Key
		if still(after, key) || err != nil && !isGone(t.Index) {
			continue
		}
		h.Dropped = append(h.Dropped, key)
		if !planned[key] {
			h.Unplanned = append(h.Unplanned, Unplanned{Key: key, Covered: d.Run != nil})
		}
	}
	made := h.files(before, after, files, d.Run != nil)
	if d.Run == nil {
		return nil
	}
	facts := FactsOf(d.Run, "")
	facts.Rows, facts.Files = len(h.Dropped)+len(h.Written), h.Gone
	if said, err := json.Marshal(facts); err == nil {
		d.Run.Facts = said
	}
	changed, err := j.Settle(ctx, d.Run, made)
	if err != nil {
		return err
	}
	if !changed {
		d.Run = nil
	}
	return nil
}

// weigh notes what became of a planned row.
func (h *Handed) weigh(before, after *Snapshot, a *Action) {
	if after == nil {
		return
	}
	was, _ := before.Row(a.Key)
	is, there := after.Row(a.Key)
	switch {
	case !there: // told among those that are gone
	case a.Kind == PutRow && (was == nil || !sameJSON(was.Val, is.Val)):
		h.Written = append(h.Written, a.Key)
	default:
		h.NotDone = append(h.NotDone, a.Key)
	}
}

// files notes the archives that the gateway made, and files that went beyond the plan. made are the steps that an undo needs besides.
func (h *Handed) files(before, after *Snapshot, planned map[string]bool, saved bool) (made []journal.Step) {
	was := map[string]*File{}
	for i := range before.Files {
		was[before.Files[i].Path] = &before.Files[i]
	}
	archives := map[string][]*File{}
	if after != nil {
		for i := range after.Files {
			f := &after.Files[i]
			if was[f.Path] == nil && f.Class == jsonfile.Archive && f.direct {
				archives[f.Session] = append(archives[f.Session], f)
			}
		}
	}
	for i := range before.Files {
		f := &before.Files[i]
		if f.Class == jsonfile.Temp || f.Class == jsonfile.Lock || f.Class == jsonfile.Store || !isGone(f.Path) {
			continue
		}
		archive := archiveOf(f, archives[f.Session])
		switch {
		case archive != nil && planned[f.Path]:
			made = append(made, journal.Step{Kind: journal.Create, Path: realPath(archive.Path)})
		case archive != nil:
			made = append(made, journal.Step{Kind: journal.Move, Path: realPath(f.Path), To: realPath(archive.Path)})
		}
		if archive != nil {
			h.Archives = append(h.Archives, archive.Path)
		} else {
			h.Freed += f.Size
		}
		if saved && (planned[f.Path] || archive != nil) {
			h.Covered++
		}
		if !planned[f.Path] {
			h.Unplanned = append(h.Unplanned, Unplanned{Target: f.Path, Covered: saved && archive != nil})
		}
	}
	return made
}

// archiveOf is the new archive that a file became: a name goes on, and the bytes are the same.
func archiveOf(f *File, of []*File) *File {
	for _, a := range of {
		if a.Size == f.Size && strings.HasPrefix(a.Base, f.Base+".") {
			return a
		}
	}
	return nil
}

func still(s *Snapshot, key string) bool {
	if s == nil {
		return false
	}
	_, ok := s.Row(key)
	return ok
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// attribution says which rows of a store a delegated run was to change.
type attribution struct {
	Rows []string `json:"rows"`
}

// Attribute makes a rowMerger a journal.Attributor: the store as it is now, but
// with the rows that are gone since, and those that the run was to change, as
// they were. What a gateway wrote meanwhile in other rows is not the run's.
func (rowMerger) Attribute(s journal.Step, before, now []byte) ([]byte, error) {
	var planned attribution
	if len(s.Payload) > 0 {
		if err := json.Unmarshal(s.Payload, &planned); err != nil {
			return nil, fmt.Errorf("which rows were to change cannot be read: %w", err)
		}
	}
	var was, is rowSet
	if err := was.read(before); err != nil {
		return nil, fmt.Errorf("the store before the run is damaged: %w", err)
	}
	if err := is.read(now); err != nil {
		return nil, fmt.Errorf("the store is damaged: %w", err)
	}
	keep := map[string][]byte{}
	for name, v := range is.rows {
		keep[name] = v
	}
	changed := false
	for _, name := range was.names {
		current, there := is.rows[name]
		if !there || slices.Contains(planned.Rows, name) && !sameJSON(current, was.rows[name]) {
			keep[name], changed = was.rows[name], true
		}
	}
	for _, name := range planned.Rows {
		if _, old := was.rows[name]; !old && is.rows[name] != nil {
			delete(keep, name)
			changed = true
		}
	}
	if !changed {
		return now, nil
	}
	return was.print(&is, keep), nil
}

// sameJSON tells whether two values are the same but for white space.
func sameJSON(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(span.AppendValue(nil, a, 0), span.AppendValue(nil, b, 0))
}

var _ journal.Attributor = rowMerger{}
