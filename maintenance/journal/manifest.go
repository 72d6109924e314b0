package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"oc/store/lazy"
)

const (
	version  = 1
	hugeFile = 1 << 30 // no manifest of oc's comes near: 100,000 rows make 100 MB
)

// State of a run; the package comment tells their story.
type State string

const (
	Planned    State = "planned"
	Delegated  State = "delegated"
	Applying   State = "applying"
	Done       State = "done"
	Undoing    State = "undoing"
	Undone     State = "undone"
	RolledBack State = "rolled back"
)

// Run is one applied plan, as its manifest tells it.
type Run struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	State   State           `json:"state"`
	Why     string          `json:"why,omitempty"` // it was rolled back, or stopped
	Created int64           `json:"created"`       // epoch milliseconds by the user's clock
	Purge   bool            `json:"purge,omitempty"`
	Expired bool            `json:"expired,omitempty"` // the saved bytes were given up
	Roots   []string        `json:"roots"`
	Facts   json.RawMessage `json:"facts,omitempty"` // the caller's words about the run, JSON

	Total   int `json:"total"`   // steps
	Skipped int `json:"skipped"` // of them, not done
	Back    int `json:"back"`    // of them, taken back

	Freed  int64   `json:"freed"`  // bytes of the files that were removed
	Saved  int64   `json:"saved"`  // bytes that the saved copies take on disk; 0 when expired
	Vaults []Vault `json:"vaults"` // where they are

	Folders []FolderTimes `json:"folders,omitempty"`

	Steps []Step `json:"-"` // in the order of doing; Load and Apply fill them, List does not
}

// FolderTimes are the modification times of a directory in which the run changed names, in nanoseconds since 1970.
type FolderTimes struct {
	Path   string `json:"path"`
	Before int64  `json:"before"`
	After  int64  `json:"after,omitempty"`
}

// Unfinished says that the run was cut short.
func (r *Run) Unfinished() bool {
	return r.State == Planned || r.State == Delegated || r.State == Applying || r.State == Undoing
}

// count fills the totals from the steps.
func (r *Run) count() {
	r.Total, r.Skipped, r.Back, r.Freed = len(r.Steps), 0, 0, 0
	for i := range r.Steps {
		switch s := &r.Steps[i]; {
		case s.Skipped != "":
			r.Skipped++
		case s.Undo == Back:
			r.Back++
		case s.Kind == Remove:
			r.Freed += s.Before.Size
		}
	}
}

