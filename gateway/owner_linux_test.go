package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/store/lock"
)

// TestMain lets the test binary play a gateway: it listens, prints its port and
// waits for the end of stdin.
func TestMain(m *testing.M) {
	switch os.Getenv("OC_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "listen":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(l.Addr().(*net.TCPAddr).Port)
	case "lock":
		f, err := os.OpenFile(os.Getenv("OC_TEST_PATH"), os.O_RDWR, 0)
		if err == nil {
			err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: 0x40000000, Len: 512})
		}
		fmt.Println(err)
	case "probe":
		p := lock.ProbeSQLite(os.Getenv("OC_TEST_PATH"))
		fmt.Println(p.State == lock.Locked, p.PID)
	case "owner": // somebody else's view
		o := Owner(context.Background(), Where{StateDir: os.Getenv("OC_TEST_PATH"), LockRoot: os.Getenv("OC_TEST_PATH"), UID: os.Getuid(), Proc: os.Getenv("OC_TEST_PROC")}, none{}, time.Now())
		fmt.Println(o.Life, o.Evidence)
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// none is a machine without processes and without other hosts.
type none struct{}

func (none) Process(int) lock.Process        { return lock.Process{} }
func (none) Boot() time.Time                 { return time.Time{} }
func (none) Elsewhere(string) (string, bool) { return "", false }
func (none) Nested(int, uint64) int          { return 0 }

// one is a machine on which one process runs.
type one struct {
	none
	pid    int
	start  uint64
	boot   time.Time
	why    string
	kernel bool
}

func (m one) Boot() time.Time                 { return m.boot }
func (m one) Elsewhere(string) (string, bool) { return m.why, m.kernel }
func (m one) Process(pid int) lock.Process {
	if pid == m.pid {
		return lock.Process{PID: pid, Life: lock.Alive, Start: m.start, Title: "openclaw-gateway"}
	}
	return lock.Process{PID: pid, Start: 1}
}

// here is the real machine, for files that only this machine sees.
type here struct{ lock.Machine }

func (here) Elsewhere(string) (string, bool) { return "", false }

// house is a state directory and the places around it.
type house struct {
	t *testing.T
	w Where
}

func newHouse(t *testing.T) house {
	root := t.TempDir()
	h := house{t, Where{
		StateDir: filepath.Join(root, "state"), ConfigPath: filepath.Join(root, "state", "openclaw.json"),
		TmpDirs: []string{filepath.Join(root, "tmp")}, LockRoot: filepath.Join(root, "locks"), UID: os.Getuid(), Ports: []int{28735, 28796},
		Proc: filepath.Join(root, "proc"),
	}}
	h.dir(h.w.StateDir)
	h.dir(h.w.Proc)
	return h
}

func (h house) dir(path string) {
	h.t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		h.t.Fatal(err)
	}
}

