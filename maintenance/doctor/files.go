package doctor

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/store/lazy"

	"oc/config"
	"oc/maintenance"
	"oc/store/jsonfile"
	"oc/transcript"
)

// What lies in the directories (field-reports.md S2, S8, H;
// spec/file-store.md 4.5, spec/maintenance.md 2.9 and 2.10). What can go is
// what a cleanup would take.
const (
	UnlinkedHistory    Code = "unlinked-history"
	UnlinkedEmpty      Code = "unlinked-empty"
	Archives           Code = "archives"
	BackupCopies       Code = "backup-copies"
	StaleTemp          Code = "stale-temp"
	UnlinkedCheckpoint Code = "unlinked-checkpoint"
	UnlinkedSidecar    Code = "unlinked-sidecar"
	UnlinkedPrompt     Code = "unlinked-prompt"
	PointerDangling    Code = "pointer-dangling"
	HardLink           Code = "hard-link"
	SyncFolder         Code = "sync-folder"
	ModeOpen           Code = "mode-open"
	OwnerForeign       Code = "owner-foreign"
	CaseClash          Code = "case-clash"
	OddEntry           Code = "odd-entry"
	AgentUnreadable    Code = "agent-unreadable"
)

var fileFamily = Family{
	Name: "files",
	Checks: []Check{
		{
			Code: UnlinkedHistory, Severity: Info, Remedy: None,
			Says:    "a transcript that no session names: history, not garbage",
			Matters: "Resets, cron runs and sub-agents leave such conversations. oc sessions --history lists them; nothing removes them unasked.",
		},
		{
			Code: UnlinkedEmpty, Severity: Info, Remedy: None,
			Says:    "a transcript that no session names holds no message",
			Matters: "A session was begun there, and nothing was said.",
		},
		{
			Code: Archives, Severity: Info, Remedy: None,
			Says:    "archives and other remains, by class",
			Matters: "oc sessions cleanup removes those that are over; the others are kept for the reason that is named.",
		},
		{
			Code: BackupCopies, Severity: Info, Remedy: None,
			Says:    "backups of one file are alike",
			Matters: "One of them would do; the others only take room.",
		},
		{
			Code: StaleTemp, Severity: Warn, Remedy: ByHand,
			Says:    "a temporary file is left of a write that did not end",
			Matters: "It takes room, and some releases read it at every start.",
			Command: "oc sessions cleanup removes it, and oc undo brings it back",
		},
		{
			Code: UnlinkedCheckpoint, Severity: Info, Remedy: None,
			Says:    "a compaction checkpoint that no row names",
			Matters: "It can no longer be restored from the session; cleanup removes it when it is old.",
		},
		{
			Code: UnlinkedSidecar, Severity: Info, Remedy: None,
			Says:    "a trajectory, or the pointer to one, of a session that is gone",
			Matters: "It takes room; cleanup removes it when it is old.",
		},
		{
			Code: UnlinkedPrompt, Severity: Info, Remedy: None,
			Says:    "a skill prompt that no row names",
			Matters: "It takes room; cleanup removes it when it is old.",
		},
		{
			Code: PointerDangling, Severity: Info, Remedy: None,
			Says:    "a pointer names a trajectory that is not there",
			Matters: "Many of them make listings slow; the session itself is not touched by it.",
		},
		{
			Code: HardLink, Severity: Warn, Remedy: ByHand,
			Says:    "a file has several names",
			Matters: "A sync or backup tool may hold it: OpenClaw then finds the file changed under it and ends the run, and an import refuses it.",
			Command: "find the other name with find -samefile, and keep the tool out of the state directory",
		},
		{
			Code: SyncFolder, Severity: Warn, Remedy: ByHand,
			Says:    "the state lies in a folder that is synchronised",
			Matters: "The tool renames, locks and restores files while OpenClaw writes them: sessions are lost that way.",
			Command: "move the state out of the folder, or exclude it there",
		},
		{
			Code: ModeOpen, Severity: Warn, Remedy: ByHand,
			Says:    "others on this machine may read the state",
			Matters: "Transcripts and credentials are open to every user of the machine.",
			Command: "chmod 700 the directory, chmod 600 the file",
		},
		{
			Code: OwnerForeign, Severity: Warn, Remedy: ByHand,
			Says:    "a file belongs to another user than the state",
			Matters: "OpenClaw may not be able to write it; a command was run as another user, such as root.",
			Command: "chown the file to the owner of the state directory",
		},
		{
			Code: CaseClash, Severity: Warn, Remedy: ByHand,
			Says:    "two names differ in capitals only",
			Matters: "On a file system that takes them for the same one of the files is lost, as after a copy to macOS or Windows.",
			Command: "see which of them a row names, and put the other one away",
		},
		{
			Code: OddEntry, Severity: Info, Remedy: None,
			Says:    "among the transcripts lies something that is no file",
			Matters: "oc does not open it, and neither follows nor touches it.",
		},
		{
			Code: AgentUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "the directory of an agent cannot be read",
			Matters: "Nothing is known of its sessions.",
			Command: "look at the mode and owner of the directory, or run oc as the user that OpenClaw runs as",
		},
	},
	store: (*exam).files,
	state: (*exam).stateFiles,
}

