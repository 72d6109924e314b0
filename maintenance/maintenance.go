// Package maintenance decides what should change in a store of the file era,
// and why.
//
// Three steps, the last of them pure:
//
//	policy, warnings, err := maintenance.ReadPolicy(config, orders)  // what is wanted
//	snapshot, err := maintenance.Take(ctx, config, target, policy, machine, now)  // what is there
//	plan := maintenance.Make(policy, snapshot, now)  // what should change
//
// A [Plan] names every row, file and byte that would change, the rule that asks
// for it, and every row that stays although a rule asks for it to go, with the
// rule that protects it. The same policy, snapshot and time give the same plan;
// a dry run prints it and nothing else is ever applied.
//
// The order of the rules and every boundary are those of OpenClaw 2026.7.35
// (spec/maintenance.md 2.3 to 2.13). Beyond it, on purpose: rows whose
// transcript is locked or was written a moment ago stay, an impossible time
// never makes a row old, a file is unlinked only when no row of any store
// sharing the directory names it, and history is archived rather than deleted.
package maintenance

// A Rule is why something changes or stays. Rules are shown to people and
// stand in JSON documents.
type Rule string

// Rules that ask for a change.
const (
	FixMissing    Rule = "fix-missing"    // the row's transcript is gone or holds no message
	Repair        Rule = "repair"         // the row names another session's file, its own is there
	DMScope       Rule = "dm-scope"       // a direct chat's row, while all direct chats share the main session
	CronRetention Rule = "cron-retention" // an isolated cron run is over, or its job is gone
	ByHand        Rule = "by-hand"        // it is what the user selected
	ModelRun      Rule = "model-run"      // a gateway's probe, while there are too many rows
	Stale         Rule = "stale"          // not used for longer than session.maintenance.pruneAfter
	Cap           Rule = "cap"            // there are more rows than session.maintenance.maxEntries
	Retention     Rule = "retention"      // an archive older than its retention
	Budget        Rule = "budget"         // the directory is larger than session.maintenance.maxDiskBytes
	Unlinked      Rule = "unlinked"       // a file that no row names
	OldTemp       Rule = "old-temp"       // left behind by a write that did not end
	RowsChanged   Rule = "rows-changed"   // the store, because rows of it change
	Dashboard     Rule = "dashboard"      // a dashboard's session, not used for longer than archiveDashboardAfter; databases only
)

// Rules that protect.
const (
	ActiveKey    Rule = "active-key"    // the user said that it is in use
	Thread       Rule = "thread"        // a thread or topic of a conversation
	Group        Rule = "group"         // a conversation of a group or a channel
	Locked       Rule = "locked"        // a process that lives, or may live, holds the transcript's lock
	RecentBytes  Rule = "recent-bytes"  // the transcript was written in the last five minutes
	UnknownAge   Rule = "unknown-age"   // its time of use is no time
	MainSession  Rule = "main"          // an agent's main session; asks for --include-protected
	Pinned       Rule = "pinned"        // asks for --include-protected
	Shelved      Rule = "archived"      // it was put aside; databases only
	ModelLocked  Rule = "model-locked"  // its model selection is locked; databases only
	Running      Rule = "running"       // its status is running; databases of 2026.9.6 only
	Recent       Rule = "recent"        // used within session.maintenance.preserveRecent; databases only
	External     Rule = "external"      // a conversation with somebody outside; databases of 2026.9.6 only
	JobExists    Rule = "job-exists"    // the cron job is still configured
	JobsUnknown  Rule = "jobs-unknown"  // the cron jobs cannot be read
	SlashRoute   Rule = "slash-route"   // a row that routes slash commands never has a transcript
	Misfit       Rule = "misfit"        // a row that OpenClaw would not take in a database as it stands: writing it would close all of them
	SharedID     Rule = "shared-id"     // another row has the same session or file
	Linked       Rule = "linked"        // a link: it is not followed and not touched
	KeptUnlinked Rule = "keep-unlinked" // the user wants unlinked history left alone
	Neighbour    Rule = "neighbour"     // a store that shares the directory cannot be read
)

// Label is OpenClaw's word for what a rule does to a row, as its dry run
// prints it (spec/maintenance.md 3.2); "keep" for every other rule.
func (r Rule) Label() string {
	switch r {
	case DMScope:
		return "retire-dm-scope"
	case FixMissing:
		return "prune-missing"
	case ModelRun:
		return "prune-model-run"
	case Stale:
		return "prune-stale"
	case Cap:
		return "cap-overflow"
	case Budget:
		return "evict-budget"
	case Repair:
		return "repair-session-file"
	case CronRetention:
		return "prune-cron"
	case ByHand:
		return "prune-by-hand"
	}
	return "keep"
}