func (h house) file(path, content string) string {
	h.t.Helper()
	h.dir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// proc makes a process in the house's own /proc.
func (h house) proc(pid int, comm, env string, fds ...string) {
	h.t.Helper()
	dir := filepath.Join(h.w.Proc, strconv.Itoa(pid))
	h.dir(filepath.Join(dir, "fd"))
	h.file(filepath.Join(dir, "stat"), fmt.Sprintf("%d (%s) S 1 1 1", pid, comm))
	h.file(filepath.Join(dir, "cmdline"), comm+"\x00\x00\x00")
	h.file(filepath.Join(dir, "environ"), env)
	for i, to := range fds {
		if err := os.Symlink(to, filepath.Join(dir, "fd", strconv.Itoa(i))); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h house) tmpLock(name, content string) string {
	return h.file(filepath.Join(h.w.TmpDirs[0], fmt.Sprintf("openclaw-%d", h.w.UID), name), content)
}

func (h house) stateLock(name, content string) string {
	return h.file(filepath.Join(h.w.StateDir, "tmp", fmt.Sprintf("openclaw-%d", h.w.UID), name), content)
}

func (h house) ask(m lock.Machine) Ownership {
	return Owner(context.Background(), h.w, m, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC))
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// kinds renders what was seen, in order.
func kinds(o Ownership) string {
	var out []string
	for _, e := range o.Evidence {
		out = append(out, fmt.Sprintf("%s:%s", e.Kind, e.Points))
	}
	return strings.Join(out, " ")
}

func field22(t *testing.T, stat string) (pid int, start uint64) {
	t.Helper()
	name, rest, _ := strings.Cut(stat, ") ")
	pid, err1 := strconv.Atoi(strings.Fields(name)[0])
	start, err2 := strconv.ParseUint(strings.Fields(rest)[19], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return pid, start
}

// The files of this test were recorded beside the real gateways: lock files
// with their whitespace, socket tables, and the start time of the process.
func TestRecordedGateways(t *testing.T) {
	t.Run("2026.7.35", func(t *testing.T) {
		h := newHouse(t)
		h.w.ConfigPath = "/tmp/lockgw/r735/state/openclaw.json"
		pid, start := field22(t, recorded(t, "2026.7.35/stat"))
		h.tmpLock("gateway.a2cb6d16.lock", recorded(t, "2026.7.35/gateway.a2cb6d16.lock"))
		h.file(h.w.Proc+"/net/tcp", recorded(t, "2026.7.35/tcp"))
		h.file(h.w.Proc+"/net/tcp6", recorded(t, "2026.7.35/tcp6"))
		var sockets []string
		for s := range listeners(h.w.Proc, h.w.Ports) {
			sockets = append(sockets, s)
		}
		if len(sockets) != 2 {
			t.Fatalf("it listens on 127.0.0.1 and ::1, found %v", sockets)
		}
		h.proc(pid, "openclaw-gatewa", "HOME=/root\x00OPENCLAW_STATE_DIR="+h.w.StateDir+"\x00", sockets[1], "/dev/null", h.w.StateDir+"/state/openclaw.sqlite")
		o := h.ask(one{pid: pid, start: start})
		if want := "config-lock:alive process:alive port:alive"; o.Life != Alive || o.PID != pid || o.Port != 28735 || o.Role != "gateway" || kinds(o) != want {
			t.Errorf("%+v", o)
		}
		if want := time.Date(2026, 11, 30, 13, 43, 54, 0, time.UTC); o.Since.Sub(want).Abs() > time.Second {
			t.Errorf("since %v", o.Since)
		}
		// Another process has its number now.
		o = h.ask(one{pid: pid, start: start + 5})
		if !strings.HasPrefix(kinds(o), "config-lock:none") || !strings.Contains(o.Evidence[0].Says, "recycled") {
			t.Errorf("recycled: %+v", o)
		}
	})
	t.Run("2026.9.6", func(t *testing.T) {
		h := newHouse(t)
		pid, start := field22(t, recorded(t, "2026.9.6/stat"))
		for _, name := range []string{"gateway.8ad7f0a7.lock", "gateway.state.lock"} {
			raw := recorded(t, "2026.9.6/"+name)
			if !strings.Contains(raw, "}\n\n") && !strings.Contains(raw, "\t \t") {
				t.Fatalf("%s was recorded without its tail of tabs and blanks", name)
			}
			h.stateLock(name, raw)
			h.stateLock(name+".sqlite", "")
		}
		h.stateLock("device-identity.0fe44aed.lock.sqlite", "")
		o := h.ask(one{pid: pid, start: start})
		if want := "config-lock:alive coordinator:none state-lock:alive coordinator:none"; o.Life != Alive || o.PID != pid || o.Port != 28796 || o.Role != "gateway" || kinds(o) != want {
			t.Errorf("%+v", o)
		}
		if o := h.ask(none{}); o.Life != None || o.PID != 0 || o.Port != 0 || o.Role != "" || !o.Since.IsZero() {
			t.Errorf("after a crash: %+v", o)
		}
		// Out of a container's volume: the process is not seen, but the
		// kernel's lock is.
		if o := h.ask(one{why: "mounted from outside", kernel: true}); o.Life != None {
			t.Errorf("volume, unlocked: %+v", o)
		}
		if o := h.ask(one{why: "NFS"}); o.Life != Maybe {
			t.Errorf("network: %+v", o)
		}
	})
}

func TestHashes(t *testing.T) {
	for path, want := range map[string]string{ // as the real gateways named their locks
		"/tmp/lockgw/r735/state/openclaw.json":        "a2cb6d16",
		"/tmp/lockgw/r96/state/openclaw.json":         "8ad7f0a7",
		"/tmp/lockgw/r96/state/state/openclaw.sqlite": "0fe44aed",
	} {
		if got := hash(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestNobody(t *testing.T) {
	h := newHouse(t)
	if o := h.ask(none{}); o.Life != None || len(o.Evidence) != 0 {
		t.Errorf("an empty house: %+v", o)
	}
	h.w.StateDir = filepath.Join(h.w.StateDir, "none")
	if o := h.ask(none{}); o.Life != None {
		t.Errorf("no state: %+v", o)
	}
	if o := h.ask(one{why: "on NFS"}); o.Life != Maybe || kinds(o) != "shared:unknown" {
		t.Errorf("no state, on a network: %+v", o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if o := Owner(ctx, h.w, none{}, time.Now()); o.Life != Maybe {
		t.Errorf("canceled: %+v", o)
	}
	h.w.Proc = filepath.Join(h.w.Proc, "none")
	if o := h.ask(none{}); o.Life != Maybe {
		t.Errorf("no /proc: %+v", o)
	}
}

func TestLocksOfOthers(t *testing.T) {
	const pid = 4242
	m := one{pid: pid, start: 9}
	body := func(config string) string {
		return fmt.Sprintf(`{"pid":%d,"createdAt":"2026-11-30T13:31:40.056Z","configPath":%q,"port":1,"startTime":9}`, pid, config)
	}
	h := newHouse(t)
	h.tmpLock("gateway.00000001.lock", body("/elsewhere/openclaw.json"))
	if o := h.ask(m); o.Life != None || len(o.Evidence) != 0 {
		t.Errorf("a gateway of another config: %+v", o)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(h.w.StateDir, link); err != nil {
		t.Fatal(err)
	}
	h.tmpLock("gateway.00000002.lock", body(filepath.Join(link, "openclaw.json")))
	if o := h.ask(m); o.Life != Alive || o.PID != pid {
		t.Errorf("the same config by another name: %+v", o)
	}

	h = newHouse(t)
	h.stateLock("gateway.state.lock", strings.Replace(body("/x"), `"port":1`, `"role":"sqlite-maintenance"`, 1))
	if o := h.ask(m); o.Life != Alive || o.Role != "sqlite-maintenance" || o.Port != 0 {
		t.Errorf("a doctor at work: %+v", o)
	}
}

func TestHostileGatewayLocks(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want Life
	}{
		"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, Maybe},
		"fifo":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, Maybe},
		"loop":      {func(p string) error { return os.Symlink(p, p) }, Maybe},
		"huge":      {func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<40)) }, Maybe},
		"binary, old": {func(p string) error {
			return errors.Join(os.WriteFile(p, []byte("\x00\xff"), 0o600), os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)))
		}, None},
		"half written": {func(p string) error {
			at := time.Date(2026, 11, 30, 13, 44, 59, 0, time.UTC)
			return errors.Join(os.WriteFile(p, []byte(`{"pid": 1`), 0o600), os.Chtimes(p, at, at))
		}, Maybe},
	} {
		h := newHouse(t)
		for _, path := range []string{h.tmpLock("gateway."+hash(h.w.ConfigPath)+".lock", ""), h.stateLock("gateway.state.lock", ""), h.stateLock("gateway.state.lock.sqlite", "")} {
			if err := errors.Join(os.Remove(path), c.make(path)); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan Ownership, 1)
		go func() { done <- h.ask(none{}) }()
		select {
		case o := <-done:
			if o.Life != c.want || len(o.Evidence) != 3 {
				t.Errorf("%s: %+v", name, o)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: hangs", name)
		}
	}
	h := newHouse(t)
	h.file(filepath.Join(h.w.StateDir, "tmp"), "a file where a directory should be")
	if o := h.ask(none{}); o.Life != None {
		t.Errorf("tmp is a file: %+v", o)
	}
}

func TestProcesses(t *testing.T) {
	now := time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC)
	old := one{pid: 77, start: 1, boot: now.Add(-time.Hour)}
	young := one{pid: 77, start: 3590 * 100, boot: now.Add(-time.Hour)}
	for name, c := range map[string]struct {
		comm, env, cmdline string
		fd                 string
		m                  lock.Machine
		want               Life
		says               string
	}{
		"its environment":         {comm: "openclaw-gatewa", env: "OPENCLAW_STATE_DIR=@", want: Alive, says: "environment names this state"},
		"another environment":     {comm: "openclaw-gatewa", env: "OPENCLAW_STATE_DIR=/other", want: None, says: "another state, /other"},
		"its files":               {comm: "openclaw-gatewa", env: "HOME=/other", fd: "@/state/openclaw.sqlite-wal", want: Alive, says: "files of this state"},
		"files beat environment":  {comm: "openclaw-gatewa", env: "OPENCLAW_STATE_DIR=@", fd: "/other/state/openclaw.sqlite", want: None, says: "another state open"},
		"a name that only begins": {comm: "openclaw-gatewa", env: "HOME=/other", fd: "@2/log", want: None, says: "another home"},
		"its home":                {comm: "openclaw-gatewa", env: "HOME=^", want: Maybe, says: "its home holds"},
		"its openclaw home":       {comm: "openclaw-gatewa", env: "HOME=/other\x00OPENCLAW_HOME=^", want: Maybe, says: "its home holds"},
		"below its home":          {comm: "openclaw-gatewa", env: "HOME=^\x00OPENCLAW_STATE_DIR=~/state", want: Alive, says: "environment names this state"},
		"a command line":          {comm: "node", env: "OPENCLAW_STATE_DIR=@", cmdline: "node\x00/x/bin/openclaw\x00--profile\x00a\x00gateway\x00run\x00", want: Maybe, says: "environment names"},
		"a client":                {comm: "node", env: "OPENCLAW_STATE_DIR=@", cmdline: "node\x00/x/openclaw.mjs\x00gateway\x00call\x00health\x00", want: None},
		"a young command":         {comm: "openclaw", env: "OPENCLAW_STATE_DIR=@", m: young, want: Maybe, says: "may be a gateway that starts"},
		"an old command":          {comm: "openclaw", env: "OPENCLAW_STATE_DIR=@", m: old, want: None, says: "runs for long"},
		"an old command at work":  {comm: "openclaw", env: "OPENCLAW_STATE_DIR=@", fd: "@/state/openclaw.sqlite", m: old, want: Maybe, says: "files of this state"},
		"somebody else's program": {comm: "sleep", env: "OPENCLAW_STATE_DIR=@", want: None},
		"an empty command line":   {comm: "", env: "", cmdline: "\x00", want: None},
	} {
		h := newHouse(t)
		put := strings.NewReplacer("@", h.w.StateDir, "^", filepath.Dir(h.w.StateDir)).Replace
		var fds []string
		if c.fd != "" {
			fds = append(fds, put(c.fd))
		}
		h.proc(77, c.comm, put(c.env), fds...)
		if c.cmdline != "" {
			h.file(filepath.Join(h.w.Proc, "77", "cmdline"), c.cmdline)
		}
		m := c.m
		if m == nil {
			m = old
		}
		o := h.ask(m)
		var all string
		for _, e := range o.Evidence {
			all += e.Says
		}
		if o.Life != c.want || !strings.Contains(all, c.says) {
			t.Errorf("%s: %+v", name, o)
		}
	}
	h := newHouse(t)
	h.proc(77, "openclaw-gatewa", "OPENCLAW_STATE_DIR="+h.w.StateDir)
	h.file(filepath.Join(h.w.Proc, "77", "stat"), "77 (openclaw-gatewa) Z 1 1")
	if o := h.ask(old); o.Life != None {
		t.Errorf("a zombie: %+v", o)
	}
	h.file(filepath.Join(h.w.Proc, "net", "tcp"), "  sl  local_address\n   0: 0100007F:703F 00000000:0000 0A 0:0 00:0 0 0 0 17659 1\n   1: 0100007F:707C 00000000:0000 01 0:0 00:0 0 0 0 17660 1\nrubbish\n")
	if o := h.ask(old); o.Life != Maybe || kinds(o) != "port:unknown" || o.Port != 28735 {
		t.Errorf("a socket without a process: %+v", o)
	}
}

// child starts the test binary in a role, under a name of its own.
func child(t *testing.T, name, role string, env ...string) (line string, pid int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "oc-gateway-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	raw, err := os.ReadFile(self)
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, name), raw, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, name))
	cmd.Dir, cmd.Env = "/", append([]string{"OC_TEST_ROLE=" + role, "HOME=/none"}, env...)
	if role == "owner" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

