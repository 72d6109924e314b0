package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oc/store/lock"
)

const (
	comm     = "openclaw-gatewa" // the kernel keeps 15 bytes of the title openclaw-gateway
	command  = "openclaw"        // the title of every other command, and of a gateway in its first seconds
	starting = 2 * time.Minute   // how long a gateway may take to change its title
	maxEnv   = 4 << 20
)

// processes looks at every process once: for gateways of this state, and for
// the sockets that listen on its ports.
func (s *search) processes(ctx context.Context) {
	wanted := map[string]int{} // "socket:[inode]" -> port
	for _, port := range s.Ports {
		for _, inode := range listeners(s.Proc, port) {
			wanted["socket:["+inode+"]"] = port
		}
	}
	found := map[int]bool{} // ports whose listener's process is known
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		s.add(Evidence{Kind: OSProcess, Path: s.Proc, Points: Maybe, Says: "processes cannot be listed: " + cause(err)})
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || ctx.Err() != nil {
			continue
		}
		p := process{dir: filepath.Join(s.Proc, e.Name()), pid: pid}
		if kind := p.gateway(); kind != notGateway {
			s.weigh(p, kind)
		}
		if len(wanted) == 0 {
			continue
		}
		for _, link := range p.links() {
			if port, ok := wanted[link]; ok && !found[port] {
				found[port] = true
				s.listener(port, p)
			}
		}
	}
	for _, port := range wanted {
		if !found[port] {
			found[port] = true
			s.add(Evidence{Kind: Listener, Port: port, Points: Maybe, Says: "something listens on the port, by a process that cannot be looked into"})
		}
	}
}

// listener weighs a process that listens on a port where a gateway would be. It
// clears nobody but gateways of another state: what listens may be a tunnel or
// a proxy into a container.
func (s *search) listener(port int, p process) {
	e := Evidence{Kind: Listener, PID: p.pid, Port: port, Points: Maybe}
	e.Says = fmt.Sprintf("process %d (%s) listens on the port", p.pid, p.name())
	if p.gateway() == titled {
		switch life, why := s.belongs(p); life {
		case None:
			e.Points, e.Says = None, e.Says+", a gateway, but "+why
		default:
			e.Points, e.Says = life, e.Says+": a gateway; "+why
		}
	}
	s.add(e)
}

func (s *search) weigh(p process, kind kind) {
	life, why := s.belongs(p)
	switch {
	case kind == worded && life == Alive:
		life = Maybe // the words may stand in anybody's command line
	case kind == commanded && life != None:
		// Chats and node hosts run for days beside a state that they do not
		// write; what has its files open is respected, and what is young may
		// become a gateway.
		if age := s.now.Sub(s.began(p)); life == Alive && why == opened || age < starting {
			life, why = Maybe, why+", and it may be a gateway that starts or a command at work"
		} else {
			life, why = None, why+", but it is a command that runs for long and has none of its files open"
		}
	}
	e := Evidence{Kind: OSProcess, PID: p.pid, Points: life, Says: fmt.Sprintf("process %d (%s): %s", p.pid, p.name(), why)}
	if life == Alive && s.out.Role == "" {
		s.out.Role, s.out.Since = "gateway", s.began(p)
	}
	s.add(e)
}

// began is when a process started, zero when unknown.
func (s *search) began(p process) time.Time {
	boot, ticks := s.m.Boot(), s.m.Process(p.pid).Start
	if boot.IsZero() || ticks == 0 {
		return time.Time{}
	}
	return lock.Began(boot, ticks)
}

const opened = "it has files of this state open"

