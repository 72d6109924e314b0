package maintenance

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/lazy"
	"oc/store/lifecycle"
	"oc/store/row"
	"oc/store/span"
)

// A Reset says how a session begins anew.
type Reset struct {
	ID       string // the new session id
	Reason   string // new or reset: the command that a user would have sent
	CronRun  bool   // as a new isolated run of a cron job does it
	Revision string // the new lifecycleRevision of a cron run
}

// What a session keeps when a user resets it (spec/transcript.md 6.7, release
// 2026.7.35): what a command in a chat leaves it, and more.
var keptByReset = slices.Concat(lifecycle.Kept, lifecycle.KeptByTrigger, []row.Field{
	row.Route, row.DeliveryContext, row.LastChannel, row.LastTo, row.LastAccountID, row.LastThreadID,
	row.UsageFamilyKey, row.UsageFamilySessionIDs,
	// In a chat these come from the message that resets it; here there is
	// none, so they stay, as with the gateway's sessions.reset.
	row.Channel, row.ChatTypeField, row.GroupID, row.Subject, row.GroupChannel, row.Space, row.Origin, row.Provider, row.LastProvider, row.Room,
	// Files that they name stay referenced (spec/maintenance.md 5.2).
	row.CompactionCheckpoints,
})

// What an isolated cron run takes over from the one before (spec/maintenance.md
// 5.4).
var keptByCronRun = []row.Field{
	row.HeartbeatTaskState, row.ChatTypeField, row.ThinkingLevel, row.FastMode, row.VerboseLevel, row.TraceLevel, row.ReasoningLevel, row.TTSAuto, row.ResponseUsage,
	row.PinnedAt, row.Label, row.DisplayName,
}

// Begin plans to give a session a new id and an empty conversation. Its
// transcript becomes a .reset archive, except where another row needs it; its
// trajectory stays, as with OpenClaw. Of the row stays what the rule says, with
// its bytes; what is not documented goes. The error is a *NoRow, or a *Denied
// for an archived session and for a cron run that is none.
func Begin(s *Snapshot, key string, how Reset, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	d := verbDraft(s, now)
	r := &s.Rows[i]
	if r.IsSet(row.ArchivedAt) {
		return nil, &Denied{key, "it is archived; restore it first"}
	}
	job, isJob := row.CronJob(key)
	if how.CronRun && (!isJob || !strings.HasSuffix(key, "cron:"+job)) {
		return nil, &Denied{key, "it is not the session of a cron job"}
	}
	if !d.idle(i) {
		return d.plan(), nil
	}
	d.put(i, d.anew(r, how, job), "a new session begins (%s); its id was %s", how.Reason, orNone(r.ID))
	d.elsewhere(r)
	uses := d.uses()
	for _, f := range r.names {
		uses[f]--
	}
	ids := d.sessions()
	for _, f := range r.own {
		switch {
		case d.isCheckpoint(r, f):
		case r.ID != "" && ids[r.ID] > 1:
			d.leave(f, SharedID, ByHand, "another row of the store has the same session")
		case d.free(f, uses, ByHand):
			d.toArchive(f, "reset", key, ByHand, "the conversation before the reset")
		}
	}
	for _, f := range r.names {
		if d.s.Files[f].Link && uses[f] == 0 {
			d.leave(f, Linked, ByHand, "it is a link: neither it nor what it leads to is touched")
		}
	}
	return d.plan(), nil
}

// isCheckpoint tells whether a file of the row is one that a checkpoint names.
func (d *draft) isCheckpoint(r *Row, f int) bool {
	base := d.s.Files[f].Base
	return row.IsCheckpointName(base) || strings.Contains(string(r.Raw(row.CompactionCheckpoints)), string(span.Quote(nil, base)))
}

