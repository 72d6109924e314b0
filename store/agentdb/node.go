package agentdb

import (
	"fmt"
	"math"

	"oc/store/row"
	"oc/store/span"
)

// A column is a column of a row and its value: an int64, a string, or nil.
type column struct {
	name  string
	value any
}

// Unfit is an entry that OpenClaw's tables do not take, or that OpenClaw would refuse to read in them.
type Unfit struct{ Key, Reason string }

func (e *Unfit) Error() string {
	return fmt.Sprintf("the row of session %q does not fit into the database: %s", e.Key, e.Reason)
}

// projection makes columns of an entry, as the releases 2026.8.2 and 2026.9.6 do alike (spec/sqlite-store.md 2.2 and 2.4).
type projection struct {
	e   *row.Entry
	odd string // why an integer column does not take a value
}

// nodeColumns are the columns of session_nodes that follow the entry: all but the key, entry_json, entry_valid, what says whose the session
// is, and legacy_acp_migration_json. The error is an *Unfit.
func nodeColumns(e *row.Entry) ([]column, error) {
	p := projection{e: e}
	spawnedBy := p.text("spawnedBy")
	parent := p.text("parentSessionKey")
	if parent == nil {
		parent = spawnedBy
	}
	actor := p.raw("createdActor")
	fork := p.raw("forkSource")
	all := []column{
		{"current_session_id", p.id()},
		{"updated_at", p.number("updatedAt")},
		{"status", p.status()},
		{"created_at", p.number("createdAt")},
		{"created_via", p.one("createdVia", "operator", "spawn", "channel", "cron", "talk", "run", "plugin", "internal")},
		{"created_actor_type", oneOf(textOf(span.Member(actor, "type")), "human", "agent", "system")},
		{"created_actor_id", trimmed(span.Member(actor, "id"))},
		{"project_id", p.text("projectId")},
		{"parent_session_key", parent},
		{"spawned_by", spawnedBy},
		{"fork_source_session_key", trimmed(span.Member(fork, "sessionKey"))},
		{"fork_source_session_id", trimmed(span.Member(fork, "sessionId"))},
		{"fork_source_entry_id", trimmed(span.Member(fork, "entryId"))},
		{"label", p.text("label")},
		{"display_name", p.text("displayName")},
		{"category", p.text("category")},
		{"icon", p.text("icon")},
		{"pinned_at", p.number("pinnedAt")},
		{"archived_at", p.number("archivedAt")},
		{"last_read_at", p.number("lastReadAt")},
		{"last_interaction_at", p.number("lastInteractionAt")},
		{"last_activity_at", p.number("lastActivityAt")},
	}
	return all, p.err()
}

// windowColumns are the columns of session_windows that follow the entry whose window it is: all but its key, its times, its conversation,
// and what it says of the provenance of the entry. The error is an *Unfit.
func windowColumns(e *row.Entry) ([]column, error) {
	p := projection{e: e}
	channel, account := p.route()
	name := p.text("displayName")
	for _, other := range []string{"label", "subject", "groupId"} {
		if name == nil {
			name = p.text(other)
		}
	}
	all := []column{
		{"previous_session_id", p.text("previousSessionId")},
		{"session_scope", p.scope()},
		{"started_at", p.number("startedAt")},
		{"ended_at", p.number("endedAt")},
		{"status", p.status()},
		{"chat_type", p.chatType()},
		{"channel", channel},
		{"account_id", account},
		{"model_provider", p.text("modelProvider")},
		{"model", p.text("model")},
		{"agent_harness_id", p.text("agentHarnessId")},
		{"parent_session_key", p.text("parentSessionKey")},
		{"spawned_by", p.text("spawnedBy")},
		{"display_name", name},
	}
	return all, p.err()
}

func (p *projection) err() error {
	if p.odd == "" {
		return nil
	}
	return &Unfit{p.e.Key, p.odd}
}

func (p *projection) raw(name string) []byte { return span.Member(p.e.Val, name) }

func (p *projection) text(name string) any { return trimmed(p.raw(name)) }

func (p *projection) id() any { return textOf(p.raw("sessionId")) }

// number is a number that stands in the entry; nil for anything else.
func (p *projection) number(name string) any {
	f, ok := span.Float(p.raw(name))
	if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	if f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		p.odd = fmt.Sprintf("its %s is %s, and the column takes whole numbers only", name, p.raw(name))
		return nil
	}
	return int64(f)
}

func (p *projection) one(name string, words ...string) any {
	return oneOf(textOf(p.raw(name)), words...)
}

func (p *projection) status() any {
	said := textOf(p.raw("status"))
	if said == "interrupted" {
		return "failed"
	}
	return oneOf(said, "running", "done", "failed", "killed", "timeout")
}

func (p *projection) chatType() any { return p.one("chatType", "direct", "group", "channel") }

func (p *projection) scope() any {
	key := span.Lower(span.Trim(p.e.Key))
	switch kind := p.chatType(); {
	case kind == "direct" && (key == "main" || len(key) > 4 && key[len(key)-5:] == ":main"):
		return "shared-main"
	case kind == "group" || kind == "channel":
		return kind
	}
	return "conversation"
}

// route is where answers go: the channel and the account.
func (p *projection) route() (channel, account any) {
	delivery := p.raw("delivery")
	if textOf(span.Member(delivery, "kind")) != "external" {
		return nil, nil
	}
	if raw := span.Path(delivery, "context", "channel"); raw != nil && span.KindOf(raw) != span.Null {
		channel = trimmed(raw)
	} else {
		channel = trimmed(span.Path(delivery, "origin", "provider"))
	}
	return channel, trimmed(span.Path(delivery, "context", "accountId"))
}

func textOf(raw []byte) string {
	s, _ := span.Text(raw)
	return s
}

// trimmed is a text without the white space around it; nil if nothing is left.
func trimmed(raw []byte) any {
	if s := span.Trim(textOf(raw)); s != "" {
		return s
	}
	return nil
}

func oneOf(said string, words ...string) any {
	for _, w := range words {
		if said == w {
			return w
		}
	}
	return nil
}