// belongs says whether a gateway process is this state's. What it has open is
// better than what its environment says, because --profile moves the state
// after the start.
func (s *search) belongs(p process) (Life, string) {
	db, _ := os.Stat(s.StateDB)
	other := ""
	fds, openErr := p.files()
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(link, "/") {
			continue
		}
		if under(link, s.real) {
			return Alive, opened
		}
		if filepath.Base(link) == "openclaw.sqlite" {
			if info, err := os.Stat(fd); err == nil && db != nil && os.SameFile(info, db) {
				return Alive, opened
			}
			other = link
		}
	}
	if other != "" {
		return None, "it has the database of another state open, " + other
	}
	env, err := p.env()
	if err != nil || openErr != nil && env == nil {
		if uid := ownerUID(p.dir); uid >= 0 && !s.knows(uid) {
			return None, fmt.Sprintf("it runs as user %d, whose state this is not", uid)
		}
		return Maybe, "it may be this state's: its environment cannot be read"
	}
	if dir := env["OPENCLAW_STATE_DIR"]; dir != "" {
		if strings.HasPrefix(dir, "~") {
			dir = filepath.Join(home(env), strings.TrimLeft(dir, `~/\`))
		} else if !filepath.IsAbs(dir) {
			cwd, _ := os.Readlink(filepath.Join(p.dir, "cwd"))
			dir = filepath.Join(cwd, dir)
		}
		if resolve(dir) == s.real {
			return Alive, "its environment names this state"
		}
		return None, "its environment names another state, " + dir
	}
	if under(s.real, resolve(home(env))) {
		return Maybe, "its home holds this state"
	}
	return None, "it has another home, " + home(env)
}

func (s *search) knows(uid int) bool {
	for _, u := range s.uids {
		if u == uid {
			return true
		}
	}
	return false
}

func home(env map[string]string) string {
	for _, name := range []string{"OPENCLAW_HOME", "HOME"} {
		if dir := strings.TrimSpace(env[name]); dir != "" && !strings.HasPrefix(dir, "~") {
			return dir
		}
	}
	return "/"
}

func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// process is one directory of /proc.
type process struct {
	dir string
	pid int
}

type kind int

const (
	notGateway kind = iota
	worded          // its command line reads like the start of a gateway
	commanded       // it calls itself openclaw
	titled          // it calls itself openclaw-gateway
)

func (p process) gateway() kind {
	if stat := p.read("stat", 4096); bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X ")) {
		return notGateway // it is dead, and waits for its parent
	}
	switch p.name() {
	case comm:
		return titled
	case command:
		return commanded
	}
	args := strings.Split(strings.Trim(string(p.read("cmdline", 64<<10)), "\x00"), "\x00")
	if args[0] == "openclaw-gateway" {
		return titled
	}
	for i, arg := range args[:len(args)-1] {
		switch filepath.Base(arg) {
		case "openclaw", "openclaw.mjs":
			for j, word := range args[i+1:] {
				if word == "gateway" {
					next := args[i+2+j:]
					if len(next) == 0 || next[0] == "run" || strings.HasPrefix(next[0], "-") {
						return worded
					}
					break
				}
			}
		}
	}
	return notGateway
}

func (p process) name() string {
	return strings.ToValidUTF8(string(bytes.TrimSpace(p.read("comm", 64))), "?")
}

func (p process) read(name string, limit int64) []byte {
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, limit))
	return raw
}

// files are the paths of the process's descriptors in /proc.
func (p process) files() ([]string, error) {
	dir := filepath.Join(p.dir, "fd")
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	return names, err
}

func (p process) links() (out []string) {
	files, _ := p.files()
	for _, fd := range files {
		if link, err := os.Readlink(fd); err == nil {
			out = append(out, link)
		}
	}
	return out
}

// env is the environment that the process was started with.
func (p process) env() (map[string]string, error) {
	f, err := os.OpenFile(filepath.Join(p.dir, "environ"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxEnv))
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		if name, value, ok := bytes.Cut(entry, []byte{'='}); ok {
			env[string(name)] = string(value)
		}
	}
	return env, nil
}

// listeners returns the inodes of the TCP sockets that listen on a port, on any
// address.
func listeners(proc string, port int) (inodes []string) {
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(proc, "net", name))
		if errors.Is(err, fs.ErrNotExist) || err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if at, state, inode := socket(lines.Text()); at == port && state == "0A" {
				inodes = append(inodes, inode)
			}
		}
		f.Close()
	}
	return inodes
}

// socket reads a line of /proc/net/tcp: its local port, state and inode.
func socket(line string) (port int, state, inode string) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return 0, "", ""
	}
	_, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		return 0, "", ""
	}
	return int(n), f[3], f[9]
}
