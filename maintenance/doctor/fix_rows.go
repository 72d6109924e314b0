package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"oc/maintenance"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// row is the row of a finding, which nobody works on.
func (r *repair) row(key string) (*maintenance.Row, error) {
	if r.closed != nil {
		return nil, r.closed
	}
	i := r.s.live()
	if i == nil {
		return nil, errors.New("the sessions are in a database, which oc does not mend")
	}
	x, ok := i.Row(key)
	if !ok {
		return nil, errors.New("the row is not there any more")
	}
	if why := r.m.Busy(x); why != "" {
		return nil, errors.New("the session is in use: " + why)
	}
	return x, nil
}

// repoint gives a row the path of its own transcript: from the directory of
// the store on, where that is what has moved, so that the next move breaks
// nothing.
func (r *repair) repoint(f Finding) error {
	x, err := r.row(f.Key)
	if err != nil {
		return err
	}
	if x.Mend == "" {
		return errors.New("its own transcript is not there")
	}
	to := x.Mend
	if f.Code == PathMoved {
		to = filepath.Base(to)
	}
	r.m.Edit(x.Key, maintenance.Rule(f.Code), fmt.Sprintf("it names %s, and its transcript is %s", x.File, x.Mend), row.Change{Name: row.SessionFile.String(), Val: span.Quote(nil, to)})
	return nil
}

// endRun writes down that a run is over: done where the row says when it
// ended, else failed at its last sign of life.
func (r *repair) endRun(f Finding) error {
	x, err := r.row(f.Key)
	if err != nil {
		return err
	}
	changes, said := endOf(&x.Entry, max(x.Written, x.Updated))
	r.m.Edit(x.Key, maintenance.Rule(f.Code), said+": "+strings.Join(f.Evidence, "; "), changes...)
	return nil
}

// merge makes one row of those that OpenClaw takes for the same: the one that
// was used last gets the key under which OpenClaw looks, and what only the
// others say of the same conversation. A conversation of its own keeps a row,
// under the key that its id has.
func (r *repair) merge(f Finding) error {
	last, err := r.row(f.Key)
	if err != nil {
		return err
	}
	key := store.StoredKey(r.x.Config, r.s.Agent, f.Key)
	var others []*maintenance.Row
	for i := range r.s.index.Rows {
		x := &r.s.index.Rows[i]
		if x.Key == last.Key || r.x.sign(r.s, x.Key) != r.x.sign(r.s, last.Key) {
			continue
		}
		if store.StoredKey(r.x.Config, r.s.Agent, x.Key) != key {
			return fmt.Errorf("OpenClaw takes %s for another session", x.Key)
		}
		if _, err := r.row(x.Key); err != nil {
			return fmt.Errorf("%s: %w", x.Key, err)
		}
		others = append(others, x)
	}
	rule := maintenance.Rule(f.Code)
	// Each that has a conversation of its own gets a row for it, first of all: the others may get its key.
	type own struct {
		key string
		val []byte
	}
	var owns []own
	val := r.m.Value(last.Key)
	for _, x := range others {
		if x.ID == "" || x.ID == last.ID {
			for _, m := range span.Members(r.m.Value(x.Key)) {
				if span.Member(val, m.Name) == nil {
					val = row.Edit(val, row.Change{Name: m.Name, Val: m.Val})
				}
			}
			continue
		}
		its := "agent:" + row.AgentID(r.s.Agent) + ":explicit:" + span.Lower(x.ID)
		if r.m.Value(its) != nil {
			return fmt.Errorf("the conversation of %s needs the key %s, which is in use", x.Key, its)
		}
		kept := r.m.Value(x.Key)
		if a, ok := x.Text(row.Label); ok {
			if b, _ := last.Text(row.Label); a == b { // only one session has a label
				kept = row.Edit(kept, row.Change{Name: row.Label.String()})
			}
		}
		owns = append(owns, own{its, kept})
	}
	said := fmt.Sprintf("%s means the same, and was used last", last.Key)
	r.m.Put(key, val, rule, said)
	for _, o := range owns {
		r.m.Put(o.key, o.val, rule, "it keeps the other conversation")
	}
	for _, x := range append(others, last) {
		if x.Key != key {
			r.m.Retire(x.Key, rule, "its conversation goes on as "+key)
		}
	}
	return nil
}

// adopt makes a row for a transcript that none names. It is marked by its
// name, and its key is the one that OpenClaw gives to a session that is named
// by its id alone; it counts as used now, so that no age rule takes it at once.
func (r *repair) adopt(f Finding) error {
	if r.closed != nil {
		return r.closed
	}
	i := r.s.live()
	if i == nil {
		return errors.New("the index is not one that rows can be added to")
	}
	base := filepath.Base(f.File)
	id := jsonfile.SessionOf(strings.TrimSuffix(base, ".jsonl"))
	if !row.IsTranscriptID(id) {
		return errors.New("its name holds no session id")
	}
	for k := range i.Rows {
		if i.Rows[k].ID == id {
			return fmt.Errorf("the session %s has its id", i.Rows[k].Key)
		}
	}
	info, err := os.Lstat(f.File)
	if err != nil {
		return err
	}
	if why := r.inUse(f.File, info); why != "" {
		return errors.New("somebody may be writing it: " + why)
	}
	g, err := glance(f.File)
	if err != nil {
		return err
	}
	key := "agent:" + row.AgentID(r.s.Agent) + ":explicit:" + span.Lower(id)
	if r.m.Value(key) != nil {
		return fmt.Errorf("the key %s is in use already", key)
	}
	name := "history"
	if g.Last > 0 {
		name += " until " + when(float64(g.Last))[:10]
	}
	changes := []row.Change{
		{Name: row.SessionID.String(), Val: span.Quote(nil, id)},
		{Name: row.UpdatedAt.String(), Val: span.AppendFloat(nil, r.x.nowMs())},
		{Name: row.DisplayName.String(), Val: span.Quote(nil, name)},
	}
	if base != id+".jsonl" {
		changes = append(changes, row.Change{Name: row.SessionFile.String(), Val: span.Quote(nil, base)})
	}
	r.m.Edit(key, maintenance.Rule(f.Code), "the transcript "+base+" has no row", changes...)
	return nil
}