func TestRealProcessAndPort(t *testing.T) {
	h := newHouse(t)
	h.w.Proc = ""
	line, pid := child(t, "openclaw-gateway", "listen", "OPENCLAW_STATE_DIR="+h.w.StateDir)
	port, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(line)
	}
	h.w.Ports = []int{port}
	find := func(o Ownership, kind Kind) (e Evidence) {
		for _, e = range o.Evidence {
			if e.Kind == kind && e.PID == pid {
				return e
			}
		}
		return Evidence{}
	}
	o := h.ask(here{lock.Local()})
	if o.Life != Alive || find(o, OSProcess).Points != Alive || find(o, Listener).Points != Alive || find(o, Listener).Port != port {
		t.Errorf("a gateway of this state: %+v", o)
	}
	// Nobody connected: the socket's queue is empty, and nothing but the
	// listener knows the port.
	other := newHouse(t)
	other.w.Proc, other.w.Ports = "", []int{port}
	o = other.ask(here{lock.Local()})
	if find(o, OSProcess).Points != None || find(o, Listener).Points != None {
		t.Errorf("a gateway of another state: %+v", o)
	}
	line, pid = child(t, "tunnel", "listen")
	if port, err = strconv.Atoi(line); err != nil {
		t.Fatal(line)
	}
	other.w.Ports = []int{port}
	if o = other.ask(here{lock.Local()}); o.Life != Maybe || find(o, Listener).Points != Maybe {
		t.Errorf("something that listens: %+v", o)
	}
}

