package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Request is a call with names and types (spec/gateway.md 3, releases 2026.7.35
// and 2026.9.6). Zero values of its fields are not sent; results are the
// gateway's own JSON.
type Request interface {
	Method() string
	Scope() string // the least one that it needs
}

// Do calls a typed request. A method that the gateway does not advertise is
// Unsupported without being sent, and so is, by the gateway's own word, a field
// that its release does not know: nothing was done then.
func (c *Conn) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	if len(c.Hello.Methods) > 0 && !c.Hello.Has(r.Method()) && !slices.Contains(unadvertised, r.Method()) {
		return nil, &Error{Fault: Unsupported, Doing: "call " + r.Method() + " on", Host: c.host, Says: "it is " + c.Hello.Version}
	}
	got, err := c.Call(ctx, r.Method(), r)
	if tool, ok := r.(Tool); ok && err == nil {
		details, e := c.toolOutput(got)
		if e != nil {
			e.Doing, e.Host = "call the tool "+tool.Name+" on", c.host
			return nil, e
		}
		return details, nil
	}
	return got, err
}

// unadvertised methods work all the same.
var unadvertised = []string{"sessions.resolve"}

// Cleanup carries out the retention of an agent's sessions, or of all agents'.
// There is no dry run: Enforce false does the same.
type Cleanup struct {
	Agent      string `json:"agent,omitempty"` // empty: the default agent
	AllAgents  bool   `json:"allAgents,omitempty"`
	Enforce    bool   `json:"enforce,omitempty"` // even if the configuration only warns
	ActiveKey  string `json:"activeKey,omitempty"`
	FixMissing bool   `json:"fixMissing,omitempty"` // 2026.7.35 also drops sessions that were just reset
	FixDMScope bool   `json:"fixDmScope,omitempty"`
}

// Delete removes a session. A key that is not there is answered with
// deleted: false.
type Delete struct {
	Key               string `json:"key"`
	Agent             string `json:"agentId,omitempty"`
	KeepTranscript    bool   `json:"-"`
	ExpectedSessionID string `json:"expectedSessionId,omitempty"`
	ArchivedOnly      bool   `json:"archivedOnly,omitempty"` // enough for the scope write
}

// MarshalJSON says deleteTranscript only where it is not what the gateway does
// anyway.
func (d Delete) MarshalJSON() ([]byte, error) {
	type plain Delete
	keep := struct {
		plain
		Transcript *bool `json:"deleteTranscript,omitempty"`
	}{plain: plain(d)}
	if d.KeepTranscript {
		keep.Transcript = new(bool)
	}
	return json.Marshal(keep)
}

// Reset starts a session anew. 2026.7.35 does not know ExpectedSessionID.
type Reset struct {
	Key               string `json:"key"`
	Agent             string `json:"agentId,omitempty"`
	Reason            string `json:"reason,omitempty"` // new or reset
	ExpectedSessionID string `json:"expectedSessionId,omitempty"`
}

// Patch changes fields of a session: nil clears one. 2026.7.35 does not know
// ExpectedSessionID; 2026.9.6 wants it with archived.
type Patch struct {
	Key               string
	Agent             string
	ExpectedSessionID string
	Fields            map[string]any // by OpenClaw's names: label, archived, pinned, model, ...
}

// MarshalJSON puts the fields beside the key.
func (p Patch) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	for name, value := range p.Fields {
		all[name] = value
	}
	all["key"] = p.Key
	if p.Agent != "" {
		all["agentId"] = p.Agent
	}
	if p.ExpectedSessionID != "" {
		all["expectedSessionId"] = p.ExpectedSessionID
	}
	return json.Marshal(all)
}

// Compact shortens a session: by a summary, or to MaxLines. It can take
// minutes.
type Compact struct {
	Key      string `json:"key"`
	Agent    string `json:"agentId,omitempty"`
	MaxLines int    `json:"maxLines,omitempty"`
}

// DeleteAgent removes an agent and its bindings.
type DeleteAgent struct {
	Agent     string `json:"agentId"`
	KeepFiles bool   `json:"-"`
}

