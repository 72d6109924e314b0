package store

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/transcript"
)

// ByID are the conversations in the place of a store that have a session id,
// whether or not a row names it: transcripts, archives of them and windows of
// the database, the oldest first. What no row has as its own comes with the
// reason "unlinked".
func (s *Sessions) ByID(ctx context.Context, id string) ([]*Conversation, error) {
	if id = strings.TrimSpace(id); id == "" {
		return nil, nil
	}
	items, problems := jsonfile.List(s.Dir(), filepath.Base(s.Place().Store))
	var all []*Conversation
	for _, it := range items {
		if !strings.EqualFold(it.Session, id) || it.Class != jsonfile.Live && it.Class != jsonfile.Archive || it.Link {
			continue
		}
		c := &Conversation{ID: it.Session, Reason: it.Reason, Path: it.Path, At: it.At, Bytes: it.Size, expand: compressed(it.Path)}
		if it.Class == jsonfile.Live {
			c.Reason, c.At = "unlinked", it.ModTime
		}
		if s.Era == SQLiteEra {
			c.Rules = transcript.DatabaseRules
		}
		all = append(all, c)
	}
	if s.Era == SQLiteEra {
		err := agentdb.Read(ctx, s.Path, func(db *agentdb.DB) error {
			size, err := db.Size(id)
			if err != nil || size.Events == 0 {
				return err
			}
			all = append(all, &Conversation{
				ID: id, Reason: "earlier", Path: s.Path, At: millis(size.Last), Bytes: size.Bytes, Rules: transcript.DatabaseRules, kept: inWindow,
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 && len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	slices.SortStableFunc(all, func(a, b *Conversation) int { return a.At.Compare(b.At) })
	return all, nil
}