func (x *exam) files(s *site) {
	if !s.alone {
		return
	}
	x.unlinked(s)
	x.unlinkedBeside(s)
	x.graveyard(s)
	x.temps(s)
	x.entries(s)
}

// unlinked tells of files that no row names. In the era of databases the files
// of the other era are a matter of that family.
func (x *exam) unlinked(s *site) {
	i := s.live()
	if i == nil {
		return
	}
	codes := map[jsonfile.Class]Code{jsonfile.Checkpoint: UnlinkedCheckpoint, jsonfile.Sidecar: UnlinkedSidecar, jsonfile.Prompt: UnlinkedPrompt}
	reset := map[string]int{} // archives of resets by session id
	for k := range s.files {
		if f := &s.files[k]; f.Class == jsonfile.Archive && f.Reason == "reset" {
			reset[f.Session]++
		}
	}
	for _, f := range i.Unlinked() {
		out := Finding{Code: codes[f.Class], Subject: s.at(f.Path), Evidence: []string{fmt.Sprintf("%s, written %s", bytesOf(f.Size), when(float64(f.ModTime.UnixMilli())))}}
		if f.Class == jsonfile.Live {
			g, err := glance(f.Path)
			out.ID = f.Session
			switch {
			case err != nil:
				continue // told by the family of transcripts
			case g.Whole && !g.Messages:
				out.Code = UnlinkedEmpty
			default:
				out.Code = UnlinkedHistory
				if g.First > 0 {
					out.Evidence = append(out.Evidence, "first message "+when(float64(g.First)))
				}
				if g.Last > 0 {
					out.Evidence = append(out.Evidence, "last message "+when(float64(g.Last)))
				}
			}
			if n := reset[f.Session]; n > 0 {
				out.Evidence = append(out.Evidence, (&pile{name: "archives of resets", files: n}).String()+" with the same session id")
			}
		}
		x.find(out)
	}
}

func glance(path string) (transcript.Glimpse, error) {
	f, err := openFile(path)
	if err != nil {
		return transcript.Glimpse{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return transcript.Glimpse{}, err
	}
	return transcript.Glance(f, info.Size())
}

// A pile is one class of what is left over.
type pile struct {
	name    string
	files   int
	bytes   int64
	goes    int
	goBytes int64
}

// String counts the files of a pile.
func (p *pile) String() string {
	name := p.name
	if p.files == 1 {
		name = strings.NewReplacer("archives", "archive", "backups", "backup", "copies", "copy").Replace(name)
	}
	return fmt.Sprintf("%d %s", p.files, name)
}

// bytesOf is a size for people.
func bytesOf(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return short(float64(n)/(1<<10)) + " KiB"
	case n < 1<<30:
		return short(float64(n)/(1<<20)) + " MiB"
	}
	return short(float64(n)/(1<<30)) + " GiB"
}

