package row

// A Field is a documented member of a session entry (spec/file-store.md 2.5
// for OpenClaw 2026.7.35, spec/sqlite-store.md 2.3 for 2026.9.6). The zero
// Field stands for every member that is not documented.
type Field uint8

// A Type is what a field holds when it is well formed.
type Type uint8

// The types of field. A Stamp is epoch milliseconds.
const (
	Raw    Type = iota // an object or a list that is read as raw JSON
	Text               // a string
	Number             // a number
	Flag               // true or false
	Stamp              // a number of milliseconds since 1970
	Texts              // a list of strings
)

// The documented fields.
const (
	Undocumented Field = iota
	SessionID
	UpdatedAt
	SessionFile
	SessionStartedAt
	LastInteractionAt
	LastActivityAt
	LifecycleRevision
	ArchivedAt
	ArchiveReason
	ArchivedBy
	PinnedAt
	LastReadAt
	MarkedUnreadAt
	StartedAt
	EndedAt
	RuntimeMs
	Status
	UsageFamilyKey
	UsageFamilySessionIDs
	PreviousSessionID
	Label
	AutoLabel
	Category
	DisplayName
	Subject
	GroupChannel
	Space
	GroupID
	Channel
	Provider
	LastProvider
	Room
	ChatTypeField
	Color
	Visibility
	Incognito
	CreatedActor
	SpawnedBy
	ParentSessionKey
	SpawnDepth
	SpawnedWorkspaceDir
	SpawnedCwd
	ForkedFromParent
	ForkSource
	SubagentRole
	SubagentControlScope
	InheritedToolDeny
	InheritedToolAllow
	PluginOwnerID
	SubagentRecovery
	SystemSent
	AbortedLastRun
	AbortCutoffMessageSid
	AbortCutoffTimestamp
	RestartRecoveryRuns
	RestartRecoveryDeliveryContext
	RestartRecoveryDeliveryRunID
	ThinkingLevel
	FastMode
	VerboseLevel
	TraceLevel
	ReasoningLevel
	ElevatedLevel
	ResponseUsage
	TTSAuto
	LastTTSReadLatestHash
	LastTTSReadLatestAt
	ExecHost
	ExecSecurity
	ExecAsk
	ExecNode
	ProviderOverride
	ModelOverride
	ModelOverrideSource
	ModelOverrideFallbackOriginProvider
	ModelOverrideFallbackOriginModel
	AgentRuntimeOverride
	AuthProfileOverride
	AuthProfileOverrideSource
	AuthProfileOverrideCompactionCount
	LiveModelSwitchPending
	GroupActivation
	GroupActivationNeedsSystemIntro
	SendPolicy
	QueueMode
	QueueDebounceMs
	QueueCap
	QueueDrop
	InputTokens
	OutputTokens
	TotalTokens
	TotalTokensFresh
	TotalTokensVersion
	CacheRead
	CacheWrite
	EstimatedCostUSD
	ContextTokens
	ContextBudgetStatus
	ModelProvider
	Model
	AgentHarnessID
	FallbackNotice
	FallbackNoticeSelectedModel
	FallbackNoticeActiveModel
	FallbackNoticeReason
	CompactionCount
	CompactionCheckpoints
	MemoryFlush
	MemoryFlushAt
	MemoryFlushCompactionCount
	MemoryFlushContextHash
	MemoryFlushFailureCount
	MemoryFlushLastFailedAt
	MemoryFlushLastFailureError
	CLISessionIDs
	CLISessionBindings
	ClaudeCLISessionID
	Origin
	Route
	DeliveryField
	DeliveryContext
	LastChannel
	LastTo
	LastAccountID
	LastThreadID
	AmbientTranscriptWatermarks
	PendingFinalDelivery
	PendingFinalDeliveryText
	PendingFinalDeliveryLastError
	PendingFinalDeliveryIntentID
	PendingFinalDeliveryCreatedAt
	PendingFinalDeliveryLastAttemptAt
	PendingFinalDeliveryAttemptCount
	PendingFinalDeliveryContext
	LastHeartbeatText
	LastHeartbeatSentAt
	HeartbeatIsolatedBaseSessionKey
	HeartbeatTaskState
	Goal
	QuotaSuspension
	PendingSkillSuggestion
	SkillCaptureSignalHashes
	SkillsSnapshot
	SystemPromptReport
	PluginExtensions
	PluginExtensionSlotKeys
	PluginNextTurnInjections
	PluginDebugEntries
	ACP
	fields // how many there are
)

