package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/config"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/lock"
	"oc/store/row"
	"oc/store/span"
)

// A Missing is a store that is not there although transcripts are: it is not
// taken for an empty one, which would make all of them unlinked.
type Missing struct {
	Path  string
	Files int // transcripts, archives and the like in its directory
}

func (e *Missing) Error() string {
	lie := fmt.Sprintf("%d transcripts, archives or half written stores lie", e.Files)
	if e.Files == 1 {
		lie = "a transcript, an archive or a half written store lies"
	}
	return fmt.Sprintf("there is no session store %s, but %s beside it", e.Path, lie)
}

// A NotStore is a JSON file that holds no sessions, and is not taken for a
// store of them.
type NotStore struct{ Path, Reason string }

func (e *NotStore) Error() string {
	return fmt.Sprintf("%s is not a session store: %s", e.Path, e.Reason)
}

// Take reads what is there for the store of a target: the store, its directory
// once, the locks, and which files the rows of every store in the directory
// name. It opens transcripts only where a rule of the policy needs to know
// whether messages are in them, and then only those of up to 4 KiB; what it
// holds does not grow with the size of files. It changes nothing.
//
// A store that is not there, with nothing beside it, gives an empty snapshot;
// for a policy that is Beside the store its files alone are looked at.
// The error is a *row.Damage, *Missing or *NotStore where the store is not fit
// to be changed, else one of the file system.
func Take(ctx context.Context, c *config.Config, t store.Target, p *Policy, m lock.Machine, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Agent: t.Agent, Store: t.Index, Dir: filepath.Dir(t.Index), Taken: now}
	if p.Beside {
		if err := s.list(ctx); err != nil {
			return nil, err
		}
		return s, s.locks(m, now)
	}
	f, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	if s.Absent {
		if n := s.remains(); n > 0 {
			return nil, &Missing{s.Store, n}
		}
		return s, nil
	}
	if why := stranger(f); t.Named && why != "" {
		return nil, &NotStore{s.Store, why}
	}
	s.Text, s.Skipped = f.Text, f.Skipped
	for _, x := range f.Skipped {
		s.Problems = append(s.Problems, fmt.Sprintf("the row %s is left as it is; OpenClaw does not load it: %s", x.Key, x.Reason))
	}
	n := newNamer(s, s.Store, c.StateDir)
	s.Rows = make([]Row, len(f.Entries))
	s.byKey = make(map[string]int, len(f.Entries))
	for i, e := range f.Entries {
		s.Rows[i] = n.row(e)
		s.byKey[e.Key] = i
	}
	s.neighbours(ctx, c)
	if err := s.locks(m, now); err != nil {
		return nil, err
	}
	for i := range s.Rows {
		s.transcript(n, &s.Rows[i], p, m, now)
	}
	if p.MaxDiskBytes > 0 {
		s.measure()
	}
	if p.Cron {
		s.cronJobs(ctx, c.StateDir)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.lookCloser(n, p, now)
	return s, nil
}

// stranger says why a file is no session store; "" where it may be one.
func stranger(f *jsonfile.File) string {
	if strings.EqualFold(filepath.Base(f.Path), "openclaw.json") {
		return "a file of that name is the configuration"
	}
	found, members := false, 0
	span.Each(f.Text, 0, func(_, val []byte) error { //nolint:errcheck // it was read whole before
		members++
		found = found || span.KindOf(val) == span.Object && span.KindOf(span.Member(val, row.SessionID.String())) == span.String
		return nil
	})
	if found || members == 0 {
		return ""
	}
	return "nothing in it has a sessionId"
}

// read reads the store, together with the file that it is.
func (s *Snapshot) read() (f *jsonfile.File, err error) {
	for try := 1; ; try++ {
		f, err = jsonfile.Read(s.Store)
		if errors.Is(err, fs.ErrNotExist) {
			s.Absent = true
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if at, err := os.Lstat(s.Store); err == nil {
			s.Linked = at.Mode()&fs.ModeSymlink != 0
		}
		s.Info, err = os.Stat(s.Store)
		if err == nil && s.Info.Size() == int64(len(f.Text)) && s.Info.ModTime().Equal(f.ModTime) {
			return f, nil
		}
		if try == 3 {
			return nil, &Changed{s.Store}
		}
	}
}

// remains counts what a lost store leaves: transcripts, archives, and what a
// write of it that did not end left.
func (s *Snapshot) remains() int {
	n := s.count(jsonfile.Live) + s.count(jsonfile.Archive)
	for i := range s.Files {
		if isStoreTemp(s.Files[i].Base, filepath.Base(s.Store)) {
			n++
		}
	}
	return n
}

func (s *Snapshot) count(class jsonfile.Class) (n int) {
	for i := range s.Files {
		if s.Files[i].Class == class {
			n++
		}
	}
	return n
}

// neighbours finds the other stores whose transcripts lie in the directory,
// and marks the files that their rows name.
func (s *Snapshot) neighbours(ctx context.Context, c *config.Config) {
	paths := []string{filepath.Join(s.Dir, config.StoreFile)}
	for _, id := range c.StoreAgents() {
		paths = append(paths, c.StorePath(id))
	}
	seen := map[string]bool{s.Store: true}
	for _, path := range paths {
		if seen[path] || !s.sameDir(filepath.Dir(path)) || ctx.Err() != nil {
			continue
		}
		seen[path] = true
		if info, err := os.Stat(path); err == nil && os.SameFile(info, s.Info) {
			continue // this very store, by another path
		}
		f, err := jsonfile.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.Blind = err.Error()
			continue
		}
		n := newNamer(s, path, c.StateDir)
		for _, e := range f.Entries {
			r := n.row(e)
			for _, i := range r.names {
				s.Files[i].foreign = path
			}
		}
	}
}

