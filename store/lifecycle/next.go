package lifecycle

import (
	"slices"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// An Outcome is what the next message makes of a session.
type Outcome string

// The outcomes.
const (
	Goes    Outcome = "continues"
	Begins  Outcome = "begins anew"
	Refused Outcome = "refused" // the session is archived
)

// A Message is what comes to a session.
type Message struct {
	Text   string
	System bool // of OpenClaw's own: a heartbeat, the event of a cron job or of a command that ended
}

// A Next is what a message makes of a session, and why.
type Next struct {
	Outcome Outcome
	Why     Why
	Trigger string // the command that begins it anew
	Rest    string // what is left of the message behind a trigger
	Clears  bool   // the state of a run that failed is cleared
}

// Why is the rule that decided.
type Why string

// The rules.
const (
	ByTrigger  Why = "trigger"  // the message is a command to begin anew
	ByDaily    Why = "daily"    // the daily reset lies behind its start
	ByIdle     Why = "idle"     // nothing was said for too long
	ByEvent    Why = "event"    // an event of OpenClaw's own never resets, and does not extend
	ByProvider Why = "provider" // a program of the model's provider has the conversation, and no reset is configured
	ByFresh    Why = "fresh"
	ByArchive  Why = "archived"
	ByEmpty    Why = "no session" // the row has no session yet
)

// Decide is what OpenClaw makes of a message to a session whose state is known (spec/transcript.md 6.5 and 6.6; release 2026.7.35).
// session is the configuration's section of that name. A reply that is still running keeps a stale session, which nobody can see
// from outside.
func Decide(e *row.Entry, m Message, p Policy, s State, session *config.Node) Next {
	if e.IsSet(row.ArchivedAt) {
		return Next{Outcome: Refused, Why: ByArchive}
	}
	if trigger, rest, ok := matchTrigger(m.Text, triggers(session)); ok && !m.System {
		return Next{Outcome: Begins, Why: ByTrigger, Trigger: trigger, Rest: rest}
	}
	switch {
	case e.ID() == "":
		return Next{Outcome: Begins, Why: ByEmpty}
	case m.System:
		return Next{Outcome: Goes, Why: ByEvent}
	case !s.Fresh && !p.Configured && ownedByProvider(e):
		return Next{Outcome: Goes, Why: ByProvider, Clears: failed(e)}
	case s.Fresh:
		return Next{Outcome: Goes, Why: ByFresh, Clears: failed(e)}
	}
	return Next{Outcome: Begins, Why: Why(s.Reason)}
}

func failed(e *row.Entry) bool {
	status, _ := e.Text(row.Status)
	return status == "failed" || status == "timeout" || status == "killed"
}

// ownedByProvider tells whether a program of the model's provider keeps the conversation, as Claude's own does.
func ownedByProvider(e *row.Entry) bool {
	provider, _ := e.Text(row.ProviderOverride)
	if !e.IsSet(row.ProviderOverride) {
		provider, _ = e.Text(row.ModelProvider)
	}
	provider = span.Lower(span.Trim(provider))
	if provider == "" {
		return false
	}
	says := func(raw []byte) bool {
		id, _ := span.Text(raw)
		return span.Trim(id) != ""
	}
	return says(span.Path(e.Raw(row.CLISessionBindings), provider, "sessionId")) || says(span.Member(e.Raw(row.CLISessionIDs), provider)) ||
		provider == "claude-cli" && says(e.Raw(row.ClaudeCLISessionID))
}

// triggers are the commands that begin a session anew.
func triggers(session *config.Node) []string {
	var own []string
	if list := session.At("resetTriggers"); list != nil {
		for _, n := range list.Items {
			if s, ok := n.Str(); ok && s != "" {
				own = append(own, s)
			}
		}
	}
	if len(own) == 0 {
		return []string{"/new", "/reset"}
	}
	return own
}

// matchTrigger tells whether a text is one of the triggers, in any case, alone or with a text behind it. Of a command only the
// first line counts.
func matchTrigger(text string, all []string) (trigger, rest string, ok bool) {
	raw := span.Trim(text)
	body := command(raw)
	low := span.Lower(body)
	soft := low == "/reset soft" || strings.HasPrefix(low, "/reset soft ")
	for _, t := range all {
		lt := span.Lower(t)
		if span.Lower(raw) == lt || low == lt {
			return t, "", true
		}
		if !soft && (strings.HasPrefix(span.Lower(raw), lt+" ") || strings.HasPrefix(low, lt+" ")) {
			return t, span.Trim(body[min(len(t), len(body)):]), true
		}
	}
	return "", "", false
}

// command is the first line of a command, "/new: hi" written as "/new hi"; any other text as it is.
func command(text string) string {
	if !strings.HasPrefix(text, "/") {
		return text
	}
	line, _, _ := strings.Cut(text, "\n")
	line = span.Trim(line)
	if name, rest, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(name, " \t") {
		return strings.TrimRight(name+" "+span.Trim(rest), " ")
	}
	return line
}

// What a session keeps when it begins anew, and what besides when a command asked for it (spec/transcript.md 6.7). The model, its
// provider and its login are kept too where a user chose them. What says where answers go comes from the message.
var (
	Kept = []row.Field{
		row.ThinkingLevel, row.VerboseLevel, row.TraceLevel, row.ReasoningLevel, row.TTSAuto, row.ResponseUsage, row.Label, row.DisplayName, row.PinnedAt,
		row.GroupActivation, row.GroupActivationNeedsSystemIntro,
	}
	KeptByTrigger = []row.Field{
		row.SpawnedBy, row.SpawnedWorkspaceDir, row.SpawnedCwd, row.ParentSessionKey, row.ForkedFromParent, row.SpawnDepth, row.SubagentRole, row.SubagentControlScope,
	}
	ofModel = []row.Field{row.ProviderOverride, row.ModelOverride}
	ofLogin = []row.Field{row.AuthProfileOverride, row.AuthProfileOverrideSource, row.AuthProfileOverrideCompactionCount}
)

// Carried are the fields of a row that are still there when the session has begun anew, in their documented order.
func Carried(e *row.Entry, byTrigger bool) (kept []row.Field) {
	fields := slices.Clone(Kept)
	if byTrigger {
		fields = append(fields, KeptByTrigger...)
	}
	if UserModel(e) {
		fields = append(fields, ofModel...)
	}
	if UserLogin(e) {
		fields = append(fields, ofLogin...)
	}
	for _, f := range row.Fields() {
		if slices.Contains(fields, f) && e.IsSet(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// UserModel tells whether the row's model was chosen by a user, and not by OpenClaw as a way out of a failure.
func UserModel(e *row.Entry) bool {
	if !row.Truthy(e.Raw(row.ModelOverride)) {
		return false
	}
	if raw := e.Raw(row.ModelOverrideSource); raw != nil {
		source, _ := span.Text(raw)
		return source == "user"
	}
	from, _ := e.Text(row.ModelOverrideFallbackOriginProvider)
	model, _ := e.Text(row.ModelOverrideFallbackOriginModel)
	return span.Trim(from) == "" || span.Trim(model) == ""
}

// UserLogin tells whether the row's login was chosen by a user.
func UserLogin(e *row.Entry) bool {
	source, _ := e.Text(row.AuthProfileOverrideSource)
	return source == "user" && row.Truthy(e.Raw(row.AuthProfileOverride))
}
