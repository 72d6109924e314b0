package jsonfile

import (
	"regexp"
	"strings"
	"time"

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
	archiveStamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{3})?Z$`)
	generation   = regexp.MustCompile(`^(.+Z)\.[0-9a-f]{32}$`)
	storeBackup  = regexp.MustCompile(`^sessions\.json\.bak\.\d+$`)
	uuid         = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	tempName     = regexp.MustCompile(`(?i)\.(?:\d+\.)?` + uuid + `\.tmp$`)
	forkName     = regexp.MustCompile(`(?i)^\d{4}-\d\d-\d\dT[\d-]+(?:\.\d+)?(?:Z|[+-]\d\d-\d\d)_(` + uuid + `)$`)
	topicName    = regexp.MustCompile(`(?i)^(` + uuid + `)-topic-.+$`)
)

// NameOf tells what the file of that name is, beside a store with the given
// base name.
func NameOf(name, store string) Name {
	low := strings.ToLower(name)
	switch {
	case name == store:
		return Name{Class: Store}
	case strings.HasSuffix(low, ".lock"):
		return Name{Class: Lock}
	case tempName.MatchString(name):
		return Name{Class: Temp}
	case storeBackup.MatchString(name):
		return Name{Class: Archive, Reason: "bak"}
	}
	if n, ok := archiveOf(name); ok {
		return n
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

var unsafeRune = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// TrajectoryName is the name of a session's trajectory in a directory of
// trajectories (spec/file-store.md 4.5, release 2026.7.35).
func TrajectoryName(id string) string {
	safe := unsafeRune.ReplaceAllString(id, "_")
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
		if m := generation.FindStringSubmatch(stamp); m != nil {
			stamp = m[1]
		}
		if !archiveStamp.MatchString(stamp) {
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

// SessionOf is the session id in the stem of a transcript's name: the uuid of
// a fork's or a topic's generated name, else the stem itself
// (spec/file-store.md 4.3).
func SessionOf(stem string) string {
	for _, re := range []*regexp.Regexp{forkName, topicName} {
		if m := re.FindStringSubmatch(stem); m != nil {
			return m[1]
		}
	}
	return stem
}