var idForm = lazy.Regexp(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{8}$`)

func (j *Journal) manifest(id string) string { return filepath.Join(j.runs(), id+".json") }

// write puts the manifest in place, durably.
func (j *Journal) write(r *Run) error {
	r.count()
	path := j.manifest(r.ID)
	temp := path + ".tmp"
	err := j.mkdir(j.runs())
	if err == nil {
		err = j.produce(temp, func(w io.Writer) error { return r.encode(w, j.base) })
	}
	if err == nil {
		err = j.fs.Rename(temp, path)
	}
	if err == nil {
		err = j.fs.SyncDir(j.runs())
	}
	if err != nil {
		return fmt.Errorf("write the manifest %s: %w", path, err)
	}
	return nil
}

// produce makes a file of oc's from what content writes, durably but for its name. One of that name is removed first.
func (j *Journal) produce(path string, content func(io.Writer) error) error {
	f, err := j.create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = content(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = j.give(path)
	}
	if err != nil {
		return errors.Join(err, j.fs.Remove(path))
	}
	return nil
}

// create opens a new file under a name that only oc uses: what a run that was cut short has left there goes.
func (j *Journal) create(path string) (File, error) {
	f, err := j.fs.Create(path, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err := j.fs.Remove(path); err != nil {
			return nil, err
		}
		f, err = j.fs.Create(path, 0o600)
	}
	return f, err
}

// encode writes the header on the first line and a step a line after it: who lists runs reads the first line only. Names in base are
// written as from there, so that a state that was moved can still be taken back.
func (r *Run) encode(w io.Writer, base string) error {
	toJSON := func(name *string) error { return toJSON(name, base) }
	head := *r
	head.Vaults, head.Folders, head.Roots = slices.Clone(r.Vaults), slices.Clone(r.Folders), slices.Clone(r.Roots)
	head.names(toJSON)
	line, err := marshal(head)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s,\"steps\":[", line[:len(line)-1]); err != nil {
		return err
	}
	for i := range r.Steps {
		s := r.Steps[i]
		s.names(toJSON)
		line = line[:0]
		if i > 0 {
			line = append(line, ',')
		}
		if line, err = s.append(append(line, '\n')); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads a manifest that stands in base; without steps it stops where they begin. Names in it may be absolute, too: oc wrote them so
// once, and what lies outside of base has no other.
func decode(in io.Reader, steps bool, base string) (*Run, error) {
	fromJSON := func(name *string) error { return fromJSON(name, base) }
	d := json.NewDecoder(bufio.NewReaderSize(in, 1<<16))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%w: it is no JSON object", ErrRefused)
	}
	r := &Run{}
	var list []Step
	head := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, truncated(err)
		}
		key, _ := t.(string)
		if key != "steps" {
			var val json.RawMessage
			if err := d.Decode(&val); err != nil {
				return nil, truncated(err)
			}
			head[key] = val
			continue
		}
		whole, err := marshal(head)
		if err == nil {
			err = json.Unmarshal(whole, r)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		if r.Version != version {
			return nil, fmt.Errorf("%w: it is of version %d, and this oc knows version %d; use the oc that made it", ErrRefused, r.Version, version)
		}
		if !slices.Contains([]State{Planned, Delegated, Applying, Done, Undoing, Undone, RolledBack}, r.State) {
			return nil, fmt.Errorf("%w: its state %q is unknown", ErrRefused, r.State)
		}
		if err := r.names(fromJSON); err != nil {
			return nil, err
		}
		if !steps {
			return r, nil
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return nil, fmt.Errorf("%w: its steps are no list", ErrRefused)
		}
		for d.More() {
			var s Step
			if err := d.Decode(&s); err != nil {
				return nil, truncated(err)
			}
			if err := s.names(fromJSON); err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		for range 2 {
			if _, err := d.Token(); err != nil {
				return nil, truncated(err)
			}
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, fmt.Errorf("%w: something follows its end", ErrRefused)
		}
		if len(list) != r.Total {
			return nil, fmt.Errorf("%w: it has %d steps and says %d", ErrRefused, len(list), r.Total)
		}
		r.Steps = list
		return r, nil
	}
	return nil, fmt.Errorf("%w: it is cut off, or has no steps", ErrRefused)
}

func truncated(err error) error {
	return fmt.Errorf("%w: it is damaged or cut off: %w", ErrRefused, err)
}

// names passes every file name of the header through f, and stops at an error.
func (r *Run) names(f func(*string) error) error {
	for i := range r.Roots {
		if err := f(&r.Roots[i]); err != nil {
			return err
		}
	}
	for i := range r.Vaults {
		if err := f(&r.Vaults[i].Dir); err != nil {
			return err
		}
	}
	for i := range r.Folders {
		if err := f(&r.Folders[i].Path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) names(f func(*string) error) error {
	return errors.Join(f(&s.Path), f(&s.To), f(&s.Temp))
}

// A name that is no UTF-8 would not survive JSON: it is written as NUL, which no name has, and base64.
func toJSON(name *string, base string) error {
	if *name == base && base != "" {
		*name = "."
	} else if base != "" && under(*name, base) {
		*name = filepath.ToSlash(strings.TrimLeft((*name)[len(base):], string(filepath.Separator)))
	}
	if !utf8.ValidString(*name) {
		*name = "\x00" + base64.StdEncoding.EncodeToString([]byte(*name))
	}
	return nil
}

func fromJSON(name *string, base string) error {
	if coded, ok := strings.CutPrefix(*name, "\x00"); ok {
		raw, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return fmt.Errorf("%w: a name in it is neither text nor base64", ErrRefused)
		}
		*name = string(raw)
	}
	if *name != "" && base != "" && !filepath.IsAbs(*name) {
		if clean := filepath.Clean(filepath.FromSlash(*name)); !filepath.IsLocal(clean) || clean != filepath.FromSlash(*name) {
			return fmt.Errorf("%w: the name %q in it leads elsewhere", ErrRefused, *name)
		}
		*name = filepath.Join(base, *name)
	}
	return nil
}

// Load reads the run id with its steps, and checks that all it names lies inside the journal's roots. The errors are ErrUnknown and
// ErrRefused, with the manifest's path and the reason.
func (j *Journal) Load(id string) (*Run, error) {
	return j.read(id, true)
}

func (j *Journal) read(id string, steps bool) (r *Run, err error) {
	if !idForm().MatchString(id) {
		return nil, fmt.Errorf("run %q: %w; undo --list names them", id, ErrUnknown)
	}
	path := j.manifest(id)
	defer func() {
		if err != nil && !errors.Is(err, ErrUnknown) {
			r, err = nil, fmt.Errorf("read the manifest %s: %w", path, err)
		}
	}()
	for _, dir := range []string{j.home(), j.runs()} {
		if err := j.own(dir); err != nil {
			return nil, err
		}
	}
	s, err := j.fs.Lstat(path)
	if err != nil {
		return nil, err
	}
	if s.Type == Absent {
		return nil, fmt.Errorf("run %s: %w; undo --list names them", id, ErrUnknown)
	}
	if err := j.trusted(path, s, Plain); err != nil {
		return nil, err
	}
	if s.Size > hugeFile {
		return nil, fmt.Errorf("%w: it has %d bytes, and no manifest of oc's is that large", ErrRefused, s.Size)
	}
	f, err := j.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if r, err = decode(io.LimitReader(f, hugeFile), steps, j.base); err != nil {
		return nil, err
	}
	if r.ID != id {
		return nil, fmt.Errorf("%w: it says to be run %q", ErrRefused, r.ID)
	}
	if !steps {
		return r, nil
	}
	return r, errors.Join(j.checkVaults(r), j.checkManifest(r))
}

// checkManifest trusts nothing that could lead elsewhere.
func (j *Journal) checkManifest(r *Run) error {
	if err := j.check(r.Steps); err != nil {
		return err
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		for _, saved := range []*Saved{s.Old, s.New} {
			if saved != nil && (saved.Vault < 0 || saved.Vault >= len(r.Vaults) || saved.Offset < 0 || saved.Length < 0 || saved.Link < 0) {
				return fmt.Errorf("%w: step %d has its bytes nowhere", ErrRefused, i)
			}
		}
		if s.Kind == Rows {
			if err := checkRows(s, len(r.Vaults)); err != nil {
				return err
			}
		}
		if (s.Kind == Create || s.Kind == Replace) && s.Temp == "" {
			return fmt.Errorf("%w: step %d has no temporary name", ErrRefused, i)
		}
	}
	for _, d := range r.Folders {
		if !j.mayHold(d.Path) {
			return fmt.Errorf("%w: it names the directory %q", ErrRefused, d.Path)
		}
	}
	return nil
}

// checkVaults holds that every vault is where this journal would put one.
func (j *Journal) checkVaults(r *Run) error {
	for _, v := range r.Vaults {
		place := filepath.Dir(filepath.Dir(filepath.Dir(v.Dir)))
		if v.Dir != vaultIn(place, r.ID) || place != j.base && !j.mayHold(place) {
			return fmt.Errorf("%w: its saved bytes would be in %q", ErrRefused, v.Dir)
		}
		for _, dir := range []string{filepath.Join(place, own), filepath.Join(place, own, "undo"), v.Dir} {
			if err := j.own(dir); err != nil {
				return err
			}
		}
		if place != j.base {
			if err := j.reach(filepath.Join(place, own)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayHold says that a directory is a root or inside one, and not oc's own.
func (j *Journal) mayHold(dir string) bool {
	return slices.Contains(j.roots, dir) || j.inside(dir) == nil
}

// List returns the headers of all runs, oldest first, and an error for each manifest that cannot be read. It creates nothing, and lists
// runs of other roots too, so that the caller can open a journal for them.
func (j *Journal) List() ([]Run, []error) {
	if err := errors.Join(j.own(j.home()), j.own(j.runs())); err != nil {
		return nil, []error{err}
	}
	names, err := j.fs.ReadDir(j.runs())
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("list the runs: %w", err)}
	}
	var runs []Run
	var errs []error
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || !idForm().MatchString(id) {
			continue
		}
		r, err := j.read(id, false)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		runs = append(runs, *r)
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Created, b.Created) })
	return runs, errs
}