var documented = [fields]struct {
	name string
	is   Type
}{
	SessionID: {"sessionId", Text}, UpdatedAt: {"updatedAt", Stamp}, SessionFile: {"sessionFile", Text},
	SessionStartedAt: {"sessionStartedAt", Stamp}, LastInteractionAt: {"lastInteractionAt", Stamp}, LastActivityAt: {"lastActivityAt", Stamp},
	LifecycleRevision: {"lifecycleRevision", Text},
	ArchivedAt:        {"archivedAt", Stamp}, ArchiveReason: {"archiveReason", Text}, ArchivedBy: {"archivedBy", Raw}, PinnedAt: {"pinnedAt", Stamp},
	LastReadAt: {"lastReadAt", Stamp}, MarkedUnreadAt: {"markedUnreadAt", Stamp},
	StartedAt: {"startedAt", Stamp}, EndedAt: {"endedAt", Stamp}, RuntimeMs: {"runtimeMs", Number}, Status: {"status", Text},
	UsageFamilyKey: {"usageFamilyKey", Text}, UsageFamilySessionIDs: {"usageFamilySessionIds", Texts}, PreviousSessionID: {"previousSessionId", Text},
	Label: {"label", Text}, AutoLabel: {"autoLabel", Text}, Category: {"category", Text}, DisplayName: {"displayName", Text}, Subject: {"subject", Text},
	GroupChannel: {"groupChannel", Text}, Space: {"space", Text}, GroupID: {"groupId", Text}, Channel: {"channel", Text},
	Provider: {"provider", Text}, LastProvider: {"lastProvider", Text}, Room: {"room", Text}, ChatTypeField: {"chatType", Text},
	Color: {"color", Text}, Visibility: {"visibility", Text}, Incognito: {"incognito", Flag}, CreatedActor: {"createdActor", Raw},
	SpawnedBy: {"spawnedBy", Text}, ParentSessionKey: {"parentSessionKey", Text}, SpawnDepth: {"spawnDepth", Number},
	SpawnedWorkspaceDir: {"spawnedWorkspaceDir", Text}, SpawnedCwd: {"spawnedCwd", Text}, ForkedFromParent: {"forkedFromParent", Flag}, ForkSource: {"forkSource", Raw},
	SubagentRole: {"subagentRole", Text}, SubagentControlScope: {"subagentControlScope", Text},
	InheritedToolDeny: {"inheritedToolDeny", Texts}, InheritedToolAllow: {"inheritedToolAllow", Texts}, PluginOwnerID: {"pluginOwnerId", Text},
	SubagentRecovery: {"subagentRecovery", Raw},
	SystemSent:       {"systemSent", Flag}, AbortedLastRun: {"abortedLastRun", Flag}, AbortCutoffMessageSid: {"abortCutoffMessageSid", Text},
	AbortCutoffTimestamp: {"abortCutoffTimestamp", Stamp}, RestartRecoveryRuns: {"restartRecoveryRuns", Raw},
	RestartRecoveryDeliveryContext: {"restartRecoveryDeliveryContext", Raw}, RestartRecoveryDeliveryRunID: {"restartRecoveryDeliveryRunId", Text},
	ThinkingLevel: {"thinkingLevel", Text}, FastMode: {"fastMode", Raw}, VerboseLevel: {"verboseLevel", Text}, TraceLevel: {"traceLevel", Text},
	ReasoningLevel: {"reasoningLevel", Text}, ElevatedLevel: {"elevatedLevel", Text}, ResponseUsage: {"responseUsage", Text},
	TTSAuto: {"ttsAuto", Text}, LastTTSReadLatestHash: {"lastTtsReadLatestHash", Text}, LastTTSReadLatestAt: {"lastTtsReadLatestAt", Stamp},
	ExecHost: {"execHost", Text}, ExecSecurity: {"execSecurity", Text}, ExecAsk: {"execAsk", Text}, ExecNode: {"execNode", Text},
	ProviderOverride: {"providerOverride", Text}, ModelOverride: {"modelOverride", Text}, ModelOverrideSource: {"modelOverrideSource", Text},
	ModelOverrideFallbackOriginProvider: {"modelOverrideFallbackOriginProvider", Text},
	ModelOverrideFallbackOriginModel:    {"modelOverrideFallbackOriginModel", Text},
	AgentRuntimeOverride:                {"agentRuntimeOverride", Text}, AuthProfileOverride: {"authProfileOverride", Text},
	AuthProfileOverrideSource: {"authProfileOverrideSource", Text}, AuthProfileOverrideCompactionCount: {"authProfileOverrideCompactionCount", Number},
	LiveModelSwitchPending: {"liveModelSwitchPending", Flag},
	GroupActivation:        {"groupActivation", Text}, GroupActivationNeedsSystemIntro: {"groupActivationNeedsSystemIntro", Flag}, SendPolicy: {"sendPolicy", Text},
	QueueMode: {"queueMode", Text}, QueueDebounceMs: {"queueDebounceMs", Number}, QueueCap: {"queueCap", Number}, QueueDrop: {"queueDrop", Text},
	InputTokens: {"inputTokens", Number}, OutputTokens: {"outputTokens", Number}, TotalTokens: {"totalTokens", Number},
	TotalTokensFresh: {"totalTokensFresh", Flag}, TotalTokensVersion: {"totalTokensVersion", Number},
	CacheRead: {"cacheRead", Number}, CacheWrite: {"cacheWrite", Number}, EstimatedCostUSD: {"estimatedCostUsd", Number},
	ContextTokens: {"contextTokens", Number}, ContextBudgetStatus: {"contextBudgetStatus", Raw},
	ModelProvider: {"modelProvider", Text}, Model: {"model", Text}, AgentHarnessID: {"agentHarnessId", Text},
	FallbackNotice: {"fallbackNotice", Raw}, FallbackNoticeSelectedModel: {"fallbackNoticeSelectedModel", Text},
	FallbackNoticeActiveModel: {"fallbackNoticeActiveModel", Text}, FallbackNoticeReason: {"fallbackNoticeReason", Text},
	CompactionCount: {"compactionCount", Number}, CompactionCheckpoints: {"compactionCheckpoints", Raw},
	MemoryFlush: {"memoryFlush", Raw}, MemoryFlushAt: {"memoryFlushAt", Stamp}, MemoryFlushCompactionCount: {"memoryFlushCompactionCount", Number},
	MemoryFlushContextHash: {"memoryFlushContextHash", Text}, MemoryFlushFailureCount: {"memoryFlushFailureCount", Number},
	MemoryFlushLastFailedAt: {"memoryFlushLastFailedAt", Stamp}, MemoryFlushLastFailureError: {"memoryFlushLastFailureError", Text},
	CLISessionIDs: {"cliSessionIds", Raw}, CLISessionBindings: {"cliSessionBindings", Raw}, ClaudeCLISessionID: {"claudeCliSessionId", Text},
	Origin: {"origin", Raw}, Route: {"route", Raw}, DeliveryField: {"delivery", Raw}, DeliveryContext: {"deliveryContext", Raw},
	LastChannel: {"lastChannel", Text}, LastTo: {"lastTo", Text}, LastAccountID: {"lastAccountId", Text}, LastThreadID: {"lastThreadId", Raw},
	AmbientTranscriptWatermarks: {"ambientTranscriptWatermarks", Raw},
	PendingFinalDelivery:        {"pendingFinalDelivery", Raw}, PendingFinalDeliveryText: {"pendingFinalDeliveryText", Text},
	PendingFinalDeliveryLastError: {"pendingFinalDeliveryLastError", Text}, PendingFinalDeliveryIntentID: {"pendingFinalDeliveryIntentId", Text},
	PendingFinalDeliveryCreatedAt: {"pendingFinalDeliveryCreatedAt", Stamp}, PendingFinalDeliveryLastAttemptAt: {"pendingFinalDeliveryLastAttemptAt", Stamp},
	PendingFinalDeliveryAttemptCount: {"pendingFinalDeliveryAttemptCount", Number}, PendingFinalDeliveryContext: {"pendingFinalDeliveryContext", Raw},
	LastHeartbeatText: {"lastHeartbeatText", Text}, LastHeartbeatSentAt: {"lastHeartbeatSentAt", Stamp},
	HeartbeatIsolatedBaseSessionKey: {"heartbeatIsolatedBaseSessionKey", Text}, HeartbeatTaskState: {"heartbeatTaskState", Raw},
	Goal: {"goal", Raw}, QuotaSuspension: {"quotaSuspension", Raw}, PendingSkillSuggestion: {"pendingSkillSuggestion", Raw},
	SkillCaptureSignalHashes: {"skillCaptureSignalHashes", Texts}, SkillsSnapshot: {"skillsSnapshot", Raw}, SystemPromptReport: {"systemPromptReport", Raw},
	PluginExtensions: {"pluginExtensions", Raw}, PluginExtensionSlotKeys: {"pluginExtensionSlotKeys", Raw},
	PluginNextTurnInjections: {"pluginNextTurnInjections", Raw}, PluginDebugEntries: {"pluginDebugEntries", Raw}, ACP: {"acp", Raw},
}

var byName = func() map[string]Field {
	m := make(map[string]Field, fields)
	for f := Undocumented + 1; f < fields; f++ {
		m[documented[f].name] = f
	}
	return m
}()

// Fields lists the documented fields in their documented order.
func Fields() []Field {
	out := make([]Field, 0, fields-1)
	for f := Undocumented + 1; f < fields; f++ {
		out = append(out, f)
	}
	return out
}

// String is the field's name in the file.
func (f Field) String() string {
	if f >= fields {
		return ""
	}
	return documented[f].name
}

// Type is what the field holds when it is well formed.
func (f Field) Type() Type {
	if f >= fields {
		return Raw
	}
	return documented[f].is
}
