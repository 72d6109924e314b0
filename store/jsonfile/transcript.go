package jsonfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oc/store/lazy"
	"oc/store/row"
	"oc/store/span"
)

// Where a transcript was looked for (spec/file-store.md 4.2-4.4).
const (
	ByFile    = "sessionFile"       // the row names it
	ByID      = "session id"        // <sessions dir>/<id>.jsonl
	ByStale   = "stale sessionFile" // the row names a file of another session id
	ByDefault = "agent directory"   // <state>/agents/<agent>/sessions/<id>.jsonl
	ByHome    = "home directory"    // <home>/.openclaw/sessions/<id>.jsonl
)

// A Candidate is a place where a row's transcript may be.
type Candidate struct {
	Path, How string
	Odd       string // what stands there instead of a file: "a pipe"; as Find sees it
}

// A Place is what decides where transcripts of a store are: the store's path,
// the agent it belongs to, the state directory and the home directory.
type Place struct{ Store, Agent, State, Home string }

// Dir is the directory of the transcripts.
func (p Place) Dir() string { return filepath.Dir(p.Store) }

// Candidates lists the places of a row's transcript, the best first. It looks
// at the disk only to follow links of the directories.
func (p Place) Candidates(e *row.Entry) []Candidate {
	var out []Candidate
	add := func(path, how string) {
		for _, c := range out {
			if c.Path == path {
				return
			}
		}
		out = append(out, Candidate{Path: path, How: how})
	}
	id := e.ID()
	file, _ := e.Text(row.SessionFile)
	named, ok := p.resolve(span.Trim(file))
	stale := ok && isStale(named, id)
	if ok && !stale {
		add(named, ByFile)
	}
	if id != "" && row.IsTranscriptID(id) {
		add(filepath.Join(p.Dir(), id+".jsonl"), ByID)
	}
	if stale {
		add(named, ByStale)
	}
	if id != "" && row.IsTranscriptID(id) {
		if p.State != "" && p.Agent != "" {
			add(filepath.Join(p.State, "agents", p.Agent, "sessions", id+".jsonl"), ByDefault)
		}
		if p.Home != "" {
			add(filepath.Join(p.Home, ".openclaw", "sessions", id+".jsonl"), ByHome)
		}
	}
	return out
}

// Find is the first candidate that is there as a regular file. missing is true
// where none is; then the best candidate is returned, or one with something odd
// in its place.
func (p Place) Find(e *row.Entry) (c Candidate, info os.FileInfo, missing bool) {
	all := p.Candidates(e)
	var odd *Candidate
	for i := range all {
		info, err := os.Stat(all[i].Path)
		switch {
		case err != nil:
			if odd == nil && isLink(all[i].Path) {
				all[i].Odd = "a link that leads nowhere"
				odd = &all[i]
			}
		case info.Mode().IsRegular():
			return all[i], info, false
		case odd == nil:
			all[i].Odd = KindOf(info.Mode())
			odd = &all[i]
		}
	}
	switch {
	case odd != nil:
		return *odd, nil, true
	case len(all) == 0:
		return Candidate{}, nil, true
	}
	return all[0], nil, true
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

var agentFile = lazy.Regexp(`[/\\]agents[/\\]([^/\\]+)[/\\]sessions[/\\][^/\\]+$`)

// resolve is the path that a sessionFile means; ok is false for one that
// OpenClaw does not accept.
func (p Place) resolve(file string) (path string, ok bool) {
	if file == "" {
		return "", false
	}
	base := real(p.Dir())
	if !filepath.IsAbs(file) {
		rel := filepath.Clean(file)
		if rel == "." || strings.HasPrefix(rel, "..") {
			return "", false
		}
		return filepath.Join(base, rel), true
	}
	full := real(filepath.Clean(file))
	if inside(full, base) {
		return full, true
	}
	if p.Agent != "" {
		for _, dir := range []string{filepath.Join(filepath.Dir(filepath.Dir(base)), p.Agent, "sessions"), filepath.Join(p.State, "agents", p.Agent, "sessions")} {
			if inside(full, real(dir)) {
				return full, true
			}
		}
	}
	// Any agent's sessions directory will do, wherever it is: the state may
	// have been moved.
	if m := agentFile().FindStringSubmatch(full); m != nil && row.AgentID(m[1]) == m[1] {
		return full, true
	}
	return "", false
}

func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && !strings.HasPrefix(rel, "..")
}

// real follows links as far as the path exists.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if r, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(r, filepath.Base(path))
	}
	return path
}

// generated names carry the id of the session they were made for.
var generatedName = lazy.Regexp(`(?i)^(?:` + uuid + `|` + uuid + `-topic-.+|\d{4}-\d\d-\d\dT[\d-]+(?:\.\d+)?(?:Z|[+-]\d\d-\d\d)_` + uuid + `)$`)

func isStale(path, id string) bool {
	stem, ok := strings.CutSuffix(filepath.Base(path), ".jsonl")
	return ok && id != "" && generatedName().MatchString(stem) && !strings.EqualFold(SessionOf(stem), id)
}
