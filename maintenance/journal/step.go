package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Kind of a step.
type Kind string

const (
	Create    Kind = "create"     // a file that does not exist gets Content and Mode
	Replace   Kind = "replace"    // a file gets Content; it keeps mode and owner
	Move      Kind = "move"       // a file or link gets the name To, which does not exist, on whatever file system
	Remove    Kind = "remove"     // a file or link goes; its bytes are saved
	RemoveDir Kind = "remove-dir" // a directory that is empty by then goes
	Chmod     Kind = "chmod"      // a file or directory gets Mode
	Rows      Kind = "rows"       // rows of a database change, in one transaction; see Table
)

// Phase orders the steps of a run; within one they are done in the order given.
type Phase int

const (
	Place Phase = iota // what the new stores name
	Swap               // the stores
	Clear              // what they name no longer
)

// Step is one change to one file. A run has at most one step for a name, but for databases, which may change in several transactions.
type Step struct {
	Kind  Kind        `json:"kind"`
	Phase Phase       `json:"phase"`
	Path  string      `json:"path"` // absolute and clean; in the manifest from the base where it lies in it
	To    string      `json:"to,omitempty"`
	Mode  fs.FileMode `json:"mode,omitempty"` // for Create (0: 0600) and Chmod

	Time int64 `json:"time,omitempty"` // of a Replace: the modification time that the file gets, in nanoseconds since 1970; 0: that of the writing

	// Content writes what the file shall hold. It is called once, before anything changes, and may stream.
	Content func(w io.Writer) error `json:"-"`
	// Expect is what the file was when the step was planned; nil: whatever is found. A SHA256 in it is checked too.
	Expect *Stamp `json:"-"`

	// Hook names how the caller's Resolver takes a Replace back when the file has changed since; Payload is what it needs for that.
	Hook    string          `json:"hook,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// Facts are the caller's words about the step, JSON.
	Facts json.RawMessage `json:"facts,omitempty"`

	Rows *Table `json:"rows,omitempty"` // of the kind Rows, whose phase is Swap
	// Tie names what a Create belongs to, by a text in one of the Ties of Rows in the same run: it stays when that does.
	Tie string `json:"tie,omitempty"`

	// What the journal found and did.
	Before  Stamp  `json:"before"`
	After   Stamp  `json:"after,omitzero"`    // of what is written, or has another mode
	Skipped string `json:"skipped,omitempty"` // why it was not done
	Undo    Taken  `json:"undo,omitempty"`

	// Temp is the name under which a file is made before it is put in place. A move within one directory makes none.
	Temp string `json:"temp,omitempty"`
	Old  *Saved `json:"old,omitempty"`
	New  *Saved `json:"new,omitempty"`

	ahead built // of the file that is to come back, under its temporary name
}

// Taken says how far a step is taken back.
type Taken string

const (
	NotTaken Taken = ""
	Wanted   Taken = "wanted" // an undo has begun that includes it
	Back     Taken = "back"
)

// name of a step for messages.
func (s *Step) name() string {
	if s.Kind == Move {
		return fmt.Sprintf("%s %s to %s", s.Kind, s.Path, filepath.Base(s.To))
	}
	return fmt.Sprintf("%s %s", s.Kind, s.Path)
}

// final is the path at which the step's result stands.
func (s *Step) final() string {
	if s.Kind == Move {
		return s.To
	}
	return s.Path
}

// check holds the steps of a plan or of a manifest against the rules; it does not look at the disk.
func (j *Journal) check(steps []Step) error {
	seen := make(map[string]Kind, len(steps))
	for i := range steps {
		s := &steps[i]
		if !slices.Contains([]Kind{Create, Replace, Move, Remove, RemoveDir, Chmod, Rows}, s.Kind) {
			return fmt.Errorf("%w: step %d is of the unknown kind %q", ErrRefused, i, s.Kind)
		}
		if s.Phase < Place || s.Phase > Clear {
			return fmt.Errorf("%w: step %d has the unknown phase %d", ErrRefused, i, s.Phase)
		}
		if (s.To != "") != (s.Kind == Move) {
			return fmt.Errorf("%w: step %d, %s: a second name belongs to a move", ErrRefused, i, s.Kind)
		}
		if (s.Rows != nil) != (s.Kind == Rows) || s.Kind == Rows && s.Phase != Swap {
			return fmt.Errorf("%w: step %d, %s: rows change in a step of theirs, with the stores", ErrRefused, i, s.Kind)
		}
		if s.Mode&^permissions != 0 {
			return fmt.Errorf("%w: step %d: mode %o", ErrRefused, i, s.Mode)
		}
		names := []string{s.Path}
		if s.Kind == Move {
			names = append(names, s.To)
		}
		for _, name := range names {
			if err := j.inside(name); err != nil && !(s.Kind == Chmod && slices.Contains(j.roots, name)) {
				return err
			}
			if was, ok := seen[name]; ok && (was != Rows || s.Kind != Rows) {
				return fmt.Errorf("%w: two steps touch %s", ErrRefused, name)
			}
			seen[name] = s.Kind
		}
		if s.Temp != "" && s.Kind != Chmod && s.Kind != Rows && (filepath.Dir(s.Temp) != filepath.Dir(s.final()) || !strings.HasSuffix(s.Temp, ".tmp") || j.inside(s.Temp) != nil) {
			return fmt.Errorf("%w: step %d has the temporary name %q", ErrRefused, i, s.Temp)
		}
	}
	return nil
}

// inside returns nil for an absolute, clean path strictly under one of the roots and not oc's own.
func (j *Journal) inside(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%w: %q is not an absolute, clean path", ErrRefused, path)
	}
	root, ok := j.root(path)
	if !ok {
		return fmt.Errorf("%w: %s is outside of %s", ErrRefused, path, strings.Join(j.roots, ", "))
	}
	for part := range strings.SplitSeq(filepath.ToSlash(path[len(root):]), "/") {
		if strings.EqualFold(part, own) {
			return fmt.Errorf("%w: %s is oc's own", ErrRefused, path)
		}
	}
	return nil
}

// root is the outermost root that path is strictly under.
func (j *Journal) root(path string) (root string, ok bool) {
	for _, r := range j.roots {
		if under(path, r) && (!ok || len(r) < len(root)) {
			root, ok = r, true
		}
	}
	return root, ok
}

func under(path, dir string) bool {
	dir = strings.TrimSuffix(dir, string(filepath.Separator))
	return len(path) > len(dir)+1 && path[len(dir)] == filepath.Separator && path[:len(dir)] == dir
}

// reach returns nil when no directory between a root and path is a symbolic link, so that path is where it says.
func (j *Journal) reach(path string) error {
	root, _ := j.root(path)
	for dir := filepath.Dir(path); dir != root && under(dir, root); dir = filepath.Dir(dir) {
		if j.safe[dir] {
			break
		}
		s, err := j.fs.Lstat(dir)
		if err != nil {
			return err
		}
		switch s.Type {
		case Folder:
			if j.safe != nil {
				j.safe[dir] = true
			}
		case Absent: // said by whoever needs it
		default:
			return fmt.Errorf("%w: %s leads through %s, which is a %s", ErrRefused, path, dir, s.Type)
		}
	}
	return nil
}
