package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/lock"
)

// Where says which state directory is asked about, and where to look.
type Where struct {
	StateDir   string // absolute
	ConfigPath string // absolute; need not exist
	StateDB    string // shared state database; empty: state/openclaw.sqlite in StateDir
	// TmpDirs hold the lock of 2026.7.35: the system's temporary directory as
	// the environment names it, and /tmp, because a service may have another
	// environment.
	TmpDirs []string
	// LockRoot holds the lifecycle locks of 2026.9.6: /tmp whatever TMPDIR
	// says, and on Windows %USERPROFILE%\AppData\Local\OpenClaw\locks.
	LockRoot string
	UID      int    // of oc's user; -1 where there are none (Windows)
	Ports    []int  // where a gateway of this state would listen
	Proc     string // the process file system; empty: /proc
}

// Life is what is known of an owner.
type Life string

const (
	None  Life = "none"    // no sign of one
	Alive Life = "alive"   // one lives
	Maybe Life = "unknown" // one may live: change nothing
)

// Kind of a piece of evidence.
type Kind string

const (
	ConfigLock  Kind = "config-lock" // gateway.<hash>.lock
	StateLock   Kind = "state-lock"  // gateway.state.lock, 2026.9.6
	Coordinator Kind = "coordinator" // a SQLite lock that the owner holds in the kernel
	OSProcess   Kind = "process"
	Listener    Kind = "port"
	Shared      Kind = "shared" // the state may be used from where oc cannot look
)

// Evidence is one thing that was seen.
type Evidence struct {
	Kind   Kind
	Path   string // of a lock; empty for processes and ports
	PID    int    // 0: unknown
	Port   int    // 0: unknown
	Points Life   // what this piece says by itself
	Says   string // one sentence
}

// Ownership says who owns a state directory.
type Ownership struct {
	Life     Life
	PID      int       // of the owner; 0: unknown
	Port     int       // 0: unknown
	Role     string    // of a living owner: "gateway", or another role that its lock names; empty: unknown
	Since    time.Time // when a living owner's lock or process began; zero: unknown
	Evidence []Evidence
}

// Owner looks for whoever owns the state directory, without a connection and
// without touching anything (spec/gateway.md 1.3 and spec/sqlite-store.md 4.1,
// releases 2026.7.35 and 2026.9.6). It is careful: what cannot be seen is Maybe.
// now is the time of the question. A canceled ctx ends the search for
// processes; the answer is Maybe then, unless an owner was already found.
func Owner(ctx context.Context, w Where, m lock.Machine, now time.Time) Ownership {
	s := newSearch(w, m, now)
	s.files()
	return s.rest(ctx)
}

func newSearch(w Where, m lock.Machine, now time.Time) *search {
	s := &search{Where: w, m: m, now: now, out: Ownership{Life: None}}
	if s.StateDB == "" {
		s.StateDB = filepath.Join(w.StateDir, "state", "openclaw.sqlite")
	}
	if s.Proc == "" {
		s.Proc = "/proc"
	}
	s.real = resolve(w.StateDir)
	s.uids = []int{w.UID}
	if uid := ownerUID(w.StateDir); uid >= 0 && uid != w.UID {
		s.uids = append(s.uids, uid)
	}
	return s
}

// files looks at the lock files: that is soon done, and says where a gateway listens.
func (s *search) files() {
	s.stateLocks()
	s.tmpLocks()
}

// rest looks at all else, every process among it.
func (s *search) rest(ctx context.Context) Ownership {
	s.lifecycle()
	s.processes(ctx)
	s.shared()
	if err := ctx.Err(); err != nil {
		s.add(Evidence{Kind: OSProcess, Points: Maybe, Says: "the search for processes was interrupted"})
	}
	return s.out
}

type search struct {
	Where
	m      lock.Machine
	now    time.Time
	real   string // StateDir without symbolic links
	uids   []int
	probed bool // a kernel lock beside the state was asked and nobody holds it
	out    Ownership
}

var rank = map[Life]int{None: 0, Maybe: 1, Alive: 2}

func (s *search) add(e Evidence) {
	s.out.Evidence = append(s.out.Evidence, e)
	if rank[e.Points] > rank[s.out.Life] {
		s.out.Life, s.out.PID, s.out.Port = e.Points, 0, 0
	}
	if e.Points == s.out.Life && e.Points != None {
		if s.out.PID == 0 {
			s.out.PID = e.PID
		}
		if s.out.Port == 0 {
			s.out.Port = e.Port
		}
	}
}

// stateLocks looks at the locks inside the state directory, of 2026.9.6. All of
// them are this state's, whoever wrote them.
func (s *search) stateLocks() {
	tmp := filepath.Join(s.StateDir, "tmp")
	for _, dir := range s.list(tmp) {
		if !strings.HasPrefix(dir, "openclaw") {
			continue
		}
		for _, name := range s.list(filepath.Join(tmp, dir)) {
			path := filepath.Join(tmp, dir, name)
			kind := ConfigLock
			if strings.HasPrefix(name, "gateway.state.lock") {
				kind = StateLock
			}
			switch {
			case !strings.HasPrefix(name, "gateway."):
			case strings.HasSuffix(name, ".lock"):
				s.lock(kind, path, lock.ProbeSQLite(path+".sqlite"))
			case strings.HasSuffix(name, ".lock.sqlite"):
				s.probe(path)
			}
		}
	}
}

