package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	wanted := listeners(s.Proc, s.Ports)
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
	name, _ := p.name()
	e.Says = fmt.Sprintf("process %d (%s) listens on the port", p.pid, name)
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
	name, _ := p.name()
	e := Evidence{Kind: OSProcess, PID: p.pid, Points: life, Says: fmt.Sprintf("process %d (%s): %s", p.pid, name, why)}
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
		if uid := ownerUID(p.dir); uid >= 0 && !slices.Contains(s.uids, uid) {
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

// gateway reads one file of most processes, two of those that may be Node.
func (p process) gateway() kind {
	name, dead := p.name()
	switch {
	case dead:
		return notGateway // it waits for its parent
	case name == comm:
		return titled
	case name == command:
		return commanded
	case name != "node" && name != "MainThread" && name != "bun":
		return notGateway
	}
	args := strings.Split(strings.Trim(string(p.read("cmdline", 64<<10)), "\x00"), "\x00")
	for i, arg := range args {
		if base := filepath.Base(arg); base != "openclaw" && base != "openclaw.mjs" {
			continue
		}
		words := args[i+1:]
		at := slices.Index(words, "gateway")
		if at >= 0 && (at+1 == len(words) || words[at+1] == "run" || strings.HasPrefix(words[at+1], "-")) {
			return worded
		}
	}
	return notGateway
}

// name is what the process calls itself, as the kernel keeps it, and whether it
// is a zombie.
func (p process) name() (name string, dead bool) {
	stat := p.read("stat", 1024)
	first, last := bytes.IndexByte(stat, '('), bytes.LastIndex(stat, []byte(") "))
	if first < 0 || last < first {
		return "", false
	}
	state := stat[last+2:]
	return strings.ToValidUTF8(string(stat[first+1:last]), "?"), len(state) > 0 && (state[0] == 'Z' || state[0] == 'X')
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

// listeners finds the TCP sockets that listen on the ports, on any address, and
// returns them as "socket:[inode]" -> port. The kernel lists listening sockets
// first, and walks a large table for each read: what follows is not read.
func listeners(proc string, ports []int) map[string]int {
	found := map[string]int{}
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(proc, "net", name))
		if err != nil {
			continue // no IPv6
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			port, state, inode := socket(lines.Text())
			if port != 0 && state != "0A" {
				break
			}
			if slices.Contains(ports, port) {
				found["socket:["+inode+"]"] = port
			}
		}
		f.Close()
	}
	return found
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
