package maintenance

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"oc/maintenance/journal"
	"oc/store"
)

// A Past is a run and the journal that keeps it.
type Past struct {
	*journal.Run
	Facts   Facts
	Home    string // the directory in whose .oc it is
	Journal *journal.Journal
}

// Possible says why a run cannot be taken back; "" where it can.
func (p *Past) Possible() string {
	switch {
	case p.Unfinished():
		return "it was cut short; oc undo finishes it, or rolls it back, first"
	case p.State == journal.Undone:
		return "it is taken back already"
	case p.State != journal.Done:
		return "it is " + string(p.State)
	case p.Purge:
		return "nothing was saved"
	case p.Expired:
		return "its saved bytes were given up"
	}
	return ""
}

// Word is what Possible says, for a table.
func (p *Past) Word() string {
	switch {
	case p.Unfinished():
		return "cut short"
	case p.State == journal.Undone:
		return "taken back"
	case p.State != journal.Done:
		return string(p.State)
	case p.Purge:
		return "purged"
	case p.Expired:
		return "expired"
	}
	return "possible"
}

// Group names the command that made the run, and perhaps others.
func (p *Past) Group() string { return cmp.Or(p.Facts.Group, p.ID) }

// Recover finishes or rolls back what was cut short of the runs that are kept
// with those of a store, an index or a database; when dry it only says so.
func (w *Worker) Recover(ctx context.Context, store string, dry bool) (_ []journal.Recovery, failed error) {
	store = cmp.Or(store, w.Config.StorePath(w.Config.DefaultAgent()))
	of := w.Journal
	if filepath.Ext(store) == ".sqlite" {
		of = w.journalOf
	}
	j, err := of(store)
	if err != nil {
		return nil, err
	}
	if dry {
		return j.Foresee()
	}
	release, err := w.hold()
	if err != nil {
		return nil, err
	}
	defer func() { failed = errors.Join(failed, release()) }()
	all, err := w.finish(ctx, j)
	unlock(all, Home(w.Config, store))
	return all, err
}

// Past lists the runs of the journal that keeps those of a store, "" for the
// default agent's, the oldest first. What cannot be read of them is returned
// beside.
func (w *Worker) Past(store string) (all []Past, problems []error) {
	if store == "" {
		store = w.Config.StorePath(w.Config.DefaultAgent())
	}
	j, err := w.Journal(store)
	if err != nil {
		return nil, []error{err}
	}
	runs, problems := j.List()
	home := Home(w.Config, store)
	for i := range runs {
		all = append(all, Past{&runs[i], FactsOf(&runs[i], home), home, j})
	}
	return all, problems
}

// Last is the runs of the last command that can be taken back, the newest
// first: a command may have made one for each store.
func Last(all []Past, fits func(*Past) bool) []Past {
	var last []Past
	group := ""
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i]
		if p.Possible() != "" || fits != nil && !fits(&p) {
			continue
		}
		of := p.Group()
		if group == "" {
			group = of
		}
		if of != group {
			break
		}
		last = append(last, p)
	}
	return last
}

// Undo takes a run back. What has changed since is left and said. A database in
// quarantine is left alone: the error is a *Quarantined.
func (p *Past) Undo(ctx context.Context, dry bool) (*journal.Run, []journal.Outcome, error) {
	if filepath.Ext(p.Facts.Store) == ".sqlite" {
		if why, err := store.Quarantine(ctx, p.Home, p.Facts.Store); err != nil {
			return nil, nil, err
		} else if why != "" {
			return nil, nil, &Quarantined{p.Facts.Store, why}
		}
	}
	if !dry {
		if _, err := p.Journal.Recover(ctx); err != nil {
			return nil, nil, err
		}
	}
	return p.Journal.Undo(ctx, p.ID, journal.UndoOptions{DryRun: dry})
}

// Conflicts are the outcomes that left something as it is.
func Conflicts(all []journal.Outcome) []journal.Outcome {
	return slices.DeleteFunc(slices.Clone(all), func(o journal.Outcome) bool {
		return o.Result != journal.Conflict && o.Result != journal.Lost && len(o.Notes) == 0
	})
}
