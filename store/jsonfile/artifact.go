package jsonfile

import (
	"strings"
	"time"

	"oc/store/lazy"
	"oc/store/row"
)

// A Class is what a file in a sessions directory is, told by its name
// (spec/file-store.md 4.5).
type Class string

// The classes of file.
const (
	Store      Class = "store"
	Live       Class = "live"       // a transcript, linked by a row or not
	Archive    Class = "archive"    // <name>.reset.<ts>, .deleted.<ts>, .bak.<ts>; sessions.json.bak.<n>
	Checkpoint Class = "checkpoint" // <name>.checkpoint.<uuid>.jsonl
	Sidecar    Class = "sidecar"    // a trajectory or the pointer to one
	Lock       Class = "lock"
	Temp       Class = "temp"
	Prompt     Class = "prompt" // a blob under skills-prompts
	Other      Class = "other"  // not OpenClaw's, or a backup that it never looks at again
)

// A Name is what a file's name says.
type Name struct {
	Class   Class
	Session string    // the session id of a transcript or archive; "" where the name has none
	Reason  string    // reset, deleted or bak, of an archive
	At      time.Time // when it was archived
	Zstd    bool      // the archive is compressed (SQLite era)
}

var (
	generation  = lazy.Regexp(`^(.+Z)\.[0-9a-f]{32}$`)
	storeBackup = lazy.Regexp(`^sessions\.json\.bak\.\d+$`)
	uuid        = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	tempName    = lazy.Regexp(`(?i)\.(?:\d+\.)?` + uuid + `\.tmp$`)
	forkName    = lazy.Regexp(`(?i)^\d{4}-\d\d-\d\dT[\d-]+(?:\.\d+)?(?:Z|[+-]\d\d-\d\d)_(` + uuid + `)$`)
	topicName   = lazy.Regexp(`(?i)^(` + uuid + `)-topic-.+$`)
)

// NameOf tells what the file of that name is, beside a store with the given
// base name.
func NameOf(name, store string) Name {
	// Directories hold thousands of files: expressions are for names that may match them.
	tail := strings.ToLower(name[max(0, len(name)-8):])
	switch {
	case name == store:
		return Name{Class: Store}
	case strings.HasSuffix(tail, ".lock"):
		return Name{Class: Lock}
	case strings.HasSuffix(tail, ".tmp") && tempName().MatchString(name):
		return Name{Class: Temp}
	case strings.HasPrefix(name, "sessions.json.bak.") && storeBackup().MatchString(name):
		return Name{Class: Archive, Reason: "bak"}
	}
	if !strings.HasSuffix(name, ".jsonl") {
		if n, ok := archiveOf(name); ok {
			return n
		}
	}
	switch {
	case strings.HasSuffix(name, ".trajectory.jsonl"), strings.HasSuffix(name, ".trajectory-path.json"):
		return Name{Class: Sidecar}
	case row.IsCheckpointName(name):
		return Name{Class: Checkpoint}
	case strings.HasSuffix(name, ".jsonl"):
		return Name{Class: Live, Session: SessionOf(strings.TrimSuffix(name, ".jsonl"))}
	}
	return Name{Class: Other}
}

var unsafeRune = lazy.Regexp(`[^A-Za-z0-9_-]`)

// TrajectoryName is the name of a session's trajectory in a directory of
// trajectories (spec/file-store.md 4.5, release 2026.7.35).
func TrajectoryName(id string) string {
	safe := unsafeRune().ReplaceAllString(id, "_")
	safe = safe[:min(len(safe), 120)]
	if strings.Trim(safe, "_-") == "" {
		safe = "session"
	}
	return safe + ".jsonl"
}

func archiveOf(name string) (Name, bool) {
	base, zstd := strings.CutSuffix(name, ".zst")
	for _, reason := range []string{"reset", "deleted", "bak"} {
		i := strings.LastIndex(base, "."+reason+".")
		if i < 0 {
			continue
		}
		stamp := base[i+len(reason)+2:]
		if at := len(stamp) - 33; at > 0 && stamp[at] == '.' {
			if m := generation().FindStringSubmatch(stamp); m != nil {
				stamp = m[1]
			}
		}
		if !isStamp(stamp) {
			continue
		}
		at, err := time.Parse("2006-01-02T15-04-05Z", stamp)
		if err != nil {
			at, _ = time.Parse("2006-01-02T15-04-05.000Z", stamp)
		}
		id := strings.TrimSuffix(base[:i], ".jsonl")
		return Name{Class: Archive, Session: SessionOf(id), Reason: reason, At: at, Zstd: zstd}, true
	}
	return Name{}, false
}

// isStamp tells whether a text is the time in an archive's name: UTC, with or
// without milliseconds.
func isStamp(s string) bool {
	const form = "0000-00-00T00-00-00.000Z"
	if len(s) == len(form)-4 && s[19] == 'Z' {
		s = s[:19] + form[19:]
	}
	if len(s) != len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' && (s[i] < '0' || s[i] > '9') || form[i] != '0' && s[i] != form[i] {
			return false
		}
	}
	return true
}

// SessionOf is the session id in the stem of a transcript's name: the uuid of
// a fork's or a topic's generated name, else the stem itself
// (spec/file-store.md 4.3).
func SessionOf(stem string) string {
	const id = 36 // bytes of a uuid
	if n := len(stem); n > id && stem[n-id-1] == '_' {
		if m := forkName().FindStringSubmatch(stem); m != nil {
			return m[1]
		}
	}
	if len(stem) > id && stem[id] == '-' {
		if m := topicName().FindStringSubmatch(stem); m != nil {
			return m[1]
		}
	}
	return stem
}
