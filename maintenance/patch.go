package maintenance

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"oc/store/row"
	"oc/store/span"
)

// A Setting is a field of a session that people set, and the values that it
// takes, as OpenClaw's sessions.patch checks them (release 2026.7.35).
type Setting struct {
	Name   string // on a command line, as --Name
	Field  row.Field
	Values []string // those that it takes; none: any text of up to 512 UTF-16 units
	Help   string
}

// Settings are the fields that people set by a value.
func Settings() []Setting {
	return []Setting{
		{"label", row.Label, nil, "its label, which no other session of the store has"},
		{"category", row.Category, nil, "its category"},
		{"thinking", row.ThinkingLevel, []string{"off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"}, "how much the model thinks"},
		{"fast", row.FastMode, []string{"on", "off", "auto"}, "fast mode"},
		{"verbose-level", row.VerboseLevel, []string{"on", "off", "full"}, "how much of its tools is told"},
		{"trace-level", row.TraceLevel, []string{"on", "off", "raw"}, "whether traces are shown"},
		{"reasoning", row.ReasoningLevel, []string{"on", "off", "stream"}, "whether its reasoning is shown"},
		{"elevated", row.ElevatedLevel, []string{"on", "off", "ask", "full"}, "whether commands run elevated"},
		{"usage", row.ResponseUsage, []string{"off", "tokens", "full"}, "the line on usage below answers"},
		{"send-policy", row.SendPolicy, []string{"allow", "deny"}, "whether answers are sent"},
		{"activation", row.GroupActivation, []string{"mention", "always"}, "what wakes it in a group"},
		{"exec-host", row.ExecHost, []string{"auto", "sandbox", "gateway", "node"}, "where commands run"},
		{"exec-security", row.ExecSecurity, []string{"deny", "allowlist", "full"}, "which commands may run"},
		{"exec-ask", row.ExecAsk, []string{"off", "on-miss", "always"}, "when a command asks first"},
		{"exec-node", row.ExecNode, nil, "the node on which commands run"},
	}
}

// A Patch is what is to change in a session.
type Patch struct {
	Set     map[string]string // values by the Name of a Setting
	Unset   []string          // fields by their names in a row
	Pin     bool
	Unpin   bool
	Unread  bool     // marked so
	Read    bool     // read now, and not marked any more
	Deny    []string // tools that a sub-agent's session may not use; none: as they are
	Allow   []string // and those that alone it may use
	Model   string   // provider/model; "" leaves it
	Default string   // provider/model that the configuration gives the session
}

// Unsettable tells whether a field of that name may be taken out of a row: it is
// documented, and neither what a session is nor where it comes from, which
// sessions.patch does not change either.
func Unsettable(name string) bool {
	fixed := []row.Field{
		row.SessionID, row.SessionFile, row.UpdatedAt, row.ArchivedAt, row.UsageFamilyKey, row.UsageFamilySessionIDs, row.LifecycleRevision, row.CompactionCheckpoints,
		row.SpawnedBy, row.SpawnedWorkspaceDir, row.SpawnedCwd, row.SpawnDepth, row.SubagentRole, row.SubagentControlScope, row.ParentSessionKey, row.ForkedFromParent,
	}
	for _, f := range row.Fields() {
		if f.String() == name {
			return !slices.Contains(fixed, f)
		}
	}
	return false
}