// MarshalJSON says deleteFiles only where files stay.
func (d DeleteAgent) MarshalJSON() ([]byte, error) {
	m := map[string]any{"agentId": d.Agent}
	if d.KeepFiles {
		m["deleteFiles"] = false
	}
	return json.Marshal(m)
}

// List asks for rows, 100 when there is no limit.
type List struct {
	Limit          int    `json:"limit,omitempty"`
	Offset         int    `json:"offset,omitempty"`
	ActiveMinutes  int    `json:"activeMinutes,omitempty"`
	IncludeGlobal  bool   `json:"includeGlobal,omitempty"`
	IncludeUnknown bool   `json:"includeUnknown,omitempty"`
	Titles         bool   `json:"includeDerivedTitles,omitempty"`
	LastMessage    bool   `json:"includeLastMessage,omitempty"`
	Label          string `json:"label,omitempty"`
	SpawnedBy      string `json:"spawnedBy,omitempty"`
	Agent          string `json:"agentId,omitempty"`
	Search         string `json:"search,omitempty"`
	Archived       bool   `json:"archived,omitempty"`
}

// Describe asks for one row; session is null when there is none.
type Describe struct {
	Key         string `json:"key"`
	Titles      bool   `json:"includeDerivedTitles,omitempty"`
	LastMessage bool   `json:"includeLastMessage,omitempty"`
}

// Resolve finds a session by key, id or label.
type Resolve struct {
	Key          string `json:"key,omitempty"`
	SessionID    string `json:"sessionId,omitempty"`
	Label        string `json:"label,omitempty"`
	Agent        string `json:"agentId,omitempty"`
	AllowMissing bool   `json:"allowMissing,omitempty"`
}

// History asks for the newest messages, 1 to 1000.
type History struct {
	Key      string `json:"sessionKey"`
	Limit    int    `json:"limit,omitempty"`
	Offset   int    `json:"offset,omitempty"`
	MaxChars int    `json:"maxChars,omitempty"`
}

