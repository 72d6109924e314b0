package store

import (
	"context"
	"slices"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// Find is the rows that a word on a command line means: tried as an exact key,
// as another form of a key, as a session id, as a label. The first of these
// that fits anything decides. A key without an agent is one of the given agent.
func Find(c *config.Config, agent string, all []*Sessions, word string) []*Row {
	pick := func(fits func(s *Sessions, r *Row) bool) (found []*Row) {
		for _, s := range all {
			for i := range s.Rows {
				if r := &s.Rows[i]; fits(s, r) {
					found = append(found, r)
				}
			}
		}
		return found
	}
	word = span.Trim(word)
	canonical := row.Canonical(word)
	for _, fits := range []func(s *Sessions, r *Row) bool{
		func(_ *Sessions, r *Row) bool { return r.Key == word },
		func(s *Sessions, r *Row) bool {
			key := row.Canonical(r.Key)
			return key == canonical || StoredKey(c, s.Agent, r.Key) == StoredKey(c, agent, word)
		},
		func(_ *Sessions, r *Row) bool { return r.ID() != "" && strings.EqualFold(r.ID(), word) },
		func(_ *Sessions, r *Row) bool {
			label, ok := r.Text(row.Label)
			return ok && span.Trim(label) == word
		},
	} {
		if found := pick(fits); len(found) > 0 {
			return found
		}
		if word == "" { // it can be a key, but no other form of one
			return nil
		}
	}
	return nil
}

// Elsewhere looks for a word in the stores that are not read: those of the
// other era, and those of agents that the configuration does not name.
func Elsewhere(ctx context.Context, c *config.Config, agent string, all []*Sessions, word string) (found []*Row) {
	var targets []Target
	for _, s := range all {
		if o := s.Other; o != nil && o.Rows != 0 {
			targets = append(targets, o.target(s.Agent))
		}
	}
	for _, t := range append(targets, StrangerTargets(c)...) {
		if s, err := Open(ctx, c, t); err == nil {
			found = append(found, Find(c, agent, []*Sessions{s}, word)...)
		}
	}
	return found
}

// Aliases are the other keys of the store that mean the same session as r's
// (field-reports.md S15).
func (r *Row) Aliases() (keys []string) {
	s := r.sessions
	mine := StoredKey(s.config, s.Agent, r.Key)
	for i := range s.Rows {
		if o := &s.Rows[i]; o.Key != r.Key && StoredKey(s.config, s.Agent, o.Key) == mine {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// Children are the sessions of the store that name r as their parent or as
// their spawner.
func (r *Row) Children() (keys []string) {
	s := r.sessions
	mine := StoredKey(s.config, s.Agent, r.Key)
	for i := range s.Rows {
		o := &s.Rows[i]
		for _, f := range []row.Field{row.SpawnedBy, row.ParentSessionKey} {
			if key, ok := o.Text(f); ok && StoredKey(s.config, s.Agent, key) == mine && !slices.Contains(keys, o.Key) {
				keys = append(keys, o.Key)
			}
		}
	}
	return keys
}

// Near is the key that looks most like a word; "" where none does.
func Near(all []*Sessions, word string) string {
	low, best, key := span.Lower(span.Trim(word)), 0, ""
	for _, s := range all {
		for i := range s.Rows {
			k := s.Rows[i].Key
			n := 0
			for n < len(k) && n < len(low) && k[len(k)-1-n] == low[len(low)-1-n] {
				n++
			}
			if strings.Contains(span.Lower(k), low) {
				n += len(low)
			}
			if n > best && n >= 3 && n*2 >= len(low) {
				best, key = n, k
			}
		}
	}
	return key
}