// Change plans to change documented fields of a session; all else in its row
// keeps its bytes. updatedAt is now, unless nothing changes. Values must have
// been checked against Settings. The error is a *NoRow, or a *Denied for a
// label that another session has and a pin on an archived session.
func Change(s *Snapshot, key string, p Patch, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	d := verbDraft(s, now)
	r := &s.Rows[i]
	var changes []row.Change
	set := func(f row.Field, raw []byte) { changes = append(changes, row.Change{Name: f.String(), Val: raw}) }
	for _, x := range Settings() {
		text, ok := p.Set[x.Name]
		if !ok {
			continue
		}
		text = span.Trim(text)
		if x.Field == row.Label {
			for j := range s.Rows {
				if label, ok := s.Rows[j].Text(row.Label); ok && j != i && label == text {
					return nil, &Denied{key, "the label " + text + " is in use already, by " + s.Rows[j].Key}
				}
			}
		}
		set(x.Field, x.raw(text))
	}
	switch {
	case p.Pin && r.IsSet(row.ArchivedAt):
		return nil, &Denied{key, "it is archived, so it cannot be pinned; restore it first"}
	case p.Pin && !r.IsSet(row.PinnedAt):
		set(row.PinnedAt, d.stampOf(d.now))
	case p.Unpin:
		set(row.PinnedAt, nil)
	}
	switch {
	case p.Unread:
		set(row.MarkedUnreadAt, d.stampOf(d.now))
	case p.Read:
		set(row.LastReadAt, d.stampOf(d.now))
		set(row.MarkedUnreadAt, nil)
	}
	for _, x := range p.tools() {
		if len(x.names) == 0 {
			continue
		}
		if _, rest, _ := row.Parse(key); !strings.HasPrefix(rest, "subagent:") && !strings.HasPrefix(rest, "acp:") {
			return nil, &Denied{key, "only sessions of sub-agents and of acp have lists of tools"}
		}
		set(x.field, toolList(x.names))
	}
	if p.Model != "" {
		changes = append(changes, s.model(r, p.Model, p.Default)...)
	}
	for _, name := range p.Unset {
		if name == row.Model.String() || name == row.ModelOverride.String() {
			changes = append(changes, s.model(r, p.Default, p.Default)...)
			changes = append(changes, row.Change{Name: row.LiveModelSwitchPending.String()})
			continue
		}
		changes = append(changes, row.Change{Name: name})
	}
	val := row.Edit(r.Val, changes...)
	if string(val) == string(r.Val) || !d.idle(i) {
		return d.plan(), nil
	}
	var names []string
	for _, c := range changes {
		if !slices.Contains(names, c.Name) && !bytes.Equal(span.Member(val, c.Name), span.Member(r.Val, c.Name)) {
			names = append(names, c.Name)
		}
	}
	d.put(i, row.Edit(val, d.touched(r)), "changed: %s", strings.Join(names, ", "))
	return d.plan(), nil
}

// Fields are what OpenClaw's sessions.patch is asked for to do the same, by its
// names: null takes a value away (releases 2026.7.35 and 2026.9.6). odd is a
// field that it does not take; "" for none.
func (p Patch) Fields() (fields map[string]any, odd string) {
	fields = map[string]any{}
	known := map[string]bool{}
	for _, x := range Settings() {
		known[x.Field.String()] = true
		if text, ok := p.Set[x.Name]; ok {
			fields[x.Field.String()] = json.RawMessage(x.raw(span.Trim(text)))
		}
	}
	if p.Pin || p.Unpin {
		fields["pinned"] = p.Pin
	}
	if p.Unread || p.Read {
		fields["unread"] = p.Unread
	}
	for _, x := range p.tools() {
		known[x.field.String()] = true
		if len(x.names) > 0 {
			fields[x.field.String()] = json.RawMessage(toolList(x.names))
		}
	}
	if p.Model != "" {
		fields["model"] = p.Model
	}
	for _, name := range p.Unset {
		switch {
		case name == row.Model.String() || name == row.ModelOverride.String():
			fields["model"] = nil
		case name == row.PinnedAt.String():
			fields["pinned"] = false
		case known[name]:
			fields[name] = nil
		default:
			return nil, name
		}
	}
	return fields, ""
}

// raw is a checked value as it stands in a row.
func (x *Setting) raw(text string) []byte {
	if x.Field == row.FastMode && text != "auto" {
		if text == "on" {
			return []byte("true")
		}
		return []byte("false")
	}
	return span.Quote(nil, text)
}