// Send puts a message into a session and answers when the run has started. The
// same IdempotencyKey twice is one message.
type Send struct {
	Key            string `json:"key"`
	Agent          string `json:"agentId,omitempty"`
	Message        string `json:"message"`
	Thinking       string `json:"thinking,omitempty"`
	TimeoutMS      int64  `json:"timeoutMs,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// ChatSend is a message from a person; events named chat, with the
// IdempotencyKey as their run, tell what comes of it.
type ChatSend struct {
	Key            string `json:"sessionKey"`
	Message        string `json:"message"`
	IdempotencyKey string `json:"idempotencyKey"`
	TimeoutMS      int64  `json:"timeoutMs,omitempty"`
}

// AbortSession ends the run of a session; the answer's status is aborted or
// no-active-run.
type AbortSession struct {
	Key string `json:"key"`
}

// Tasks asks for the background tasks of a session, its own and those that it
// gave to others; the newest first, at most 500.
type Tasks struct {
	Key    string `json:"sessionKey,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"` // the nextCursor of the page before
}

// CancelTask ends a background task.
type CancelTask struct {
	ID     string `json:"taskId"`
	Reason string `json:"reason,omitempty"`
}

// Abort ends the runs of a session, or one of them.
type Abort struct {
	Key   string `json:"sessionKey"`
	RunID string `json:"runId,omitempty"`
}

// AgentWait waits for the end of a run.
type AgentWait struct {
	RunID     string `json:"runId"`
	TimeoutMS int64  `json:"timeoutMs,omitempty"`
}

// Tool calls one of the tools that agents have, as if the session called it;
// the result is the tool's own details. Some are closed to clients: ToolDenied.
type Tool struct {
	Name           string         `json:"name"`
	Args           map[string]any `json:"args,omitzero"`
	Key            string         `json:"sessionKey,omitempty"` // of the caller; empty: the main session
	Agent          string         `json:"agentId,omitempty"`
	IdempotencyKey string         `json:"idempotencyKey,omitempty"`
}

// Subscribe asks for sessions.changed events.
type Subscribe struct{}

// Agents, Health and Status ask what their names say.
type (
	Agents struct{}
	Health struct{}
	Status struct{}
)

func (Cleanup) Method() string      { return "sessions.cleanup" }
func (Delete) Method() string       { return "sessions.delete" }
func (Reset) Method() string        { return "sessions.reset" }
func (Patch) Method() string        { return "sessions.patch" }
func (Compact) Method() string      { return "sessions.compact" }
func (DeleteAgent) Method() string  { return "agents.delete" }
func (List) Method() string         { return "sessions.list" }
func (Describe) Method() string     { return "sessions.describe" }
func (Resolve) Method() string      { return "sessions.resolve" }
func (History) Method() string      { return "chat.history" }
func (Send) Method() string         { return "sessions.send" }
func (ChatSend) Method() string     { return "chat.send" }
func (Abort) Method() string        { return "chat.abort" }
func (AbortSession) Method() string { return "sessions.abort" }
func (Tasks) Method() string        { return "tasks.list" }
func (CancelTask) Method() string   { return "tasks.cancel" }
func (AgentWait) Method() string    { return "agent.wait" }
func (Tool) Method() string         { return "tools.invoke" }
func (Subscribe) Method() string    { return "sessions.subscribe" }
func (Agents) Method() string       { return "agents.list" }
func (Health) Method() string       { return "health" }
func (Status) Method() string       { return "status" }

func (Cleanup) Scope() string      { return Admin }
func (Reset) Scope() string        { return Admin }
func (Compact) Scope() string      { return Admin }
func (DeleteAgent) Scope() string  { return Admin }
func (List) Scope() string         { return Read }
func (Describe) Scope() string     { return Read }
func (Resolve) Scope() string      { return Read }
func (History) Scope() string      { return Read }
func (Send) Scope() string         { return Write }
func (ChatSend) Scope() string     { return Write }
func (Abort) Scope() string        { return Write }
func (AbortSession) Scope() string { return Write }
func (Tasks) Scope() string        { return Read }
func (CancelTask) Scope() string   { return Write }
func (AgentWait) Scope() string    { return Write }
func (Tool) Scope() string         { return Write }
func (Subscribe) Scope() string    { return Read }
func (Agents) Scope() string       { return Read }
func (Health) Scope() string       { return Read }
func (Status) Scope() string       { return Read }

// Scope of a deletion is admin, unless it takes archived sessions alone.
func (d Delete) Scope() string {
	if d.ArchivedOnly {
		return Write
	}
	return Admin
}

// Scope of a patch is write for what 2026.7.35 calls the organisation of
// sessions, else admin.
func (p Patch) Scope() string {
	for name := range p.Fields {
		if !slices.Contains([]string{"label", "category", "pinned", "archived", "unread"}, name) {
			return Admin
		}
	}
	return Write
}

// speaks are the methods and the tool by which something is said to an agent.
var speaks = []string{"chat.send", "sessions.send", "sessions.steer", "agent", "sessions_send"}

// FromAgentShell refuses what 2026.9.6 refuses to a command that an agent, or a
// sub-agent, runs in its shell (OPENCLAW_SHELL=exec, OPENCLAW_SUBAGENT_EXEC=1):
// to speak to a session by another way than its own tools, which say who speaks.
// nil when it may go on.
func FromAgentShell(r Request, env func(string) string) error {
	what := r.Method()
	if t, ok := r.(Tool); ok {
		what = t.Name
	}
	switch {
	case !slices.Contains(speaks, what):
		return nil
	case strings.TrimSpace(env("OPENCLAW_SUBAGENT_EXEC")) == "1" && what != "agent":
		return fmt.Errorf("call %s: a sub-agent runs this (OPENCLAW_SUBAGENT_EXEC=1), and what it has to say is the result of its task: answer with it", what)
	case strings.TrimSpace(env("OPENCLAW_SHELL")) == "exec":
		return fmt.Errorf("call %s: an agent runs this (OPENCLAW_SHELL=exec), and agents speak to sessions with their own tools: use sessions_send", what)
	}
	return nil
}
