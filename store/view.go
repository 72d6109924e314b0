package store

import (
	"slices"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// A View is what the list command shows of a row besides its own fields
// (spec/file-store.md 6.3 for 2026.7.35, spec/sqlite-store.md 3.1 for
// 2026.9.6).
type View struct {
	Agent     string // the agent that the key names, else that of the store
	Kind      string
	PolicyKey string // runtimePolicySessionKey; "" for none
	ACP       bool   // an ACP runtime has the session
	Model     config.ModelAnswer
}

// View works out what is shown of a row.
func (r *Row) View(acp ACP) View {
	s := r.sessions
	v := View{Agent: s.Agent, Kind: r.ListKind()}
	if id, _, ok := row.Parse(r.Key); ok {
		v.Agent = id
	}
	session := s.config.Session()
	v.PolicyKey = r.PolicyKey(session.Scope == "global", session.IdentityLinks)
	v.Model = s.config.Model(r.modelInput(v.Agent))
	if len(acp) > 0 {
		stored := StoredKey(s.config, v.Agent, r.Key)
		backend, bound := acp.find(stored, r.ID())
		if v.ACP = bound; bound && isACP(stored) {
			agent, _, ok := row.Parse(stored)
			if !ok {
				agent = "acp"
			}
			if backend == "" {
				backend = "acpx"
			}
			v.Model.Provider, v.Model.Model, v.Model.Source = "acpx", agent+"-acp", "acp"
			v.Model.RuntimeID, v.Model.RuntimeSource = backend, "session-key"
		}
	}
	return v
}

func (r *Row) modelInput(agent string) config.ModelInput {
	in := config.ModelInput{Agent: agent, Release: r.sessions.release()}
	if tail, ok := strings.CutPrefix(r.Key, "agent:"); ok {
		in.KeyAgent, _, _ = strings.Cut(tail, ":")
	}
	in.ProviderOverride, in.HasProviderOverride = r.Text(row.ProviderOverride)
	in.ModelOverride, _ = r.Text(row.ModelOverride)
	in.Model, in.ModelProvider = r.ModelRef()
	return in
}

// release is the OpenClaw whose rules the store follows.
func (s *Sessions) release() config.Release {
	switch {
	case s.Era != SQLiteEra:
		return config.Release735
	case s.Schema.UserVersion >= 20:
		return config.Release96
	}
	return config.Release82
}

// Tokens is the size of the context as the row has it; known is false where it
// has none, fresh where the number is that of the last run.
func (r *Row) Tokens() (n float64, known, fresh bool) {
	raw := r.Raw(row.TotalTokens)
	n, known = r.Stamp(row.TotalTokens)
	flag := r.Raw(row.TotalTokensFresh)
	if r.sessions.Era == SQLiteEra {
		version, _ := r.Number(row.TotalTokensVersion)
		return n, known, span.KindOf(raw) == span.Number && string(flag) == "true" && version == 1
	}
	return n, known, span.KindOf(raw) == span.Number && string(flag) != "false"
}

// HasContextTokens tells whether the row's own context window counts. In the
// SQLite era it does only beside what says where it came from.
func (r *Row) HasContextTokens() bool {
	return isSet(r.Raw(row.ContextTokens)) && r.sessions.Era != SQLiteEra
}

// colors are the names that OpenClaw 2026.9.6 knows for a session's colour.
var colors = []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"}

// Color is the session's colour as the list prints it; "" for none or one that
// has no name.
func (r *Row) Color() string {
	name, _ := r.Text(row.Color)
	if name = span.Lower(span.Trim(name)); slices.Contains(colors, name) {
		return name
	}
	return ""
}