// short is a number with two digits at least.
func short(f float64) string {
	if f < 10 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// graveyard adds up what is left of sessions by class, what a cleanup removes
// of it now, and why it keeps the rest.
func (x *exam) graveyard(s *site) {
	goes := map[string]string{} // reasons by path
	if s.plan != nil {
		for k := range s.plan.Actions {
			if a := &s.plan.Actions[k]; a.Kind == maintenance.Remove {
				goes[a.Target] = a.Reason
			}
		}
	}
	var piles []*pile
	of := func(name string) *pile {
		for _, p := range piles {
			if p.name == name {
				return p
			}
		}
		piles = append(piles, &pile{name: name})
		return piles[len(piles)-1]
	}
	copies := map[string][]*file{}
	for k := range s.files {
		f := &s.files[k]
		name := remains(f, filepath.Base(s.Index))
		if name == "" || !f.regular() {
			continue
		}
		p := of(name)
		p.files, p.bytes = p.files+1, p.bytes+f.Size
		if _, ok := goes[f.Path]; ok {
			p.goes, p.goBytes = p.goes+1, p.goBytes+f.Size
		}
		if m := repairBackup().FindStringSubmatch(f.base); m != nil {
			copies[fmt.Sprintf("%s %d", m[1], f.Size)] = append(copies[fmt.Sprintf("%s %d", m[1], f.Size)], f)
		}
	}
	for _, p := range piles {
		evidence := []string{fmt.Sprintf("%s, %s", p.String(), bytesOf(p.bytes))}
		switch {
		case p.goes == 0:
			evidence = append(evidence, "nothing of it can go now")
		case p.goes == p.files:
			evidence = append(evidence, "all of it can go now")
		default:
			evidence = append(evidence, fmt.Sprintf("%d of them, %s, can go now", p.goes, bytesOf(p.goBytes)))
		}
		if p.goes < p.files {
			evidence = append(evidence, "kept: "+x.keptWhy(p.name))
		}
		x.find(Finding{Code: Archives, Subject: s.at(s.dir), Evidence: evidence})
	}
	x.alike(s, copies)
}

// remains is the class of what is left over, in words; "" for what is in use.
func remains(f *file, store string) string {
	switch {
	case f.Class == jsonfile.Archive && f.Reason == "deleted":
		return "archives of deletions"
	case f.Class == jsonfile.Archive && f.Reason == "reset":
		return "archives of resets"
	case f.Class == jsonfile.Archive && strings.HasPrefix(f.base, store+".bak"):
		return "backups of the index"
	case f.Class == jsonfile.Archive && f.Reason == "bak":
		return "backups of manual compactions"
	case strings.Contains(f.base, ".corrupt-"):
		return "copies of damaged files"
	case repairBackup().MatchString(f.base), strings.Contains(f.base, ".pre-doctor-"):
		return "backups of repairs"
	}
	return ""
}

var repairBackup = lazy.Regexp(`^(.+\.jsonl)\.bak-\d+-\d+$`)

// keptWhy says why a cleanup keeps what is left of a class.
func (x *exam) keptWhy(name string) string {
	p, _, err := maintenance.ReadPolicy(x.Config, maintenance.Orders{})
	if err != nil {
		return "the configured retention is not known"
	}
	limit := func(ms float64, key string) string {
		if ms == maintenance.Never {
			return key + " is off"
		}
		return fmt.Sprintf("younger than %s (%s)", roundly(ms), key)
	}
	switch name {
	case "archives of deletions":
		return limit(p.PruneAfter, "session.maintenance.pruneAfter")
	case "archives of resets":
		return limit(p.ResetRetention, "session.maintenance.resetArchiveRetention")
	}
	return "no rule of age takes them; a disk budget may"
}

// alike tells of backups that hold the same bytes.
func (x *exam) alike(s *site, copies map[string][]*file) {
	groups := make([]string, 0, len(copies))
	for name := range copies {
		groups = append(groups, name)
	}
	slices.Sort(groups)
	for _, name := range groups {
		g := copies[name]
		same, budget := 1, int64(64<<20)
		for _, f := range g[1:] {
			if budget -= 2 * f.Size; budget < 0 && !x.Deep {
				break
			}
			if equal(g[0].Path, f.Path) {
				same++
			}
		}
		if same > 1 {
			x.find(Finding{Code: BackupCopies, Subject: s.at(g[0].Path), Evidence: []string{fmt.Sprintf("%d backups hold the same %s", same, bytesOf(g[0].Size))}})
		}
	}
}

// equal tells whether two files of the same size hold the same bytes.
func equal(a, b string) bool {
	fa, err := openFile(a)
	if err != nil {
		return false
	}
	defer fa.Close()
	fb, err := openFile(b)
	if err != nil {
		return false
	}
	defer fb.Close()
	ba, bb := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		na, ea := fa.Read(ba)
		nb, eb := fb.Read(bb)
		if na != nb || string(ba[:na]) != string(bb[:nb]) {
			return false
		}
		if ea != nil || eb != nil {
			return ea == eb //nolint:errorlint // io.EOF as it is
		}
	}
}