// tmpLocks looks at the locks of 2026.7.35, which stand together in a
// directory of the user.
func (s *search) tmpLocks() {
	mine := "gateway." + hash(s.ConfigPath) + ".lock"
	var seen []string
	for _, tmp := range s.TmpDirs {
		for _, uid := range s.uids {
			dir := filepath.Join(tmp, suffixed("openclaw", uid))
			if real := resolve(dir); slices.Contains(seen, real) {
				continue
			} else {
				seen = append(seen, real)
			}
			for _, name := range s.list(dir) {
				if !strings.HasPrefix(name, "gateway.") || !strings.HasSuffix(name, ".lock") {
					continue
				}
				path := filepath.Join(dir, name)
				if name == mine || s.names(lock.Look(path, s.m, s.now)) {
					s.lock(ConfigLock, path, lock.Probe{State: lock.Absent})
				}
			}
		}
	}
}

// names says whether a lock of another name speaks of this state: the path of
// the config may have been spelled in another way.
func (s *search) names(r lock.Report) bool {
	if dir := text(r.Fields["stateDir"]); dir != "" {
		return resolve(dir) == s.real
	}
	config := text(r.Fields["configPath"])
	return config != "" && (resolve(config) == resolve(s.ConfigPath) || resolve(filepath.Dir(config)) == s.real)
}

// lifecycle asks for the real mutex of 2026.9.6.
func (s *search) lifecycle() {
	h := hash(resolve(s.StateDB))
	for _, uid := range s.uids {
		s.probe(filepath.Join(s.LockRoot, suffixed("openclaw-state-locks", uid), "gateway-lifecycle."+h+".lock.sqlite"))
	}
}

// lock weighs a lock file. beside is what the kernel says of the SQLite lock
// that 2026.9.6 holds together with it.
func (s *search) lock(kind Kind, path string, beside lock.Probe) {
	r := lock.Look(path, s.m, s.now)
	if r.State == lock.Free {
		return
	}
	e := Evidence{Kind: kind, Path: path, PID: r.PID, Points: None}
	if port, ok := number(r.Fields["port"]); ok {
		e.Port = port
	}
	says := strings.Join(r.Evidence, "; ")
	switch _, kernel := s.m.Elsewhere(filepath.Dir(path)); {
	case r.State == lock.Held || r.State == lock.OverHold:
		e.Points = Alive
	case r.State == lock.Foreign && r.PID != 0 && kernel && beside.State == lock.Unlocked:
		says += "; but nobody holds the kernel lock beside it"
	case r.State.Holds():
		e.Points = Maybe
	}
	role := text(r.Fields["role"])
	if role == "" {
		role = "gateway"
	}
	if e.Points == Alive && s.out.Role == "" {
		s.out.Role, s.out.Since = role, r.Created
	}
	e.Says = fmt.Sprintf("%s lock, %s: %s", role, r.State, says)
	s.add(e)
}

func (s *search) probe(path string) {
	p := lock.ProbeSQLite(path)
	e := Evidence{Kind: Coordinator, Path: path, PID: p.PID, Points: None}
	switch p.State {
	case lock.Absent:
		return
	case lock.Unlocked:
		e.Says = "nobody holds it"
		if strings.HasPrefix(path, s.StateDir) {
			s.probed = true
		}
	case lock.Untold:
		e.Says = p.Says
	case lock.Hidden:
		e.Points, e.Says = Maybe, "it cannot be told who holds it: "+p.Says
	case lock.Locked:
		e.Points, e.Says = Alive, fmt.Sprintf("process %d holds it", p.PID)
		switch {
		case p.PID == os.Getpid():
			e.Points, e.Says = None, "oc itself holds it"
		case p.PID == 0:
			e.Says = "a process that is not seen from here holds it"
		}
	}
	s.add(e)
}

// shared says when a gateway could run out of sight.
func (s *search) shared() {
	why, kernel := s.m.Elsewhere(s.StateDir)
	if why == "" || (kernel && s.probed) {
		return
	}
	s.add(Evidence{Kind: Shared, Path: s.StateDir, Points: Maybe, Says: why + ": a gateway elsewhere would not be seen"})
}

// list names what is in dir; a directory that cannot be listed, though it is
// there, is evidence.
func (s *search) list(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
			s.add(Evidence{Kind: ConfigLock, Path: dir, Points: Maybe, Says: "its locks cannot be listed: " + cause(err)})
		}
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func cause(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// hash is the short name that OpenClaw gives to a path.
func hash(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:4])
}

func suffixed(name string, uid int) string {
	if uid < 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, uid)
}

// resolve follows the symbolic links of a path as far as it exists.
func resolve(path string) string {
	if path == "" {
		return ""
	}
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolve(dir), filepath.Base(path))
	}
	return path
}

func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func number(raw json.RawMessage) (n int, ok bool) {
	ok = len(raw) > 0 && json.Unmarshal(raw, &n) == nil && n > 0 && n < 1<<16
	return n, ok
}
