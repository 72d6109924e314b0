package maintenance

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/store/jsonfile"
	"oc/store/lazy"
	"oc/store/row"
	"oc/store/span"
)

// Limits of the prompts that OpenClaw keeps in files of their own
// (spec/file-store.md 2.7): UTF-16 units and bytes.
const (
	promptUnits = 512
	promptBytes = 512 << 10
)

var uuidFile = lazy.Regexp(`^(?i:(` + `[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}` + `))\.jsonl$`)

// namer finds the files that the rows of one store name. It reads no file and,
// for rows whose file is in the directory, asks the file system nothing.
type namer struct {
	s     *Snapshot
	place jsonfile.Place // without an agent: cleanup does not look in its directory (spec/maintenance.md 2.5)
	real  string         // the directory without links in its path
	other map[string]int // files elsewhere by path
}

func newNamer(s *Snapshot, store, state string) *namer {
	n := &namer{s: s, place: jsonfile.Place{Store: store, State: state}, real: s.Dir, other: map[string]int{}}
	if r, err := filepath.EvalSymlinks(s.Dir); err == nil {
		n.real = r
	}
	return n
}

// row works out the files of an entry.
func (n *namer) row(e row.Entry) Row {
	r := Row{Entry: e, ID: e.ID(), runtime: -1}
	r.Updated, r.HasTime = e.Updated()
	if r.HasTime {
		_, fine := e.Stamp(row.UpdatedAt)
		r.Odd = !fine || r.inSeconds()
	}
	byID := ""
	if r.ID != "" && row.IsTranscriptID(r.ID) {
		byID = n.s.transcriptOf(r.ID)
	}
	named, lexical := n.sessionFile(&r.Entry)
	if r.File = named; named == "" {
		r.File = byID
	}
	// A file that is reached through a link is not the row's own.
	for k, path := range []string{lexical, byID} {
		if k == 1 && path == lexical {
			continue
		}
		if i, ok := n.find(path); ok {
			if f := &n.s.Files[i]; !f.Link && !slices.Contains(r.own, i) {
				r.own = append(r.own, i)
			}
			r.name(i)
			n.follow(&r, i)
		}
	}
	for k, path := range []string{named, byID} {
		if k == 1 && path == named {
			continue
		}
		if i, ok := n.find(path); ok {
			r.name(i)
		}
	}
	// What lies beside <id>.jsonl belongs to it only while the row has no other transcript, as with OpenClaw.
	for _, i := range n.beside(r.File) {
		r.name(i)
		r.side = append(r.side, i)
	}
	if r.ID != "" {
		if i, ok := n.find(r.File); ok && n.s.Files[i].direct {
			r.traces = append(r.traces, i)
		}
		for _, i := range r.side {
			if n.s.Files[i].direct {
				r.traces = append(r.traces, i)
			}
		}
	}
	n.checkpoints(&r)
	n.prompts(&r)
	return r
}

// inSeconds says that updatedAt is a number, but one that another program has
// written: as milliseconds it lies in early 1970, as seconds in this century.
func (r *Row) inSeconds() bool { return r.Updated >= 1e9 && r.Updated < 5e9 }

// follow names what a link leads to: the row reads it.
func (n *namer) follow(r *Row, i int) {
	f := &n.s.Files[i]
	if !f.Link {
		return
	}
	if path, err := filepath.EvalSymlinks(f.Path); err == nil {
		if to, ok := n.find(n.here(path)); ok {
			r.name(to)
		}
	}
}

func (r *Row) name(i int) {
	if !slices.Contains(r.names, i) {
		r.names = append(r.names, i)
	}
}

// sessionFile is the path that the row's sessionFile means, links followed,
// and the path as it is written; both "" where OpenClaw does not accept it.
func (n *namer) sessionFile(e *row.Entry) (named, lexical string) {
	text, _ := e.Text(row.SessionFile)
	file := span.Trim(text)
	if file == "" {
		return "", ""
	}
	path := filepath.Clean(file)
	if !filepath.IsAbs(path) {
		path = filepath.Join(n.s.Dir, path)
	}
	base, ok := n.s.local(path)
	if !ok && filepath.Dir(path) == n.real {
		base, ok = filepath.Base(path), true
	}
	if ok {
		if strings.HasPrefix(base, "..") {
			return "", ""
		}
		path = n.s.in(base)
		if i, ok := n.s.names[base]; !ok && !n.s.odd[base] || ok && !n.s.Files[i].Link {
			return path, path
		}
	}
	for _, c := range n.place.Candidates(e) {
		if c.How == jsonfile.ByFile || c.How == jsonfile.ByStale {
			return n.here(c.Path), n.here(path)
		}
	}
	return "", ""
}

// here writes a path below the real directory as one below the directory.
func (n *namer) here(path string) string {
	if rel, err := filepath.Rel(n.real, path); err == nil && rel != "." && !strings.HasPrefix(rel, "..") {
		return filepath.Join(n.s.Dir, rel)
	}
	return path
}

