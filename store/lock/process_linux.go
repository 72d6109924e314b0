package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const nonblock = syscall.O_NONBLOCK

func (local) Process(pid int) Process {
	p := Process{PID: pid, Life: Alive}
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		p.Life = Gone
		return p
	}
	// Threads answer to kill too, but no lock is written in their name.
	if tgid := strings.Fields(status(pid, "Tgid:")); len(tgid) == 1 && tgid[0] != strconv.Itoa(pid) {
		p.Life = Gone
		return p
	}
	state, start := stat(pid)
	p.Start = start
	if state == 'Z' || state == 'X' {
		p.Life = Gone
		return p
	}
	p.Title = title(pid)
	return p
}

func (local) Boot() time.Time {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			if sec, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64); err == nil {
				return time.Unix(sec, 0)
			}
		}
	}
	return time.Time{}
}

// networks are the file systems whose files processes of other machines may
// hold: magic numbers of statfs(2).
var networks = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x01021997: "9P",
	0x65735546: "FUSE", 0x00c36400: "Ceph", 0x5346414f: "AFS", 0x73757245: "Coda", 0x0bd00bd0: "Lustre",
	0x47504653: "GPFS", 0x7461636f: "OCFS2", 0x01161970: "GFS2",
}

// rootNamespace is the number of the first process namespace of any kernel.
const rootNamespace = "pid:[4026531836]"

func (local) Elsewhere(dir string) (why string, kernel bool) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		if name := networks[uint32(fs.Type)]; name != "" {
			return fmt.Sprintf("%s is on a shared file system (%s)", dir, name), false
		}
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || ns == rootNamespace {
		return "", false
	}
	var here, root syscall.Stat_t
	if syscall.Stat(dir, &here) == nil && syscall.Stat("/", &root) == nil && here.Dev != root.Dev {
		return fmt.Sprintf("oc runs in a container and %s is mounted from outside it", dir), true
	}
	return "", false
}

// containers lists the processes of nested process namespaces.
func containers() (out inner) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		here, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		names := strings.Fields(status(here, "NSpid:"))
		if len(names) < 2 {
			continue
		}
		if there, err := strconv.Atoi(names[len(names)-1]); err == nil {
			_, start := stat(here)
			out = append(out, nested{here, there, start})
		}
	}
	return out
}

// stat returns the state letter of a process and its start time, field 22.
func stat(pid int) (state byte, start uint64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	return parseStat(raw)
}

// parseStat reads /proc/<pid>/stat. The name in parentheses may hold anything,
// parentheses and blanks too.
func parseStat(raw []byte) (state byte, start uint64) {
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return 0, 0
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) < 20 {
		return 0, 0
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0, 0
	}
	return fields[0][0], start
}

func status(pid int, name string) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(rest)
		}
	}
	return ""
}

// title is the program and what it was told to do, up to the first flag: what
// follows may be a secret.
func title(pid int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, maxTitle))
	var shown []string
	for _, word := range strings.Split(strings.Trim(string(raw), "\x00"), "\x00") {
		if strings.HasPrefix(word, "-") || len(shown) == 3 {
			break
		}
		shown = append(shown, word)
	}
	return strings.ToValidUTF8(strings.Join(shown, " "), "?")
}
