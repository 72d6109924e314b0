package maintenance

import (
	"bytes"
	"path/filepath"
	"strings"

	"oc/maintenance/journal"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// Lost looks for a session in what runs of oc have saved: rows of a store that
// a run dropped, by key, session id or label, the newest run first. What cannot
// be read of a run is passed over; ok is false where none has it.
func (w *Worker) Lost(store, word string) (l Lost, ok bool) {
	past, _ := w.Past(store)
	for i := len(past) - 1; i >= 0; i-- {
		p := &past[i]
		if !SameStore(p.Facts.Store, store) || p.Facts.Rows == 0 || p.State != journal.Done {
			continue
		}
		r, err := p.Journal.Load(p.ID)
		if err != nil {
			continue
		}
		for j := range r.Steps {
			s := &r.Steps[j]
			if s.Hook != rowHook || s.Skipped != "" {
				continue
			}
			var before bytes.Buffer
			if p.Journal.Before(r, s, &before) != nil {
				continue
			}
			if key, val, id, found := sought(before.Bytes(), word); found {
				return Lost{Archive: archiveIn(r, id), Key: key, Row: val, Run: r.ID}, true
			}
		}
	}
	return Lost{}, false
}

// sought finds the row that a word means in the text of a store.
func sought(text []byte, word string) (key string, val []byte, id string, found bool) {
	canonical := row.Canonical(word)
	span.Each(text, 0, func(k, v []byte) error { //nolint:errcheck // what cannot be read is passed over
		name, _ := span.Text(k)
		e, err := row.New(name, bytes.Clone(v))
		if err != nil {
			return nil
		}
		label, _ := e.Text(row.Label)
		switch {
		case name == word, row.Canonical(name) == canonical, word != "" && strings.EqualFold(e.ID(), word), word != "" && span.Trim(label) == word:
			if !found || name == word {
				key, val, id, found = name, e.Val, e.ID(), true
			}
		}
		return nil
	})
	return key, val, id, found
}

// archiveIn is the archive that a run made of a session's transcript.
func archiveIn(r *journal.Run, id string) string {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Kind == journal.Move && id != "" && s.Skipped == "" && jsonfile.NameOf(filepath.Base(s.To), "").Session == id {
			return filepath.Base(s.To)
		}
	}
	return ""
}
