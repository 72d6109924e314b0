package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/agentdb"
	"oc/transcript"
)

// A fix mends what a check finds.
type fix struct {
	remedy Remedy
	plan   func(*repair, Finding) error // adds to the plan; an error says why it is left; nil for what is in databases alone
}

// fixOf is how a check is mended by oc itself; the zero fix where it is not.
func fixOf(c Code) fix {
	switch c {
	case LockDead, LockRecycled, LockAlone, LockUnreadable:
		return fix{Safe, (*repair).lock}
	case Code(transcript.NULTail), Code(transcript.TornTail):
		return fix{Safe, (*repair).transcript}
	case StaleTemp:
		return fix{Safe, (*repair).temp}
	case ModeOpen:
		return fix{Safe, (*repair).mode}
	case ConfigRetiredKey:
		return fix{Safe, (*repair).retire}
	case TranscriptMisplaced:
		return fix{Safe, (*repair).repoint}
	case PathMoved:
		return fix{Preview, (*repair).repoint}
	case KeyAlias:
		return fix{Preview, (*repair).merge}
	case RunDead, RunContradictory:
		return fix{Preview, (*repair).endRun}
	case Code(agentdb.RowDoubted), Code(agentdb.BrokenIndex), Code(agentdb.OrphanIndex):
		return fix{Safe, nil} // see mendDatabase
	case Code(agentdb.ColumnsDiffer), Code(agentdb.LineageDiffers), Code(agentdb.NoWindow):
		return fix{Preview, nil}
	case UnlinkedHistory:
		return fix{Preview, (*repair).adopt}
	case Code(transcript.OrphanParent), Code(transcript.Cycle), Code(transcript.FirstKept), Code(transcript.DuplicateSame), Code(transcript.OpenCall), Code(transcript.LostResult),
		Code(transcript.NoHeader), Code(transcript.BadHeader), Code(transcript.BadImage):
		return fix{Preview, (*repair).transcript}
	}
	return fix{}
}

// remedyOf says how a check is mended by oc itself: Safe or Preview, "" where
// it is not.
func remedyOf(c Code) Remedy { return fixOf(c).remedy }

// SafeCodes are the checks that are mended without being named.
func SafeCodes() (codes []Code) {
	for _, c := range Checks() {
		if remedyOf(c.Code) == Safe {
			codes = append(codes, c.Code)
		}
	}
	return codes
}

// ByHandOnly is a code that oc does not mend.
type ByHandOnly struct{ Check Check }

func (e *ByHandOnly) Error() string {
	if e.Check.Command == "" {
		return fmt.Sprintf("oc does not mend %s: there is nothing to be done about it", e.Check.Code)
	}
	return fmt.Sprintf("oc does not mend %s; what to do: %s", e.Check.Code, e.Check.Command)
}

// Fixable holds that oc mends each of some codes. The error is a *ByHandOnly.
func Fixable(codes []Code) error {
	for _, c := range Checks() {
		if slices.Contains(codes, c.Code) && remedyOf(c.Code) == "" {
			return &ByHandOnly{c}
		}
	}
	return nil
}

// A Mended is one plan of repairs, and what came of it.
type Mended struct {
	Agent, Store string // "" for the installation as a whole
	Findings     []Finding
	Left         []Left
	Done         *maintenance.Done // nil where nothing could be planned
	Err          error
}

// Left is a finding that stays, and why.
type Left struct {
	Finding
	Why string
}

// A repair puts one plan together.
type repair struct {
	x *exam
	s *site // nil for the installation as a whole
	m *maintenance.Mending

	closed error // why no row is changed; nil where rows may be

	cures map[string]*cure // of transcripts, by path
	order []string         // of cures

	configs map[string]*configEdit // by path
}

