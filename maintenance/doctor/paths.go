package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"oc/store/jsonfile"

	"oc/store/lazy"

	"oc/maintenance"
	"oc/store/row"
	"oc/store/span"
)

// Where rows say that their transcripts are (field-reports.md S5, S6;
// spec/file-store.md 4.2, spec/maintenance.md 2.5). Missing and misplaced ones
// are those of a cleanup with --fix-missing.
const (
	TranscriptMissing   Code = "transcript-missing"
	TranscriptMisplaced Code = "transcript-misplaced"
	TranscriptEmpty     Code = "transcript-empty"
	TranscriptNoFile    Code = "transcript-no-file"
	PathMoved           Code = "path-moved"
	PathOutside         Code = "path-outside"
	PathOtherAgent      Code = "path-other-agent"
)

var pathFamily = Family{
	Name: "paths",
	Checks: []Check{
		{
			Code: TranscriptMissing, Severity: Warn, Remedy: ByHand,
			Says:    "a row's transcript is not there",
			Matters: "The session has lost its conversation; the next message begins an empty one.",
			Command: "oc sessions trace KEY looks where it went; oc sessions cleanup --fix-missing takes such rows out",
		},
		{
			Code: TranscriptMisplaced, Severity: Warn, Remedy: ByHand,
			Says:    "a row names another file, and its own transcript is there",
			Matters: "The session shows another conversation, or none.",
			Command: "oc sessions cleanup --fix-missing --dry-run",
		},
		{
			Code: TranscriptEmpty, Severity: Info, Remedy: None,
			Says:    "a row's transcript holds no message",
			Matters: "The session was begun, or reset, and nothing was said since.",
		},
		{
			Code: TranscriptNoFile, Severity: Warn, Remedy: ByHand,
			Says:    "in place of a row's transcript stands something that is no file",
			Matters: "Nothing can be read from it or written to it.",
			Command: "move it away",
		},
		{
			Code: PathMoved, Severity: Warn, Remedy: ByHand,
			Says:    "a row names its transcript where it was before the state was moved",
			Matters: "OpenClaw makes the old directory again, or takes the transcript for missing.",
			Command: "oc repair paths --from DIR --to DIR --dry-run",
		},
		{
			Code: PathOutside, Severity: Warn, Remedy: ByHand,
			Says:    "a row names a file outside of the directories of transcripts",
			Matters: "OpenClaw refuses the path and uses the file of the session's id instead. The file outside is never touched.",
			Command: "correct sessionFile in the row while OpenClaw is down",
		},
		{
			Code: PathOtherAgent, Severity: Warn, Remedy: ByHand,
			Says:    "a row names a file in another agent's directory",
			Matters: "OpenClaw reads and writes there, in what is another agent's.",
			Command: "correct sessionFile in the row while OpenClaw is down",
		},
	},
	store: (*exam).paths,
}

// leadsNowhere tells whether a path ends in a link that cannot be followed.
func leadsNowhere(path string) bool {
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return false
	}
	_, err := os.Stat(path)
	return err != nil
}

func (x *exam) paths(s *site) {
	i := s.live()
	if i == nil {
		return
	}
	verdict := map[string]*maintenance.Action{}
	goes := map[string]maintenance.Rule{}
	for k := range s.plan.Actions {
		if a := &s.plan.Actions[k]; a.Kind == maintenance.DropRow && a.Applies {
			if goes[a.Key] = a.Rule; a.Rule == maintenance.FixMissing {
				verdict[a.Key] = a
			}
		}
	}
	for k := range i.Rows {
		r := &i.Rows[k]
		where, resolved := x.where(s, r)
		a := verdict[r.Key]
		f := Finding{Subject: s.row(r.Key)}
		f.ID, f.File = r.ID, r.File
		switch {
		case r.ID != "" && r.Mend != "" && where == elsewhere:
			f.Code, f.Evidence = PathMoved, []string{"the file of that name is in " + s.dir}
		case r.ID != "" && r.Mend != "":
			f.Code, f.Evidence = TranscriptMisplaced, []string{"its own transcript is " + r.Mend}
		case r.ID == "":
		case a != nil && r.Content == maintenance.Empty:
			f.Code, f.Evidence = TranscriptEmpty, []string{"no line of it is a message"}
		case a != nil:
			f.Code, f.Evidence = TranscriptMissing, []string{"there is no such file"}
		case leadsNowhere(r.File): // cleanup leaves its row: a disk may only not be mounted
			f.Code, f.Evidence = TranscriptMissing, []string{"it is a link that leads nowhere"}
			f.Command = "mount the disk that it leads to, or take the link away"
		default:
			if what := notFile(r.File); what != "" {
				f.Code, f.Evidence = TranscriptNoFile, []string{"it is " + what}
			}
		}
		if rule := goes[r.Key]; rule != "" && r.Mend != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("a cleanup takes the row out by the rule %s", rule))
		}
		if f.Code != "" {
			x.find(f)
		}
		if f.Code == PathMoved {
			continue
		}
		f = Finding{Subject: s.row(r.Key)}
		f.ID, f.File = r.ID, resolved
		switch where {
		case outside:
			f.Code, f.Evidence = PathOutside, []string{"OpenClaw uses " + r.File}
		case otherAgent:
			f.Code, f.Evidence = PathOtherAgent, []string{"its own directory is " + s.dir}
		default:
			continue
		}
		x.find(f)
	}
}

// place is where a sessionFile leads.
type place int

const (
	unsaid     place = iota // the row has none
	inside                  // into the directory of the store, perhaps by links
	otherAgent              // into the directory of another agent of this state
	elsewhere               // into an agent's directory of another state, or one that is not there
	outside                 // anywhere else
)

var agentsDir = lazy.Regexp(`[/\\]agents[/\\]([^/\\]+)[/\\]sessions$`)

// where tells where the sessionFile of a row leads, as a text and with links
// followed, and the path that it means. The file itself is not opened.
func (x *exam) where(s *site, r *maintenance.Row) (place, string) {
	text, _ := r.Text(row.SessionFile)
	path := span.Trim(text)
	if path == "" {
		return unsaid, ""
	}
	if maintenance.Elsewhere(path) { // a name without a directory to this machine, and OpenClaw takes it for that
		if agentsDir().MatchString(path[:max(strings.LastIndexAny(path, `\/`), 0)]) {
			return elsewhere, path
		}
		return outside, path
	}
	if path = filepath.Clean(path); !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	for _, p := range []string{path, resolve(path)} {
		for _, dir := range []string{s.dir, resolve(s.dir)} {
			if below(p, dir) {
				return inside, path
			}
		}
	}
	dir := filepath.Dir(resolve(path))
	m := agentsDir().FindStringSubmatch(dir)
	switch {
	case m == nil:
		return outside, path
	case below(dir, resolve(x.Config.StateDir)) && row.AgentID(m[1]) != row.AgentID(s.Agent):
		return otherAgent, path
	}
	return elsewhere, path
}

// resolve follows the links of a path as far as it exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolve(parent), filepath.Base(path))
	}
	return path
}

func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// notFile says what stands at a path that is no file; "" where a file does, or
// nothing.
func notFile(path string) string {
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && !os.IsNotExist(err):
		return fmt.Sprintf("not to be reached: %s", reason(err))
	case err != nil:
		return ""
	}
	return jsonfile.KindOf(info.Mode())
}
