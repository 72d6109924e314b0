package doctor

import (
	"time"

	"oc/gateway"
	"oc/store/lock"
	"oc/store/row"
)

// Sessions that say they are running (field-reports.md S14). The verdict is
// that of status and of sessions --stuck.
const (
	RunDead          Code = "run-dead"
	RunContradictory Code = "run-contradictory"
	RunUnknown       Code = "run-unknown"
)

var runFamily = Family{
	Name: "runs",
	Checks: []Check{
		{
			Code: RunDead, Severity: Warn, Remedy: ByHand,
			Says:    "a session says that it is running, and its run seems to be dead",
			Matters: "Messages can wait for it without end, and its parent never hears that it is over.",
			Command: "oc sessions abort KEY while a gateway lives; oc sessions reset KEY begins anew",
		},
		{
			Code: RunContradictory, Severity: Warn, Remedy: ByHand,
			Says:    "a session says that it is running, and also that it is over",
			Matters: "Lists and limits count a run that there is not.",
			Command: "oc sessions show KEY; the session's next run sets it right",
		},
		{
			Code: RunUnknown, Severity: Info, Remedy: None,
			Says:    "a session says that it is running, and it is not known whether it does",
			Matters: "Silence alone never makes a run dead.",
		},
	},
	store: (*exam).runs,
}

var runCodes = map[gateway.Word]Code{gateway.ProbablyDead: RunDead, gateway.Contradictory: RunContradictory, gateway.Unknown: RunUnknown}

func (x *exam) runs(s *site) {
	tell := func(e *row.Entry, id string, updated float64, last time.Time, held *lock.Report) {
		run := gateway.Run{UpdatedAt: updated, LastByte: last}
		run.Status, _ = e.Text(row.Status)
		run.StartedAt, _ = e.Stamp(row.StartedAt)
		run.EndedAt, _ = e.Stamp(row.EndedAt)
		run.ArchivedAt, _ = e.Stamp(row.ArchivedAt)
		run.Recovery, _ = e.Text(row.RestartRecoveryDeliveryRunID)
		j := gateway.Verdict(run, x.Owner, held, x.Machine.Boot(), x.Now)
		if code := runCodes[j.Word]; code != "" {
			f := Finding{Code: code, Subject: s.row(e.Key), Evidence: j.Evidence}
			f.ID = id
			x.find(f)
		}
	}
	running := func(e *row.Entry) bool { status, _ := e.Text(row.Status); return status == "running" }
	if s.database != nil {
		for i := range s.database.Rows {
			if r := &s.database.Rows[i]; running(&r.Entry) {
				tell(&r.Entry, r.ID(), r.Updated, r.Grew(x.ctx), nil)
			}
		}
	}
	if i := s.live(); i != nil {
		for k := range i.Rows {
			r := &i.Rows[k]
			if !running(&r.Entry) {
				continue
			}
			var last time.Time
			if r.Written > 0 {
				last = time.UnixMilli(int64(r.Written))
			}
			var held *lock.Report
			if r.File != "" {
				report := lock.Look(r.File+lock.Suffix, x.Machine, x.Now)
				held = &report
			}
			tell(&r.Entry, r.ID, r.Updated, last, held)
		}
	}
}