// Fix mends what has one of the codes, store by store, each by a plan that the
// worker applies and undo takes back; when dry it only plans. What is wrong is
// found anew for it, in the very snapshot that the plan is made of. A store
// that fails does not keep the others from being mended; the error is that of
// ctx.
func Fix(ctx context.Context, o Options, codes []Code, w *maintenance.Worker, dry bool) (all []Mended, err error) {
	o.Sized = nil
	isLock := func(c Code) bool {
		return slices.ContainsFunc(lockFamily.Checks, func(k Check) bool { return k.Code == c })
	}
	first, rest := []Code{}, []Code{}
	for _, c := range codes {
		if isLock(c) || c == ModeOpen {
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	// Modes go first, because a run changes a file once, and so do dead locks.
	for _, part := range [][]Code{first, rest} {
		o.Only = part
		seen, bases := map[string]bool{}, map[string]bool{}
		for _, t := range o.Targets {
			if len(part) == 0 {
				break
			}
			dir := dirOf(t)
			m := mend(ctx, o, &t, w, dry, !seen[dir])
			if seen[dir] = true; m != nil {
				all = append(all, *m)
			}
			if m := mendDatabase(ctx, o, t, w, dry, bases); m != nil {
				all = append(all, *m)
			}
			if err := ctx.Err(); err != nil {
				return all, err
			}
		}
		if o.State && len(part) > 0 {
			if m := mend(ctx, o, nil, w, dry, true); m != nil {
				all = append(all, *m)
			}
		}
	}
	return all, ctx.Err()
}

// dirOf is the directory of a store's transcripts.
func dirOf(t store.Target) string {
	if t.Index != "" {
		return filepath.Dir(t.Index)
	}
	return config.ArtifactDir(t.Databases[0])
}

// mend makes and applies the plan for one store, or with t nil for the
// installation as a whole; nil where there is nothing to be done. alone says
// that no store before had the same directory.
func mend(ctx context.Context, o Options, t *store.Target, w *maintenance.Worker, dry, alone bool) *Mended {
	out := &Mended{}
	home := store.Target{Agent: o.Config.DefaultAgent(), Index: o.Config.StorePath(o.Config.DefaultAgent())}
	if t != nil {
		home = *t
		home.Index = filepath.Join(dirOf(*t), config.StoreFile)
		if t.Index != "" {
			home.Index = t.Index
		}
		out.Agent, out.Store = t.Agent, home.Index
	}
	o.Targets, o.State = nil, t == nil
	beside := maintenance.Alone()
	beside.Beside = true
	policy := newExam(ctx, o).policy()
	if t == nil || t.Index == "" {
		policy = beside
	}
	plan := func(snapshot *maintenance.Snapshot) (*maintenance.Plan, error) {
		r := &repair{x: newExam(ctx, o), m: maintenance.Mend(snapshot, o.Now)}
		if t != nil {
			if !policy.Beside {
				r.x.given = snapshot
			} else if t.Index != "" {
				r.closed = maintenance.Reachable(o.Config, t.Index, maintenance.Alone())
			}
			r.s = r.x.visit(*t)
			r.s.alone = alone
			r.x.sites = []*site{r.s}
			r.x.measure()
		}
		if err := r.x.look(); err != nil {
			return nil, err
		}
		out.Findings, out.Left = nil, nil
		// Keys change last: what is found of a row is found by the key that it has.
		all := slices.Clone(r.x.report.Findings)
		slices.SortStableFunc(all, func(a, b Finding) int { return last(a) - last(b) })
		for _, f := range all {
			if f.Remedy != Safe && f.Remedy != Preview || rowsFix(f.Code) && r.s != nil && r.s.database != nil {
				continue
			}
			if err := fixOf(f.Code).plan(r, f); err != nil {
				out.Left = append(out.Left, Left{f, err.Error()})
			} else {
				out.Findings = append(out.Findings, f)
			}
		}
		r.settle()
		stays := r.heal()
		out.Findings = slices.DeleteFunc(out.Findings, func(f Finding) bool {
			why := stays(f)
			if why != "" {
				out.Left = append(out.Left, Left{f, why})
			}
			return why != ""
		})
		return r.m.Plan(), ctx.Err()
	}
	apply := func() (*maintenance.Done, error) {
		if !dry {
			files := *w
			files.Hold = nil // gateways of the file era know no such lock
			d, err := files.Apply(ctx, home, policy, plan)
			w.Group = files.Group
			return d, err
		}
		d := &maintenance.Done{}
		err := maintenance.Reachable(o.Config, home.Index, policy)
		if err != nil {
			return d, err
		}
		if d.Snapshot, err = maintenance.Take(ctx, o.Config, home, policy, o.Machine, o.Now); err == nil {
			d.Plan, err = plan(d.Snapshot)
		}
		return d, err
	}
	if out.Done, out.Err = apply(); unfit(out.Err) {
		policy = beside
		out.Done, out.Err = apply()
	}
	if out.Err == nil && len(out.Findings)+len(out.Left) == 0 {
		return nil
	}
	return out
}

// last is 1 for what is mended after all else.
func last(f Finding) int {
	if f.Code == KeyAlias {
		return 1
	}
	return 0
}

// unfit tells whether a store is one that is not to be changed, which does not
// keep the files beside it from being mended.
func unfit(err error) bool {
	var damage *store.Damage
	var missing *maintenance.Missing
	var alien *maintenance.NotStore
	var astray *maintenance.Astray
	return errors.As(err, &damage) || errors.As(err, &missing) || errors.As(err, &alien) || errors.As(err, &astray)
}

// Asks tells whether any of some codes is mended only after its plan was seen.
func Asks(codes []Code) bool {
	return slices.ContainsFunc(codes, func(c Code) bool { return remedyOf(c) == Preview })
}

// ReadsWhole tells whether transcripts have to be read whole to find all that
// has one of the codes.
func ReadsWhole(codes []Code) bool {
	return slices.ContainsFunc(codes, func(c Code) bool {
		return slices.ContainsFunc(transcriptFamily.Checks, func(k Check) bool { return k.Code == c }) && remedyOf(c) == Preview
	})
}