// temps tells of temporary files that nobody writes any more.
func (x *exam) temps(s *site) {
	told := map[string]bool{}
	if s.plan != nil {
		for k := range s.plan.Actions {
			if a := &s.plan.Actions[k]; a.Rule == maintenance.OldTemp {
				told[a.Target] = true
				x.find(Finding{Code: StaleTemp, Subject: s.at(a.Target), Evidence: []string{a.Reason, bytesOf(a.Bytes)}})
			}
		}
	}
	for k := range s.files {
		f := &s.files[k]
		age := x.Now.Sub(f.ModTime)
		if f.Class == jsonfile.Temp && f.regular() && !told[f.Path] && age.Milliseconds() > recent {
			x.find(Finding{Code: StaleTemp, Subject: s.at(f.Path), Evidence: []string{
				fmt.Sprintf("written %s ago", roundly(float64(age.Milliseconds()))), bytesOf(f.Size),
			}})
		}
	}
}

// entries looks at what each name in a directory stands for.
func (x *exam) entries(s *site) {
	folded := map[string]string{}
	dir, _ := os.Lstat(s.dir)
	open := 0
	for k := range s.files {
		f := &s.files[k]
		if low := strings.ToLower(f.base); folded[low] != "" {
			x.find(Finding{Code: CaseClash, Subject: s.at(f.Path), Evidence: []string{"beside it is " + folded[low]}})
		} else {
			folded[low] = f.base
		}
		if !f.regular() {
			x.oddEntry(s, f)
			continue
		}
		if n := names(f.info); n > 1 && (f.Class == jsonfile.Live || f.Class == jsonfile.Store) {
			x.find(Finding{Code: HardLink, Subject: s.at(f.Path), Evidence: []string{fmt.Sprintf("it has %d names", n)}})
		}
		if dir != nil && owner(dir) >= 0 && owner(f.info) != owner(dir) {
			x.find(Finding{Code: OwnerForeign, Subject: s.at(f.Path), Evidence: []string{fmt.Sprintf("it belongs to user %d, the directory to %d", owner(f.info), owner(dir))}})
		}
		if f.info.Mode().Perm()&0o044 != 0 && (f.Class == jsonfile.Live || f.Class == jsonfile.Store) {
			open++
		}
		if strings.HasSuffix(f.base, ".trajectory-path.json") {
			x.pointer(s, f)
		}
		if sync := syncMark(f.base); sync != "" {
			x.find(Finding{Code: SyncFolder, Subject: s.at(f.Path), Evidence: []string{sync}})
		}
	}
	if open > 0 && reachable(s.dir) {
		x.find(Finding{Code: ModeOpen, Subject: s.at(s.dir), Evidence: []string{fmt.Sprintf("%d transcripts and indexes in it can be read by others, and every directory above lets them in", open)}})
	}
}

// reachable tells whether other users get into a directory.
func reachable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o011 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// oddEntry tells of what is no file among the transcripts. Directories are of
// no interest.
func (x *exam) oddEntry(s *site, f *file) {
	m := f.info.Mode()
	switch {
	case m.IsDir():
		if sync := syncMark(f.base); sync != "" {
			x.find(Finding{Code: SyncFolder, Subject: s.at(f.Path), Evidence: []string{sync}})
		}
		if f.Class == jsonfile.Live || f.Class == jsonfile.Lock {
			x.find(Finding{Code: OddEntry, Subject: s.at(f.Path), Evidence: []string{"it is a directory with the name of a transcript"}})
		}
		return
	case m&fs.ModeSymlink != 0:
		to, err := os.Readlink(f.Path)
		said := "it is a link"
		if err == nil {
			said = "it is a link to " + to
		}
		if _, err := os.Stat(f.Path); err != nil {
			said += ", which leads nowhere: " + reason(err)
		}
		x.find(Finding{Code: OddEntry, Subject: s.at(f.Path), Evidence: []string{said}})
	default:
		x.find(Finding{Code: OddEntry, Subject: s.at(f.Path), Evidence: []string{"it is " + jsonfile.KindOf(m)}})
	}
}

