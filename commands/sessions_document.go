package commands

import (
	"math"
	"slices"

	"oc/gateway"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// Members of a row that are copied from the entry as they are, in OpenClaw's order (spec/file-store.md 6.3, spec/sqlite-store.md 3.1).
var (
	lineageFields = []row.Field{
		row.SpawnDepth, row.SubagentRole, row.SubagentControlScope,
		row.SessionStartedAt, row.LastInteractionAt, row.Label,
	}
	flagFields = []row.Field{
		row.SystemSent, row.AbortedLastRun, row.ThinkingLevel, row.VerboseLevel, row.TraceLevel, row.ReasoningLevel, row.ElevatedLevel, row.ResponseUsage, row.GroupActivation,
		row.InputTokens, row.OutputTokens,
	}
)

// document is the answer of sessions list: OpenClaw's document, and what oc adds to it.
func (l *listing) document(c *Call, details []detail) func(p *span.Printer) error {
	return func(p *span.Printer) error {
		p.Object()
		l.head(p, c)
		p.Key("sessions").Array()
		p.Each(len(l.rows), func(p *span.Printer, i int) {
			r := l.rows[i]
			l.row(p, r)
			l.eras(p, r)
			details[i].print(p)
			if j, ok := l.judged[r]; ok {
				judgement(p, "run", j)
			}
			p.End()
		})
		p.End()
		l.foot(p)
		p.End()
		return nil
	}
}

func (l *listing) head(p *span.Printer, c *Call) {
	if p.Key("path"); l.several {
		p.Null()
		p.Key("stores").Array()
		for _, s := range l.opened {
			p.Object()
			p.Key("agentId").String(s.Agent)
			p.Key("path").String(s.Path)
			storeFacts(p, s)
			p.End()
		}
		p.End()
		if c.Bool("all-agents") {
			p.Key("allAgents").Bool(true)
		}
	} else {
		s := l.opened[0]
		p.String(s.Path)
		storeFacts(p, s)
	}
	p.Key("count").Int(int64(len(l.rows)))
	p.Key("totalCount").Int(int64(l.total))
	if p.Key("limitApplied"); l.limit > 0 {
		p.Int(int64(l.limit))
	} else {
		p.Null()
	}
	p.Key("hasMore").Bool(len(l.rows) < l.total)
	if p.Key("activeMinutes"); c.Given("active") {
		p.Int(c.Int("active"))
	} else {
		p.Null()
	}
}

// storeFacts are what oc says of a store beside its path.
func storeFacts(p *span.Printer, s *store.Sessions) {
	p.Key("era").String(string(s.Era))
	if s.Era == store.SQLiteEra {
		p.Key("schema").Int(int64(s.Schema.UserVersion))
		if s.Schema.Newer {
			p.Key("schemaNewer").Bool(true)
		}
	}
	if s.Quarantine != "" {
		p.Key("quarantine").String(s.Quarantine)
	}
}

// foot is what oc says beyond OpenClaw: rows and stores that are not in the list.
func (l *listing) foot(p *span.Printer) {
	p.Key("hiddenCount").Int(int64(l.hidden))
	p.Key("skipped").Array()
	for _, s := range append(slices.Clip(l.opened), l.others...) {
		for _, k := range s.Skipped {
			p.Object()
			p.Key("agentId").String(s.Agent)
			p.Key("key").String(k.Key)
			p.Key("reason").String(k.Reason)
			p.End()
		}
	}
	p.End()
	p.Key("otherEra").Array()
	for _, s := range l.opened {
		if s.Other != nil {
			p.Object()
			p.Key("agentId").String(s.Agent)
			otherEra(p, s.Other)
			p.Key("listed").Bool(slices.ContainsFunc(l.others, func(o *store.Sessions) bool { return o.Path == s.Other.Path }))
			p.End()
		}
	}
	p.End()
	p.Key("transcriptsWithoutStore").Array()
	for _, s := range l.opened {
		if s.Era != store.NoEra || s.Named {
			continue
		}
		if n := s.Transcripts(); n > 0 {
			p.Object()
			p.Key("agentId").String(s.Agent)
			p.Key("path").String(s.Dir())
			p.Key("count").Int(int64(n))
			p.End()
		}
	}
	p.End()
	p.Key("unconfiguredAgents").Array()
	for _, d := range l.strange {
		p.Object()
		p.Key("agentId").String(d.Agent)
		p.Key("path").String(d.Path)
		if p.Key("count"); d.Rows < 0 {
			p.Null()
		} else {
			p.Int(int64(d.Rows))
		}
		p.End()
	}
	p.End()
	l.sight.print(p)
	l.failed.print(p)
}

// eras mark a row with the era that it is of, and with what the other one has of it, where both are listed.
func (l *listing) eras(p *span.Printer, r *store.Row) {
	if l.copies == nil {
		return
	}
	p.Key("era").String(string(r.Era()))
	if o := l.copies[r]; o != nil {
		p.Key("alsoIn").Object()
		p.Key("era").String(string(o.Era()))
		p.Key("path").String(o.Store().Path)
		if p.Key("updatedAt"); o.HasTime {
			p.Float(o.Updated)
		} else {
			p.Null()
		}
		p.End()
	}
}

// judgement prints a verdict and what it rests on.
func judgement(p *span.Printer, name string, j gateway.Judgement) {
	p.Key(name).Object()
	p.Key("verdict").String(string(j.Word))
	p.Key("evidence").Array()
	for _, why := range j.Evidence {
		p.String(why)
	}
	p.End()
	p.End()
}

// otherEra prints what is known of the store that is not read.
func otherEra(p *span.Printer, o *store.Other) {
	p.Key("era").String(string(o.Era))
	p.Key("path").String(o.Path)
	if p.Key("count"); o.Rows < 0 {
		p.Null()
		p.Key("error").String(o.Why)
	} else {
		p.Int(int64(o.Rows))
	}
}

// row prints the members that OpenClaw prints of a row, and leaves the object open.
func (l *listing) row(p *span.Printer, r *store.Row) {
	v := r.View(l.acp)
	sqlite := r.Era() == store.SQLiteEra
	p.Object()
	p.Key("key").String(r.Key)
	if p.Key("updatedAt"); r.HasTime {
		p.Float(r.Updated)
	} else {
		p.Null()
	}
	if p.Key("ageMs"); r.Updated != 0 {
		p.Float(l.now - r.Updated)
	} else {
		p.Null()
	}
	if id := r.ID(); id != "" {
		p.Key("sessionId").String(id)
	}
	if file := r.Raw(row.SessionFile); !sqlite && span.KindOf(file) == span.String {
		p.Key("sessionFile").Raw(file)
	}
	fields(p, r, row.SpawnedBy, row.SpawnedWorkspaceDir, row.SpawnedCwd, row.ParentSessionKey)
	if sqlite && row.Truthy(r.Raw(row.ForkSource)) {
		p.Key(row.ForkedFromParent.String()).Bool(true)
	} else {
		fields(p, r, row.ForkedFromParent)
	}
	fields(p, r, lineageFields...)
	if color := r.Color(); sqlite && color != "" {
		p.Key("color").String(color)
	}
	fields(p, r, row.Status)
	if sqlite {
		r.Columns.Print(p)
	}
	fields(p, r, flagFields...)
	n, known, fresh := r.Tokens()
	if p.Key("totalTokens"); known {
		p.Float(n)
	} else {
		p.Null()
	}
	p.Key("totalTokensFresh").Bool(fresh)
	if sqlite {
		fields(p, r, row.TotalTokensVersion)
	}
	p.Key("model").String(v.Model.Model)
	p.Key("modelProvider").String(v.Model.Provider)
	fields(p, r, row.ProviderOverride, row.ModelOverride)
	if p.Key("contextTokens"); r.HasContextTokens() {
		p.Raw(r.Raw(row.ContextTokens))
	} else {
		p.Float(v.Model.ContextTokens)
	}
	p.Key("agentId").String(v.Agent)
	if n := l.version[owned{v.Agent, r.Key}]; n != 0 {
		p.Key("stateVersion").Int(n)
	}
	p.Key("acpRuntime").Bool(v.ACP)
	p.Key("agentRuntime").Object()
	p.Key("id").String(v.Model.RuntimeID)
	p.Key("source").String(v.Model.RuntimeSource)
	p.End()
	p.Key("kind").String(v.Kind)
	if v.PolicyKey != "" {
		p.Key("runtimePolicySessionKey").String(v.PolicyKey)
	}
	if r.Archived() {
		p.Key("archivedAt").Raw(r.Raw(row.ArchivedAt))
	}
	if r.Pinned() {
		p.Key("pinnedAt").Raw(r.Raw(row.PinnedAt))
	}
	if l.future(r) {
		p.Key("future").Bool(true)
	}
	if r.InSeconds() {
		p.Key("updatedAtInSeconds").Bool(true)
	}
}

// fields copies the members that the row has.
func fields(p *span.Printer, r *store.Row, all ...row.Field) {
	for _, f := range all {
		if raw := r.Raw(f); raw != nil {
			p.Key(f.String()).Raw(raw)
		}
	}
}

// future tells a stamp that lies more than a minute ahead: such a row is neither new nor safe to call old.
func (l *listing) future(r *store.Row) bool {
	return r.Updated-l.now > 60_000 && !math.IsInf(r.Updated, 0)
}