// anew is the row of a session that begins again.
func (d *draft) anew(r *Row, how Reset, job string) []byte {
	keep := keptByReset
	if how.CronRun {
		keep = keptByCronRun
	}
	var changes []row.Change
	out := func(f row.Field) { changes = append(changes, row.Change{Name: f.String()}) }
	set := func(f row.Field, raw string) {
		changes = append(changes, row.Change{Name: f.String(), Val: []byte(raw)})
	}
	for _, m := range r.Members() {
		if m.Field == row.Undocumented || !slices.Contains(keep, m.Field) {
			changes = append(changes, row.Change{Name: m.Name})
		}
	}
	stays := func(fields ...row.Field) {
		for _, f := range fields {
			if raw := r.Raw(f); raw != nil {
				set(f, string(raw))
			}
		}
	}
	if d.userModel(r, how.CronRun) {
		stays(row.ProviderOverride, row.ModelOverride)
		if how.CronRun {
			stays(row.ModelOverrideSource, row.AgentRuntimeOverride)
		} else {
			set(row.ModelOverrideSource, `"user"`)
		}
	}
	if lifecycle.UserLogin(&r.Entry) {
		stays(row.AuthProfileOverride, row.AuthProfileOverrideSource, row.AuthProfileOverrideCompactionCount)
	}
	now := string(d.stampOf(d.now))
	set(row.SessionID, string(span.Quote(nil, how.ID)))
	for _, f := range []row.Field{row.UpdatedAt, row.SessionStartedAt, row.LastInteractionAt} {
		set(f, now)
	}
	set(row.SystemSent, "false")
	set(row.SessionFile, string(span.Quote(nil, d.newFile(r, how))))
	if how.CronRun {
		set(row.LifecycleRevision, string(span.Quote(nil, how.Revision)))
		if label, _ := r.Text(row.Label); span.Trim(label) == "" {
			set(row.Label, string(span.Quote(nil, "Cron: "+job)))
		}
		return row.Edit(r.Val, changes...)
	}
	set(row.AbortedLastRun, "false")
	set(row.CompactionCount, "0")
	set(row.TotalTokens, "0")
	set(row.TotalTokensFresh, "true")
	if r.ID == "" {
		out(row.UsageFamilySessionIDs)
	} else {
		if family, _ := r.Text(row.UsageFamilyKey); family == "" {
			set(row.UsageFamilyKey, string(span.Quote(nil, r.Key)))
		}
		set(row.UsageFamilySessionIDs, family(r, how.ID))
	}
	return row.Edit(r.Val, changes...)
}

// userModel tells whether a row's model was chosen by a user, and not by
// OpenClaw as a way out of a failure.
func (d *draft) userModel(r *Row, cron bool) bool {
	if !row.Truthy(r.Raw(row.ModelOverride)) {
		return false
	}
	if cron {
		source, _ := r.Text(row.ModelOverrideSource)
		return source != "auto"
	}
	return lifecycle.UserModel(&r.Entry)
}

// family is usageFamilySessionIds with the old and the new id.
func family(r *Row, id string) string {
	ids := r.Texts(row.UsageFamilySessionIDs)
	for _, more := range []string{r.ID, id} {
		if !slices.Contains(ids, more) {
			ids = append(ids, more)
		}
	}
	out := []byte{'['}
	for i, s := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = span.Quote(out, s)
	}
	return string(append(out, ']'))
}

var idInName = lazy.Regexp(`^(?i:(\d{4}-\d\d-\d\dT[\d-]+(?:\.\d+)?(?:Z|[+-]\d\d-\d\d)_)?` + uuidText + `(-topic-.+)?)\.jsonl$`)

// newFile is the sessionFile of the new session: the generated name with the
// new id, beside the store; a relative one stays so.
func (d *draft) newFile(r *Row, how Reset) string {
	name := how.ID + ".jsonl"
	if m := idInName().FindStringSubmatch(filepath.Base(r.File)); m != nil && !how.CronRun {
		name = m[1] + how.ID + m[2] + ".jsonl"
	}
	if said, _ := r.Text(row.SessionFile); span.Trim(said) != "" && !filepath.IsAbs(span.Trim(said)) {
		return name
	}
	return filepath.Join(d.s.Dir, name)
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}
