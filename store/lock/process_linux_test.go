package lock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play other processes.
func TestMain(m *testing.M) {
	switch role, path := os.Getenv("OC_TEST_ROLE"), os.Getenv("OC_TEST_PATH"); role {
	case "":
		os.Exit(m.Run())
	case "lock": // as SQLite locks for BEGIN EXCLUSIVE, until stdin ends
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: 0x40000000, Len: 512})
		}
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "self": // locks, then asks about its own lock, then says whether it is still there
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: 0x40000000, Len: 512})
		}
		p := ProbeSQLite(path)
		raw, _ := os.ReadFile("/proc/locks")
		info, _ := f.Stat()
		fmt.Println(err, p.State == Locked, p.PID == os.Getpid(), len(parseLocks(raw, info.Sys().(*syscall.Stat_t).Ino)))
	case "look":
		r := Look(path, Local(), time.Now())
		fmt.Println(r.State, strings.Join(r.Evidence, "; "))
	case "probe":
		p := ProbeSQLite(path)
		fmt.Println(p.State, p.PID, p.Says)
	}
}

// play runs the test binary in a role, as another user when uid is not 0, and
// returns its first line and what ends it.
func play(t *testing.T, role, path string, uid uint32) (line string, pid int, end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	if uid != 0 { // it may not reach the build's own directory
		self = filepath.Join(openDir(t), "self")
		raw, err := os.ReadFile(cmd.Path)
		if err == nil {
			err = os.WriteFile(self, raw, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(self)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "OC_TEST_ROLE="+role, "OC_TEST_PATH="+path)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid, func() { in.Close(); _ = cmd.Wait() }
}

// openDir is a directory that every user can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "oc-lock-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestRealProcesses(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m, pid := Local(), cmd.Process.Pid
	p := m.Process(pid)
	for i := 0; i < 100 && p.Title != "sleep 60"; i++ { // until it has replaced its parent's image
		time.Sleep(10 * time.Millisecond)
		p = m.Process(pid)
	}
	if p.Life != Alive || p.Start == 0 || p.Title != "sleep 60" {
		t.Errorf("a child: %+v", p)
	}
	began := Began(m.Boot(), p.Start)
	if d := time.Since(began); d < -5*time.Second || d > time.Minute {
		t.Errorf("it began %v ago", d)
	}
	look := func(start uint64) State {
		body := fmt.Sprintf(`{"pid":%d,"createdAt":%q,"starttime":%d}`, pid, time.Now().UTC().Format(time.RFC3339), start)
		path := filepath.Join(t.TempDir(), "a.jsonl.lock")
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return Look(path, here{m}, time.Now()).State
	}
	if s := look(p.Start); s != Held {
		t.Errorf("live: %s", s)
	}
	if s := look(p.Start - 1); s != Recycled {
		t.Errorf("other start time: %s", s)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 100 && m.Process(pid).Life != Gone; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if q := m.Process(pid); q.Life != Gone || q.Start != p.Start {
		t.Errorf("a zombie: %+v", q)
	}
	_ = cmd.Wait()
	if q := m.Process(pid); q.Life != Gone || q.Start != 0 {
		t.Errorf("a reaped one: %+v", q)
	}
	if s := look(p.Start); s != Dead {
		t.Errorf("dead: %s", s)
	}
	for _, none := range []int{0, -1, 1 << 30} {
		if q := m.Process(none); q.Life != Gone {
			t.Errorf("process %d: %+v", none, q)
		}
	}
	tids, _ := os.ReadDir("/proc/self/task")
	for _, tid := range tids {
		if n, _ := strconv.Atoi(tid.Name()); n != os.Getpid() && m.Process(n).Life != Gone {
			t.Errorf("thread %d counts as a process", n)
		}
	}
}

// here is the real machine, for files that only this machine sees: tests may
// run in a container.
type here struct{ Machine }

func (here) Elsewhere(string) (string, bool) { return "", false }

func TestOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		// Without root there is no second user to play; the first one's
		// process 1 belongs to root.
		if p := Local().Process(1); p.Life != Alive {
			t.Errorf("process 1: %+v", p)
		}
		return
	}
	dir := openDir(t)
	path := filepath.Join(dir, "a.jsonl.lock")
	body := fmt.Sprintf(`{"pid":%d,"starttime":%d}`, os.Getpid(), Local().Process(os.Getpid()).Start)
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	line, _, end := play(t, "look", path, 65534)
	end()
	if !strings.HasPrefix(line, "held ") {
		t.Errorf("a lock of another user's process: %s", line)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	line, _, end = play(t, "look", path, 65534)
	end()
	if !strings.HasPrefix(line, "foreign ") || !strings.Contains(line, "permission denied") {
		t.Errorf("a lock that may not be read: %s", line)
	}

	db := filepath.Join(dir, "x.lock.sqlite")
	if err := os.WriteFile(db, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, pid, stop := play(t, "lock", db, 0)
	line, _, end = play(t, "probe", db, 65534)
	end()
	if want := fmt.Sprintf("%d %d", Locked, pid); line != want {
		t.Errorf("a probe without the right to read: %q, want %q from the kernel's table", line, want)
	}
	stop()
	line, _, end = play(t, "probe", db, 65534)
	end()
	if want := fmt.Sprintf("%d 0 permission denied", Hidden); line != want {
		t.Errorf("the same, unlocked: %q, want %q", line, want)
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway-lifecycle.0fe44aed.lock.sqlite")
	if p := ProbeSQLite(path); p.State != Absent {
		t.Errorf("absent: %+v", p)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the probe made the file")
	}
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	if p := ProbeSQLite(path); p.State != Unlocked {
		t.Errorf("unlocked: %+v", p)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	line, pid, end := play(t, "lock", path, 0)
	if line != "<nil>" {
		t.Fatal(line)
	}
	for range 3 { // asking does not loosen it
		if p := ProbeSQLite(path); p.State != Locked || p.PID != pid {
			t.Errorf("locked: %+v, want process %d", p, pid)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if got := SQLiteWriter(name); got != pid {
			t.Errorf("%s is written by %d, want process %d", name, got, pid)
		}
	}
	end()
	if got := SQLiteWriter(path) + SQLiteWriter(dir+"/none"); got != 0 {
		t.Errorf("written by %d", got)
	}
	if p := ProbeSQLite(path); p.State != Unlocked {
		t.Errorf("given back: %+v", p)
	}
	after, _ := os.Stat(path)
	if !after.ModTime().Equal(before.ModTime()) || after.Size() != 0 {
		t.Errorf("the probe touched the file: %v, %v", before, after)
	}
	for _, odd := range []func(string) error{
		func(p string) error { return os.Mkdir(p, 0o700) },
		func(p string) error { return syscall.Mkfifo(p, 0o600) },
		func(p string) error { return os.Symlink(path, p) },
	} {
		p := filepath.Join(t.TempDir(), "odd")
		if err := odd(p); err != nil {
			t.Fatal(err)
		}
		if got := ProbeSQLite(p); got.State != Hidden {
			t.Errorf("odd file: %+v", got)
		}
	}
}

// Closing any descriptor of a file drops the process's POSIX locks on it: the
// probe must notice and not open.
func TestProbeKeepsOwnLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.lock.sqlite")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	line, _, end := play(t, "self", path, 0)
	end()
	if line != "<nil> true true 1" {
		t.Errorf("lock, seen, own, locks left: %s", line)
	}
}

// The table was recorded while OpenClaw 2026.9.6 ran.
func TestParseLocks(t *testing.T) {
	raw, err := os.ReadFile("testdata/locks-2026.9.6")
	if err != nil {
		t.Fatal(err)
	}
	for inode, want := range map[uint64]struct {
		pid       int
		exclusive bool
	}{
		10150014: {31144, true},  // gateway-lifecycle
		10150512: {31144, true},  // gateway.state.lock
		10150514: {31144, true},  // config lock
		10150018: {31144, false}, // state-handles, shared
		10149898: {31144, false}, // state/openclaw.sqlite-shm
		10150015: {},             // state-lifecycle: nobody
	} {
		got := parseLocks(raw, inode)
		if want.pid == 0 {
			if len(got) != 0 {
				t.Errorf("%d: %+v, want none", inode, got)
			}
			continue
		}
		if len(got) != 1 || got[0].pid != want.pid || got[0].exclusive() != want.exclusive {
			t.Errorf("%d: %+v, want %+v", inode, got, want)
		}
	}
	for _, line := range []string{
		"", "1:", "1: POSIX ADVISORY WRITE x fe:00:5 0 EOF", "1: -> POSIX ADVISORY WRITE 1 fe:00:5 0 EOF",
		"1: FLOCK  ADVISORY  WRITE 1 fe:00:5 0 EOF", "1: POSIX ADVISORY WRITE 1 fe:00:5 1 y", "1: POSIX ADVISORY WRITE 1 5x 1 2",
	} {
		if got := parseLocks([]byte(line), 5); len(got) != 0 {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got := parseLocks([]byte("1: POSIX  ADVISORY  WRITE 9 fe:00:5 0 EOF\n"), 5); len(got) != 1 || !got[0].exclusive() {
		t.Errorf("whole file: %+v", got)
	}
}

func TestParseStat(t *testing.T) {
	const tail = " S 1 10802 3883 0 -1 4194560 174797 0 5 0 532 165 0 0 20 0 12 0 53939 2745913344 186010"
	for _, c := range []struct {
		raw   string
		state byte
		start uint64
	}{
		{"10891 (openclaw-gatewa)" + tail, 'S', 53939},
		{"10891 (a) R (b c) Z )" + tail, 'S', 53939},
		{"10891 (x) Z 1 2", 0, 0},
		{"", 0, 0},
		{"10891 openclaw" + tail, 0, 0},
		{"1 (x)" + strings.Replace(tail, "53939", "-1", 1), 0, 0},
	} {
		if state, start := parseStat([]byte(c.raw)); state != c.state || start != c.start {
			t.Errorf("%q: %c %d", c.raw, state, start)
		}
	}
}

// A process of another namespace has two numbers; a lock that names the inner
// one is its own. Making a namespace needs root.
func TestNested(t *testing.T) {
	m := Local()
	if os.Getuid() != 0 {
		if pid := m.Nested(1<<22+1, 0); pid != 0 {
			t.Errorf("no namespace has that number, yet process %d", pid)
		}
		return
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) { // a container without the right to make one
			t.Logf("no namespaces here: %v", err)
			return
		}
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	start := m.Process(cmd.Process.Pid).Start
	for _, m := range []Machine{m, still(m)} {
		if pid := m.Nested(1, start); pid != cmd.Process.Pid {
			t.Errorf("process 1 of the namespace: %d, want %d", pid, cmd.Process.Pid)
		}
		if pid := m.Nested(1, start+1); pid == cmd.Process.Pid {
			t.Error("matched with another start time")
		}
	}
	path := filepath.Join(t.TempDir(), "a.jsonl.lock")
	body := fmt.Sprintf(`{"pid":1,"createdAt":%q,"starttime":%d}`, time.Now().UTC().Format(time.RFC3339), start)
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Look(path, m, time.Now()); r.State != Held || !strings.Contains(strings.Join(r.Evidence, " "), "of a container") {
		t.Errorf("%s %q", r.State, r.Evidence)
	}
}
