package commands

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"oc/fixtures"
)

// withoutNetwork turns this process into another program that is killed as soon as it asks for a socket of the internet.
func withoutNetwork(argv []string) error {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if arch == 0 {
		return fmt.Errorf("no filter is written for %s", runtime.GOARCH)
	}
	const (
		number, architecture, first = 0, 4, 16 // where struct seccomp_data has them
		load                        = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                       = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer                      = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: arch, Jf: 5},
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 4},
		{Code: load, K: first},
		{Code: equal, K: unix.AF_INET, Jt: 1},
		{Code: equal, K: unix.AF_INET6, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const filterAllThreads = 1 // SECCOMP_FILTER_FLAG_TSYNC
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, 1, filterAllThreads, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, argv, os.Environ())
}

// No command makes a connection where no gateway runs and no provider is named: each is run where asking for a socket of the internet is death.
func TestNoNetwork(t *testing.T) {
	oc, err := exec.LookPath("oc")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	run := func(argv ...string) (int, string) {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = root
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "NO_COLOR=1", "TZ=UTC", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", fixtures.Now), "GOCOVERDIR=" + root}
		out, _ := c.CombinedOutput()
		if s, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return -int(s.Signal()), string(out)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
	state := filepath.Join(root, "state")
	fresh := func() {
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := fixtures.Demo().Write(state); err != nil {
			t.Fatal(err)
		}
	}
	fresh()
	// The trap works: what asks for a connection dies in it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing can be done
	url := fmt.Sprintf("ws://%s", l.Addr())
	if status, out := run("nonet", oc, "gateway", "ping", "--url", url, "--token", "x", "--state-dir", state, "--gateway-timeout", "1s"); status != -int(syscall.SIGSYS) {
		t.Fatalf("a ping, which has to connect: %d: %s", status, out)
	}
	const chat = "agent:work:telegram:direct:5550137"
	lines := []string{
		"", "sessions", "sessions list --all-agents --titles --preview", "sessions show " + chat, "sessions trace " + chat, "sessions history " + chat, "sessions tail", "sessions search flour",
		"sessions diff agent:work:main " + chat, "sessions export agent:work:main --format html", "sessions stats", "sessions stats --bytes", "sessions explain", "sessions context main",
		"sessions --history --agent work", "status", "agents list", "doctor", "doctor --deep", "awareness log", "awareness watches", "awareness stats", "version", "help", "man", "completion bash",
		"sessions cleanup --agent work --dry-run", "sessions compact agent:work:main --main --dry-run", "undo --list", "repair index --agent work --dry-run", "report", "metrics", "db status",
	}
	for _, change := range []string{ // without --offline they ask the gateway that is configured, whether one lives
		"sessions compact agent:work:main --main --keep-recent-tokens 60", "sessions patch " + chat + " --label x", "sessions archive " + chat, "sessions restore " + chat, "sessions reset " + chat,
		"sessions delete " + chat + " --yes", "sessions cleanup --agent work", "doctor --fix", "undo", "agents delete garden --yes",
	} {
		lines = append(lines, change+" --offline")
	}
	for _, line := range lines {
		status, out := run(append([]string{"nonet", oc, "--state-dir", state}, strings.Fields(line)...)...)
		if status < 0 {
			t.Errorf("oc %s: ended by %v: it asked for a connection", line, syscall.Signal(-status))
		}
		if status == ExitUsage && !strings.HasPrefix(line, "report") {
			t.Errorf("oc %s is no command: %s", line, out)
		}
	}
}
