package lock

import "time"

// Life says whether a process runs.
type Life int

const (
	Gone  Life = iota // no such process, or a zombie
	Alive             // runs, be it another user's
	Dark              // the system does not tell
)

// Process is what can be known of a process of this machine.
type Process struct {
	PID   int
	Life  Life
	Start uint64 // clock ticks since boot, as OpenClaw writes it; 0: unknown
	Title string // its command line up to the first flag, for people to read; may be empty
}

// Machine answers for the processes around oc. Local is the real one.
type Machine interface {
	Process(pid int) Process
	// Boot is when the system started, by today's clock; zero: unknown.
	Boot() time.Time
	// Elsewhere says why files in dir may be locked by processes that cannot
	// be seen from here (a network file system, a container's volume); empty
	// when there is no such reason. With kernel those processes are under this
	// very kernel, so that a probe answers for them too.
	Elsewhere(dir string) (why string, kernel bool)
	// Nested returns the process here that has the number pid inside a
	// container, and that start time unless start is 0; 0 when there is none.
	Nested(pid int, start uint64) int
}

// Local is this machine. Its answers are read afresh each time.
func Local() Machine { return local{} }

type local struct{ inner *inner }

// inner are the processes of containers that were seen at one moment: reading
// them takes milliseconds, too long to do for every lock of a directory.
type inner []nested

type nested struct {
	here, there int // its number here, and inside
	start       uint64
}

// still is the machine with its containers as they are now.
func still(m Machine) Machine {
	if _, ok := m.(local); ok {
		now := containers()
		return local{&now}
	}
	return m
}

func (l local) Nested(pid int, start uint64) int {
	var list inner
	if l.inner != nil {
		list = *l.inner
	} else {
		list = containers()
	}
	for _, p := range list {
		if p.there == pid && (start == 0 || p.start == start) {
			return p.here
		}
	}
	return 0
}

// maxTitle bounds a command line in bytes.
const maxTitle = 200

// Began is when a process started that has the given start time, after a boot.
func Began(boot time.Time, ticks uint64) time.Time {
	const tick = time.Second / 100 // in /proc, whatever the kernel's own rate
	return boot.Add(time.Duration(min(ticks, 1<<38)) * tick)
}
