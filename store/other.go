package store

import "context"

// OtherEra opens the store of the era that is not read, where it holds
// sessions; nil where it does not. Its sessions are Beside. The errors are
// those of Open.
func (s *Sessions) OtherEra(ctx context.Context) (*Sessions, error) {
	o := s.Other
	if o == nil || o.Rows == 0 {
		return nil, nil
	}
	other, err := Open(ctx, s.config, o.target(s.Agent))
	other.Beside = true
	return other, err
}

// target is the store as one that is named by its path.
func (o *Other) target(agent string) Target {
	t := Target{Agent: agent, Databases: []string{o.Path}, Named: true}
	if o.Era == FileEra {
		t = Target{Agent: agent, Index: o.Path, Named: true}
	}
	return t
}

// Twins are the rows of other stores of the agent that are the same session
// by key, as OpenClaw takes it.
func (r *Row) Twins(others []*Sessions) (twins []*Row) {
	s := r.sessions
	mine := StoredKey(s.config, s.Agent, r.Key)
	for _, o := range others {
		if o == s || o.Agent != s.Agent {
			continue
		}
		for i := range o.Rows {
			if t := &o.Rows[i]; t.Key == r.Key || StoredKey(s.config, s.Agent, t.Key) == mine {
				twins = append(twins, t)
			}
		}
	}
	return twins
}

// A pair is what a session is known by when both eras have it.
type pair struct{ agent, key, id string }

// Once parts the rows of both eras: those of first, and of those of second the
// ones that first does not have under the same key and session id. The rest
// comes in copies, by the row of first that has the same.
func Once(first, second []*Row) (only []*Row, copies map[*Row]*Row) {
	of := func(r *Row) pair { return pair{r.sessions.Agent, r.Key, r.ID()} }
	have := make(map[pair]*Row, len(first))
	for _, r := range first {
		have[of(r)] = r
	}
	copies = map[*Row]*Row{}
	for _, r := range second {
		if twin := have[of(r)]; twin != nil {
			copies[twin] = r
		} else {
			only = append(only, r)
		}
	}
	return only, copies
}