type toolNames struct {
	field row.Field
	names []string
}

func (p *Patch) tools() []toolNames {
	return []toolNames{{row.InheritedToolDeny, p.Deny}, {row.InheritedToolAllow, p.Allow}}
}

// toolList is a list of tools as it stands in a row: by OpenClaw's names, each once.
func toolList(tools []string) []byte {
	out := []byte{'['}
	var seen []string
	for _, t := range tools {
		t = span.Lower(span.Trim(t))
		switch t {
		case "bash":
			t = "exec"
		case "apply-patch":
			t = "apply_patch"
		}
		if t == "" || slices.Contains(seen, t) {
			continue
		}
		if len(seen) > 0 {
			out = append(out, ',')
		}
		seen, out = append(seen, t), span.Quote(out, t)
	}
	return append(out, ']')
}

// Accepts tells whether a setting takes a value.
func (x *Setting) Accepts(text string) bool {
	text = span.Trim(text)
	if x.Values == nil {
		return text != "" && span.UTF16Len(text) <= 512
	}
	return slices.Contains(x.Values, text)
}

// model is what changes in a row with its model. In a database more is noted:
// that the choice leads to a model that is known, and since 2026.9.6 that the
// default was chosen.
func (s *Snapshot) model(r *Row, to, standard string) []row.Change {
	changes := model(r, to, standard)
	if s.Schema == 0 {
		return changes
	}
	resolution := row.Change{Name: "modelOverrideRouteResolution"}
	switch {
	case to != standard:
		resolution.Val = []byte(`"resolved"`)
	case s.Schema >= 23:
		changes = append(changes, row.Change{Name: row.ModelOverrideSource.String(), Val: []byte(`"default"`)})
	}
	return append(changes, resolution, row.Change{Name: row.FallbackNotice.String()})
}

// model changes the model of a session as a user's choice: the default one is
// no override, what ran before says nothing any more, and a profile for
// another provider goes.
func model(r *Row, to, standard string) (changes []row.Change) {
	set := func(f row.Field, raw []byte) { changes = append(changes, row.Change{Name: f.String(), Val: raw}) }
	drop := func(fields ...row.Field) {
		for _, f := range fields {
			set(f, nil)
		}
	}
	provider, name, _ := strings.Cut(to, "/")
	had, _ := r.Text(row.ProviderOverride)
	hadModel, _ := r.Text(row.ModelOverride)
	ran, ranBy := r.ModelRef()
	ranThat := ran == name && (ranBy == "" || ranBy == provider)
	chosen := had != provider || hadModel != name
	if to == standard {
		chosen = had != "" || hadModel != "" || (ran != "" || ranBy != "") && !ranThat
		drop(row.ProviderOverride, row.ModelOverride, row.ModelOverrideSource)
	} else {
		set(row.ProviderOverride, span.Quote(nil, provider))
		set(row.ModelOverride, span.Quote(nil, name))
		set(row.ModelOverrideSource, []byte(`"user"`))
	}
	drop(row.ModelOverrideFallbackOriginProvider, row.ModelOverrideFallbackOriginModel)
	if chosen || !ranThat && (ran != "" || ranBy != "") {
		drop(row.Model, row.ModelProvider, row.ContextTokens, row.ContextBudgetStatus)
	}
	before := had
	for _, other := range []string{ranBy, strings.SplitN(standard, "/", 2)[0]} {
		if before == "" {
			before = other
		}
	}
	if profile, _ := r.Text(row.AuthProfileOverride); before != provider && !strings.HasPrefix(profile, provider+":") {
		drop(row.AuthProfileOverride, row.AuthProfileOverrideSource, row.AuthProfileOverrideCompactionCount)
	}
	if chosen {
		set(row.LiveModelSwitchPending, []byte("true"))
		drop(row.FallbackNoticeSelectedModel, row.FallbackNoticeActiveModel, row.FallbackNoticeReason)
	}
	return changes
}