// sameDir tells whether a path is the directory, links followed.
func (s *Snapshot) sameDir(path string) bool {
	if path == s.Dir {
		return true
	}
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(s.Dir)
	return err == nil && os.SameFile(a, b)
}

// locks looks at the transcript locks of the directory.
func (s *Snapshot) locks(m lock.Machine, now time.Time) error {
	if s.count(jsonfile.Lock) == 0 {
		return nil
	}
	reports, err := lock.Scan(s.Dir, m, now)
	if err != nil {
		return err
	}
	s.heldNames = map[string]string{}
	for _, r := range reports {
		if !r.State.Holds() {
			continue
		}
		why := strings.Join(r.Evidence, "; ")
		base := strings.TrimSuffix(filepath.Base(r.Path), lock.Suffix)
		s.held(base, why)
		// What belongs to a transcript is in use with it.
		stem := strings.TrimSuffix(base, ".jsonl")
		s.held(stem+".trajectory.jsonl", why)
		s.held(stem+".trajectory-path.json", why)
		s.heldNames[base] = why
	}
	return nil
}

func (s *Snapshot) held(base, why string) {
	if i, ok := s.names[base]; ok {
		s.Files[i].Held = why
	}
}

// transcript looks at what a row's transcript is, as far as rules need it.
func (s *Snapshot) transcript(n *namer, r *Row, p *Policy, m lock.Machine, now time.Time) {
	own := ""
	if r.ID != "" {
		own = s.transcriptOf(r.ID)
	}
	for k, path := range []string{r.File, own} {
		if path == "" || k == 1 && path == r.File {
			continue
		}
		if base, ok := s.local(path); ok {
			if why, ok := s.heldNames[base]; ok && r.Held == "" {
				r.Held = why
			}
			i, ok := s.names[base]
			if !ok {
				continue
			}
			if !s.Files[i].Link {
				r.Written = max(r.Written, s.Files[i].written())
				continue
			}
			// What a link leads to is written, not the link.
		}
		if rep := lock.Look(path+lock.Suffix, m, now); rep.State.Holds() {
			r.Held = strings.Join(rep.Evidence, "; ")
		}
		if info, err := os.Stat(path); err == nil {
			r.Written = max(r.Written, fine(info.ModTime()))
		}
	}
	if !p.FixMissing && !p.Empty {
		return
	}
	r.Content = s.contentOf(r.File)
	if r.ID == "" {
		return
	}
	if s.moved(r) {
		own = filepath.Join(s.Dir, filepath.Base(r.File))
	}
	if row.IsTranscriptID(r.ID) && own != r.File && s.mayMend(r) && s.contentOf(own) == Messages {
		said := len(s.Problems)
		if e, err := row.New(r.Key, mended(r, own)); err == nil {
			m := n.row(e)
			r.Mend, r.mended = own, &m
		}
		s.Problems = s.Problems[:said] // they are the row's own, said before
	}
}

// moved tells whether a row names a transcript in a directory where it is no
// longer, as after a move of the state, and the file of that name is in the
// directory of the store. OpenClaw takes the transcript for missing
// (spec/maintenance.md 2.5; field-reports.md S6).
func (s *Snapshot) moved(r *Row) bool {
	if r.Content != Gone || r.File == "" || within(r.File, s.Dir) {
		return false
	}
	i, ok := s.names[filepath.Base(r.File)]
	return ok && !s.Files[i].Link && s.Files[i].Class == jsonfile.Live
}

// mayMend tells whether a row's sessionFile is one to replace by its own
// transcript: the name of another session's generated file, or a file that is
// not there under a name that somebody chose.
func (s *Snapshot) mayMend(r *Row) bool {
	base := filepath.Base(r.File)
	if s.moved(r) {
		return true
	}
	if m := uuidFile().FindStringSubmatch(base); m != nil {
		return m[1] != r.ID
	}
	return r.Content == Gone && jsonfile.SessionOf(strings.TrimSuffix(base, ".jsonl"))+".jsonl" == base
}

// contentOf looks at the transcript at a path; links are followed.
func (s *Snapshot) contentOf(path string) Content {
	if path == "" {
		return Gone
	}
	if base, ok := s.local(path); ok {
		if i, ok := s.names[base]; ok && !s.Files[i].Link {
			if s.Files[i].Content == NotLooked {
				s.Files[i].Content = content(path, s.Files[i].Size)
			}
			return s.Files[i].Content
		} else if !ok && !s.odd[base] {
			return Gone
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && store.Dangling(path) == "":
		return Gone
	case err != nil, !info.Mode().IsRegular():
		return Messages // what cannot be looked at, as behind a link to a disk that is not mounted, may hold any
	}
	return content(path, info.Size())
}

// lookCloser asks of the files that a first draft of the plan would touch what
// only they can say: whether an unlinked transcript holds messages, and which trajectory a
// pointer names.
func (s *Snapshot) lookCloser(n *namer, p *Policy, now time.Time) {
	d := newDraft(p, s, now)
	d.decide()
	same := true
	for _, i := range d.order {
		s.pointer(n, &s.Rows[i])
		same = same && s.Rows[i].runtime < 0
	}
	open := func(i int) {
		f := &s.Files[i]
		f.Content = content(f.Path, f.Size)
		same = same && f.Content != Empty
	}
	for i := range d.files {
		if a := &d.files[i]; a.Kind == Move && a.Rule == Unlinked {
			open(a.file)
		}
	}
	for _, x := range d.protected {
		// One that is shared now may be unlinked once the sweep is done.
		if x.Rule == KeptUnlinked || p.KeepUnlinked && x.Key == "" && s.Files[x.file].Class == jsonfile.Live {
			open(x.file)
		}
	}
	if same {
		s.first = d
	}
}
