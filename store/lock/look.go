package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Suffix of a transcript's lock, after the transcript's own name.
const Suffix = ".lock"

// Look reads the lock file at path and says what it is worth at now. It
// follows spec/file-store.md 5.4 (release 2026.7.35), except that a process
// that lives holds its lock whatever its command line. A lock that cannot be
// read is Foreign, not an error: a report always comes back. It takes locks of
// transcripts and of gateways alike.
func Look(path string, m Machine, now time.Time) Report {
	r := Report{Path: path}
	raw, info, err := read(path)
	r.raw, r.info = raw, info
	if errors.Is(err, fs.ErrNotExist) {
		r.State = Free
		return r
	}
	if transcript, ok := strings.CutSuffix(path, Suffix); ok && strings.HasSuffix(transcript, ".jsonl") {
		r.MaxHold = StaleAfter
		_, err := os.Lstat(transcript)
		r.Orphan = errors.Is(err, fs.ErrNotExist)
	}
	if err != nil {
		r.State = Foreign
		r.say("the lock cannot be read: %v", reason(err))
	} else {
		r.parse(raw)
		r.judge(m, now)
	}
	if r.Orphan {
		r.say("the transcript %s does not exist", strings.TrimSuffix(filepath.Base(path), Suffix))
	}
	return r
}

// Scan looks at every transcript lock of a directory, in order of name. A
// directory that does not exist has none.
func Scan(dir string, m Machine, now time.Time) ([]Report, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for transcript locks in %s: %w", dir, reason(err))
	}
	m = still(m)
	var out []Report
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl"+Suffix) {
			if r := Look(filepath.Join(dir, e.Name()), m, now); r.State != Free {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// Unchanged returns nil while the lock file is still the one that was looked
// at: same file, same bytes. It wraps ErrChanged otherwise.
func (r Report) Unchanged() error {
	raw, info, err := read(r.Path)
	if err == nil && r.info != nil && os.SameFile(info, r.info) && bytes.Equal(raw, r.raw) && info.ModTime().Equal(r.info.ModTime()) {
		return nil
	}
	return fmt.Errorf("%s: %w", r.Path, ErrChanged)
}

// read returns the bytes of a lock file. It never waits: what is not a plain
// file of a sensible size is an error.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, errors.New("it is a symbolic link to nothing")
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, errors.New("it is not a plain file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, info, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, errors.New("it is not a plain file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxPayload+1))
	if err != nil {
		return nil, info, err
	}
	if len(raw) > maxPayload {
		return nil, info, fmt.Errorf("it is larger than %d bytes", maxPayload)
	}
	return raw, info, nil
}

// reason is err without the path, which the sentence around it names.
func reason(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (r *Report) parse(raw []byte) {
	// 2026.9.6 pads the object with tabs and blanks; json allows them.
	if json.Unmarshal(raw, &r.Fields) != nil || r.Fields == nil {
		r.Fields = nil
		return
	}
	if n, ok := whole(r.Fields["pid"], math.MaxInt32); ok && n > 0 {
		r.PID = int(n)
	}
	for _, name := range []string{"starttime", "startTime"} {
		if n, ok := whole(r.Fields[name], 1<<53); ok {
			r.Start = n
		}
	}
	if n, ok := whole(r.Fields["maxHoldMs"], 1<<43); ok && n > 0 {
		r.MaxHold = time.Duration(n) * time.Millisecond
	}
	var text string
	if json.Unmarshal(r.Fields["createdAt"], &text) == nil {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			r.Created = t
		}
	}
}

// whole reads a number without a fraction between 0 and limit.
func whole(raw json.RawMessage, limit uint64) (uint64, bool) {
	var f float64
	if len(raw) == 0 || raw[0] == 'n' || json.Unmarshal(raw, &f) != nil || f < 0 || f > float64(limit) || f != math.Trunc(f) {
		return 0, false
	}
	return uint64(f), true
}

func (r *Report) judge(m Machine, now time.Time) {
	r.Age = now.Sub(r.info.ModTime())
	if r.PID == 0 {
		switch r.State = Unreadable; {
		case r.Fields == nil:
			r.say("the lock is empty, half written or damaged (%d bytes)", len(r.raw))
		default:
			r.say("the lock names no process")
		}
		if r.Age < Grace {
			r.State = Fresh
			r.say("it changed less than %v ago: whoever wrote it is respected", Grace)
		} else {
			r.say("it has not changed for %v", r.Age.Round(time.Second))
		}
		return
	}
	if !r.Created.IsZero() {
		r.Age = now.Sub(r.Created)
	}
	p := m.Process(r.PID)
	if p.Life != Gone && r.same(p, m) {
		r.State = Held
		r.over()
		return
	}
	if p.Life == Gone {
		r.State = Dead
		r.say("process %d does not run", r.PID)
	} else {
		r.State = Recycled
	}
	r.elsewhere(m)
	if boot := m.Boot(); r.Removable() && !boot.IsZero() && !r.Created.IsZero() && r.Created.Add(slack).Before(boot) {
		r.say("the lock is older than the last boot, %s", stamp(boot))
	}
}

// same says whether the process that has the lock's number now is the one that
// wrote it.
func (r *Report) same(p Process, m Machine) bool {
	r.say("process %d runs%s", r.PID, quoted(p.Title))
	if r.Start != 0 && p.Start != 0 {
		if r.Start == p.Start {
			r.say("its start time is the lock's, %d", r.Start)
			return true
		}
		r.say("it started at tick %d, the lock's process at %d: the number was given again", p.Start, r.Start)
		return false
	}
	boot := m.Boot()
	if !r.Created.IsZero() && !boot.IsZero() {
		if r.Created.Add(slack).Before(boot) {
			r.say("the lock is older than the last boot, %s", stamp(boot))
			return false
		}
		if began := Began(boot, p.Start); p.Start != 0 && r.Created.Add(slack).Before(began) {
			r.say("the process started at %s, after the lock was written", stamp(began))
			return false
		}
	}
	r.say("start time unknown: taken for the lock's process")
	return true
}

// over marks a live lock that is held beyond its limit.
func (r *Report) over() {
	if r.MaxHold > 0 && r.Age > r.MaxHold {
		r.State = OverHold
		r.say("held for %v, its limit is %v", r.Age.Round(time.Second), r.MaxHold)
	}
}

// elsewhere looks for signs that a lock whose process is not seen here belongs
// to a process of another container or machine.
func (r *Report) elsewhere(m Machine) {
	if pid := m.Nested(r.PID, r.Start); pid != 0 {
		r.State = Held
		r.say("process %d here is process %d of a container, and the lock fits it", pid, r.PID)
		r.over()
		return
	}
	if why, _ := m.Elsewhere(filepath.Dir(r.Path)); why != "" {
		r.State = Foreign
		r.say("%s: the lock's process may run where it cannot be seen", why)
		return
	}
	if m.Process(os.Getpid()).Start == 0 {
		if r.Fields["starttime"] != nil { // 2026.9.6 writes startTime, in another unit, elsewhere too
			r.State = Foreign
			r.say("the lock has a start time, which OpenClaw writes on Linux alone: it may come from a container or another host")
		}
		return
	}
	if boot := m.Boot(); r.Start != 0 && !boot.IsZero() && !r.Created.IsZero() && !r.Created.Before(boot) &&
		Began(boot, r.Start).After(r.Created.Add(slack)) {
		r.State = Foreign
		r.say("its start time does not fit this machine's clock: the lock may come from another host")
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func quoted(title string) string {
	if title == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", title)
}
