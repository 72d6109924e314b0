package doctor

import (
	"errors"

	"oc/store/agentdb"
	"oc/transcript"
)

// batch is how many windows of a database are read in one transaction: a long
// one would keep its writer from tidying up.
const batch = 100

// windows looks at every transcript in a database.
func (x *exam) windows(s *site) {
	path := s.database.Path
	var all []agentdb.Window
	err := agentdb.Read(x.ctx, path, func(db *agentdb.DB) (err error) {
		all, err = db.Transcripts()
		return err
	})
	for at := 0; err == nil && at < len(all); at += batch {
		var jobs []job
		err = agentdb.Read(x.ctx, path, func(db *agentdb.DB) error {
			jobs = jobs[:0]
			for _, w := range all[at:min(at+batch, len(all))] {
				j := job{s: s, path: path, key: w.Key, id: w.SessionID, window: true, secrets: x.wanted[Secret]}
				if age := x.Now.UnixMilli() - max(w.TranscriptAt, w.UpdatedAt); age < recent {
					j.live = "it was written in the last five minutes"
				}
				var cold *agentdb.ColdError
				switch err := j.readWindow(db); {
				case errors.As(err, &cold):
					j.note(Finding{Code: TranscriptUnreadable, Subject: Subject{ID: w.SessionID}, Evidence: []string{"its archive " + cold.Path + " cannot be read: " + reason(cold.Err)}})
				case err != nil:
					return err
				}
				j.inFlight()
				jobs = append(jobs, j)
			}
			return x.ctx.Err()
		})
		for i := range jobs {
			if x.tell(&jobs[i]); all[at+i].Current {
				s.learn(&jobs[i])
			}
		}
	}
	if err != nil && x.ctx.Err() == nil {
		x.find(Finding{Code: TranscriptUnreadable, Subject: s.at(path), Evidence: []string{err.Error()}})
	}
}

// readWindow reads every row of a transcript in a database.
func (j *job) readWindow(db *agentdb.DB) error {
	tree := transcript.Tree{Rules: transcript.DatabaseRules}
	var linked []transcript.Finding
	s := transcript.Scanner{Tree: &tree, Report: func(f transcript.Finding) {
		if aboutLinks[f.Code] {
			linked = append(linked, f)
			return
		}
		j.line(f)
	}}
	rows := 0
	err := s.Rows(func(yield func([]byte) error) error {
		return db.Events(j.id, func(e agentdb.Event) error {
			if rows++; e.Damage != nil {
				j.line(transcript.Finding{Code: transcript.DamagedRow, At: transcript.Place{Line: rows}, Why: e.Damage.Error()})
				return yield(nil)
			}
			return yield(e.Line)
		})
	}, func(r *transcript.Row) error {
		j.look.row(r)
		if r.Kind == transcript.Message && !r.Blank && r.Err == nil {
			j.audit(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rows == 0 {
		j.findings, j.counts = nil, nil // a session that was begun and has no row yet
		return nil
	}
	j.links(&tree, linked)
	p := transcript.Pairs{Report: j.line}
	if err := db.Active(j.id, func(e agentdb.Event) error {
		if entry, err := transcript.Parse(e.Line); err == nil {
			p.Add(&entry, transcript.Place{Line: int(e.Seq) + 1})
		}
		return nil
	}); err != nil {
		return err
	}
	p.Check()
	j.whole(s.Stats())
	return nil
}