// pointer tells of a pointer to a trajectory that is gone.
func (x *exam) pointer(s *site, f *file) {
	if f.Size > 64<<10 || !f.regular() {
		return
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return
	}
	var p struct {
		RuntimeFile string `json:"runtimeFile"`
	}
	if json.Unmarshal(text, &p) != nil || !filepath.IsAbs(p.RuntimeFile) {
		return
	}
	if _, err := os.Lstat(p.RuntimeFile); err == nil {
		return
	}
	if _, err := os.Lstat(filepath.Join(s.dir, filepath.Base(p.RuntimeFile))); err == nil {
		return // the state was moved, and the trajectory is beside it
	}
	x.find(Finding{Code: PointerDangling, Subject: s.at(f.Path), Evidence: []string{"there is no " + p.RuntimeFile}})
}

// syncMark says what a name tells of a tool that synchronises; "" for nothing.
func syncMark(base string) string {
	low := strings.ToLower(base)
	for name, tool := range map[string]string{
		".tmp.driveupload": "Google Drive", ".tmp.drivedownload": "Google Drive", ".stfolder": "Syncthing", ".stversions": "Syncthing",
		".dropbox": "Dropbox", ".dropbox.cache": "Dropbox", ".owncloudsync.log": "ownCloud", ".sync.ffs_db": "FreeFileSync",
	} {
		if low == name {
			return tool + " keeps its own data here"
		}
	}
	if strings.Contains(base, ".sync-conflict-") || strings.Contains(low, "conflicted copy") {
		return "a copy of a conflict between two machines"
	}
	return ""
}

// syncFolders are names of folders that tools synchronise.
var syncFolders = []string{"Dropbox", "OneDrive", "Google Drive", "GoogleDrive", "Mobile Documents", "CloudStorage", "Nextcloud", "ownCloud", "pCloudDrive", "Syncthing"}

// stateFiles looks at the state directory itself.
func (x *exam) stateFiles() {
	state := x.Config.StateDir
	at := func(path string) Subject { return Subject{File: path, Byte: -1} }
	real := resolve(state)
	for _, part := range strings.Split(filepath.ToSlash(real), "/") {
		if slices.ContainsFunc(syncFolders, func(name string) bool { return part == name || strings.HasPrefix(part, name+" - ") }) {
			x.find(Finding{Code: SyncFolder, Subject: at(state), Evidence: []string{"it lies below a folder named " + part}})
			break
		}
	}
	for dir := real; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		for _, mark := range []string{".stfolder", ".dropbox", ".dropbox.cache", ".tmp.driveupload"} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				x.find(Finding{Code: SyncFolder, Subject: at(dir), Evidence: []string{syncMark(mark)}})
			}
		}
	}
	if info, err := os.Stat(state); err == nil && info.Mode().Perm()&0o077 != 0 && names(info) > 0 {
		x.find(Finding{Code: ModeOpen, Subject: at(state), Evidence: []string{fmt.Sprintf("its mode is %04o, OpenClaw wants 0700", info.Mode().Perm())}})
	}
	if info, err := os.Stat(x.Config.ConfigFile); err == nil && info.Mode().Perm()&0o077 != 0 && names(info) > 0 {
		x.find(Finding{Code: ModeOpen, Subject: at(x.Config.ConfigFile), Evidence: []string{fmt.Sprintf("its mode is %04o, OpenClaw wants 0600", info.Mode().Perm())}})
	}
	x.agentDirs()
}

// agentDirs tells which directories of agents cannot be read.
func (x *exam) agentDirs() {
	root := filepath.Join(x.Config.StateDir, "agents")
	entries, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		x.find(Finding{Code: AgentUnreadable, Subject: Subject{File: root, Byte: -1}, Evidence: []string{reason(err)}})
	}
	for _, d := range entries {
		path := filepath.Join(root, d.Name())
		if !d.IsDir() {
			if d.Type()&fs.ModeSymlink == 0 {
				continue
			}
			_, err := os.Stat(path)
			if err == nil {
				continue // OpenClaw does not follow it either, unless a store is configured there
			}
			x.find(Finding{Code: AgentUnreadable, Subject: Subject{Agent: config.NormalizeAgentID(d.Name()), File: path, Byte: -1}, Evidence: []string{"it is a link that leads nowhere: " + reason(err)}})
			continue
		}
		for _, dir := range []string{path, filepath.Join(path, "sessions"), filepath.Join(path, "agent")} {
			if _, err := os.ReadDir(dir); err != nil && !os.IsNotExist(err) {
				x.find(Finding{Code: AgentUnreadable, Subject: Subject{Agent: config.NormalizeAgentID(d.Name()), File: dir, Byte: -1}, Evidence: []string{reason(err)}})
				break
			}
		}
	}
}
