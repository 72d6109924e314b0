package maintenance

import (
	"slices"
	"strings"
	"time"

	"oc/store/agentdb"
	"oc/store/lifecycle"
	"oc/store/row"
	"oc/store/span"
)

// keptInPlace is what the row of a session in a database keeps when it is reset: sessions.reset of 2026.9.6, of which 2026.8.2 knows most.
var keptInPlace = []string{
	"sessionId", "contextWindow", "thinkingLevel", "fastMode", "toolOverrides", "verboseLevel", "traceLevel", "reasoningLevel", "elevatedLevel", "ttsAuto",
	"execHost", "execNode", "execCwd", "responseUsage", "pinnedAt", "groupActivation", "groupActivationNeedsSystemIntro", "chatType",
	"sendPolicy", "queueMode", "queueDebounceMs", "queueCap", "queueDrop", "spawnedBy", "completionOwnerSessionKey",
	"inheritedToolPolicyVersion", "inheritedToolAllow", "inheritedToolDeny", "spawnedWorkspaceDir", "spawnedCwd", "sessionRoot", "permissionMode", "sandboxMode",
	"worktree", "repositoryWorkspaceId", "parentSessionKey", "parentSessionId", "createdVia", "createdActor", "createdAt", "projectId",
	"forkSource", "spawnDepth", "subagentRole", "subagentControlScope", "label", "autoLabel", "icon", "category", "boardFace", "boardPresentation",
	"visibility", "displayName", "delivery", "pendingDeliveryNotice", "groupId", "subject", "groupChannel", "space", "pluginOwnerId",
	"usageFamilyKey", "usageFamilySessionIds", "profileInvolvement", "publicShare",
}

// boundToClients is what ties a session to a command-line client; only that of a sub-agent outlives a reset.
var boundToClients = []string{"cliSessionBindings", "cliSessionIds", "claudeCliSessionId"}

// Restart plans to begin a session of a database anew: its id stays, a row that says reset is added to its transcript, behind which the model
// and readers begin, and its row keeps what keptInPlace says (releases 2026.8.2 and 2026.9.6). id is the id of the new row of the transcript,
// and cwd the directory that a transcript without a header gets. The error is a *NoRow, or a *Denied for an archived session.
func Restart(s *Snapshot, key string, how Reset, cwd string, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	r := &s.Rows[i]
	switch {
	case r.IsSet(row.ArchivedAt):
		return nil, &Denied{key, "it is archived; restore it first"}
	case r.stuck != "":
		return nil, &Denied{key, r.stuck}
	case how.CronRun:
		return nil, &Denied{key, "in a database each run of a cron job has a row and a transcript of its own, so there is nothing to begin anew"}
	}
	d := verbDraft(s, now)
	if !d.idle(i) {
		return d.plan(), nil
	}
	d.transcript(i, Append, "a row that says reset, behind which a new conversation begins", func(w *agentdb.Writer) error {
		if err := w.Window(key, r.ID, cwd); err != nil {
			return err
		}
		leaf, err := w.Leaf(r.ID)
		if err != nil {
			return err
		}
		parent := []byte("null")
		if leaf != "" {
			parent = span.Quote(nil, leaf)
		}
		line := append([]byte(`{"type":"reset","id":`), span.Quote(nil, how.ID[:8])...)
		line = append(append(line, `,"parentId":`...), parent...)
		line = append(append(line, `,"timestamp":`...), span.Quote(nil, agentdb.Stamp(w.Now()))...)
		line = append(append(line, `,"reason":`...), span.Quote(nil, how.Reason)...)
		if _, err := w.Append(r.ID, append(line, '}')); err != nil {
			return err
		}
		return w.Unprogress(key)
	})
	d.put(i, d.inPlace(r, how), "a new conversation begins (%s); its id stays", how.Reason)
	return d.plan(), nil
}

// inPlace is the row of a session that begins again with its id.
func (d *draft) inPlace(r *Row, how Reset) []byte {
	var changes []row.Change
	set := func(name, raw string) { changes = append(changes, row.Change{Name: name, Val: []byte(raw)}) }
	keep := keptInPlace
	if _, rest, _ := row.Parse(r.Key); strings.HasPrefix(rest, "subagent:") {
		keep = slices.Concat(keep, boundToClients)
	}
	if lifecycle.UserModel(&r.Entry) {
		keep = slices.Concat(keep, []string{"providerOverride", "modelOverride", "agentRuntimeOverride", "modelOverrideRouteResolution"})
		set("modelOverrideSource", `"user"`)
	} else if source, _ := r.Text(row.ModelOverrideSource); source == "default" {
		keep = slices.Concat(keep, []string{"modelOverrideSource"})
	}
	if lifecycle.UserLogin(&r.Entry) {
		keep = slices.Concat(keep, []string{"authProfileOverride", "authProfileOverrideSource", "authProfileOverrideCompactionCount"})
	}
	if sandbox, _ := span.Text(span.Member(r.Val, "sandbox")); sandbox == "required" {
		keep = slices.Concat(keep, []string{"sandbox"})
	}
	if string(r.Raw(row.ForkedFromParent)) == "true" {
		keep = slices.Concat(keep, []string{"forkedFromParent"})
	}
	now := string(d.stampOf(d.now))
	set("lifecycleRevision", string(span.Quote(nil, how.Revision)))
	set("updatedAt", now)
	set("sessionStartedAt", now)
	set("systemSent", "false")
	set("abortedLastRun", "false")
	set("compactionCount", "0")
	set("inputTokens", "0")
	set("outputTokens", "0")
	set("totalTokens", "0")
	set("totalTokensFresh", "true")
	set("totalTokensVersion", "1")
	for _, m := range r.Members() {
		written := slices.ContainsFunc(changes, func(c row.Change) bool { return c.Name == m.Name })
		if !written && !slices.Contains(keep, m.Name) {
			changes = append(changes, row.Change{Name: m.Name})
		}
	}
	return row.Edit(r.Val, changes...)
}