// inside tells whether a path is below the directory.
func (n *namer) inside(path string) bool {
	rel, err := filepath.Rel(n.s.Dir, path)
	return err == nil && rel != "." && !strings.HasPrefix(rel, "..")
}

// find is the file at a path below the directory. A file in a subdirectory is
// added to the snapshot when it is asked for, unless a link leads to it.
func (n *namer) find(path string) (int, bool) {
	if path == "" {
		return 0, false
	}
	if base, ok := n.s.local(path); ok {
		i, ok := n.s.names[base]
		return i, ok
	}
	if !n.inside(path) {
		return 0, false
	}
	if i, ok := n.other[path]; ok {
		return i, i >= 0
	}
	n.other[path] = -1
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil || n.here(resolved) != path {
		return 0, false
	}
	return n.add(path)
}

// add puts a file from elsewhere into the snapshot.
func (n *namer) add(path string) (int, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	f := File{Base: filepath.Base(path), Info: info}
	f.Item = jsonfile.Item{Name: jsonfile.NameOf(f.Base, ""), Path: path, Size: info.Size(), ModTime: info.ModTime()}
	i := len(n.s.Files)
	n.s.Files, n.other[path] = append(n.s.Files, f), i
	return i, true
}

// beside are the trajectory and the pointer beside a transcript, in a folder
// below the directory too (spec/maintenance.md 2.8).
func (n *namer) beside(path string) (out []int) {
	if _, ok := n.s.local(path); path == "" || ok && !n.s.sidecars {
		return nil
	}
	stem := strings.TrimSuffix(path, ".jsonl")
	for _, tail := range []string{".trajectory.jsonl", ".trajectory-path.json"} {
		if i, ok := n.find(stem + tail); ok && !n.s.Files[i].Link {
			out = append(out, i)
		}
	}
	return out
}

// checkpoints adds the files of compaction checkpoints. OpenClaw resolves a
// relative one against the directory that it happens to run in; here it is one
// beside the store. A malformed one, over which OpenClaw stops, is a finding.
func (n *namer) checkpoints(r *Row) {
	raw := r.Raw(row.CompactionCheckpoints)
	if raw == nil {
		return
	}
	malformed := span.KindOf(raw) != span.Array && span.KindOf(raw) != span.Null
	span.Items(raw, 0, func(item []byte) error { //nolint:errcheck // not a list: malformed
		for _, side := range []string{"preCompaction", "postCompaction"} {
			val := span.Member(item, side)
			if span.KindOf(val) != span.Object {
				malformed = true
				continue
			}
			text, _ := span.Text(span.Member(val, "sessionFile"))
			if text = span.Trim(text); text == "" {
				continue
			}
			path := filepath.Clean(text)
			if !filepath.IsAbs(path) {
				path = filepath.Join(n.s.Dir, path)
			}
			if filepath.Dir(path) != n.s.Dir {
				if real, err := filepath.EvalSymlinks(path); err == nil {
					path = real
				}
			}
			if i, ok := n.find(n.here(path)); ok {
				r.name(i)
			}
		}
		return nil
	})
	if malformed {
		n.s.Problems = append(n.s.Problems, "the row "+r.Key+" has a malformed compaction checkpoint; the other files it names are respected")
	}
}

// prompts adds the files of the row's skill prompt: the one it refers to in a
// way that OpenClaw follows, and the one that it would write for a prompt in
// the row.
func (n *namer) prompts(r *Row) {
	if len(n.s.prompts) == 0 {
		return
	}
	skills := r.Raw(row.SkillsSnapshot)
	if hash, bytes, ok := promptRef(skills); ok {
		if i, ok := n.s.prompts[hash]; ok && float64(n.s.Files[i].Size) == bytes {
			r.name(i)
		}
	}
	if text, ok := span.Text(span.Member(skills, "prompt")); ok && len(text) <= promptBytes && span.UTF16Len(text) >= promptUnits {
		sum := sha256.Sum256([]byte(text))
		if i, ok := n.s.prompts[hex.EncodeToString(sum[:])]; ok {
			r.name(i)
		}
	}
}

// promptRef is the file that a skills snapshot refers to: its hash and size. ok
// is false for a reference that OpenClaw does not follow.
func promptRef(skills []byte) (hash string, bytes float64, ok bool) {
	ref := span.Member(skills, "promptRef")
	hash, _ = span.Text(span.Member(ref, "hash"))
	algorithm, _ := span.Text(span.Member(ref, "algorithm"))
	version, _ := span.Float(span.Member(ref, "version"))
	bytes, sized := span.Float(span.Member(ref, "bytes"))
	return hash, bytes, version == 1 && algorithm == "sha256" && sized && bytes <= promptBytes
}