func TestRealCoordinator(t *testing.T) {
	h := newHouse(t)
	db := filepath.Join(h.w.StateDir, "state", "openclaw.sqlite")
	path := h.file(filepath.Join(h.w.LockRoot, fmt.Sprintf("openclaw-state-locks-%d", h.w.UID), "gateway-lifecycle."+hash(resolve(db))+".lock.sqlite"), "")
	if o := h.ask(none{}); o.Life != None || kinds(o) != "coordinator:none" {
		t.Errorf("unlocked: %+v", o)
	}
	line, pid := child(t, "holder", "lock", "OC_TEST_PATH="+path)
	if line != "<nil>" {
		t.Fatal(line)
	}
	if o := h.ask(none{}); o.Life != Alive || o.PID != pid {
		t.Errorf("locked: %+v", o)
	}
}

func TestWithoutRights(t *testing.T) {
	if os.Getuid() != 0 {
		// Nobody to become; a directory of one's own without rights is as good.
		h := newHouse(t)
		path := h.stateLock("gateway.state.lock", "{}")
		if err := os.Chmod(filepath.Dir(path), 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Dir(path), 0o700)
		if o := h.ask(none{}); o.Life != Maybe {
			t.Errorf("%+v", o)
		}
		return
	}
	dir, err := os.MkdirTemp("/tmp", "oc-gateway-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o700)); err != nil {
		t.Fatal(err)
	}
	line, _ := child(t, "oc", "owner", "OC_TEST_PATH="+dir, "OC_TEST_PROC=/proc")
	if !strings.HasPrefix(line, string(Maybe)) || !strings.Contains(line, "permission denied") {
		t.Errorf("locks that cannot be listed: %s", line)
	}
}

// Looking leaves no trace.
func TestOwnerTouchesNothing(t *testing.T) {
	h := newHouse(t)
	h.stateLock("gateway.state.lock", recorded(t, "2026.9.6/gateway.state.lock"))
	h.stateLock("gateway.state.lock.sqlite", "")
	h.tmpLock("gateway."+hash(h.w.ConfigPath)+".lock", "{")
	snap := func() (out string) {
		err := filepath.Walk(filepath.Dir(h.w.StateDir), func(path string, info os.FileInfo, err error) error {
			if err == nil {
				out += fmt.Sprintln(path, info.Mode(), info.Size(), info.ModTime())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := snap()
	h.ask(here{lock.Local()})
	if after := snap(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

func BenchmarkOwner(b *testing.B) {
	w := Where{StateDir: b.TempDir(), TmpDirs: []string{b.TempDir()}, LockRoot: b.TempDir(), UID: os.Getuid(), Ports: []int{1}}
	for b.Loop() {
		Owner(context.Background(), w, lock.Local(), time.Now())
	}
}
