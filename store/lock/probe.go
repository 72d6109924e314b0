package lock

// Probe is what the kernel says of a SQLite lock.
type Probe struct {
	State ProbeState
	PID   int    // of the owner; 0: not told, as for a process of another container
	Says  string // why the state is Dark, or who is meant; may be empty
}

// ProbeState is the answer of ProbeSQLite.
type ProbeState int

const (
	Unlocked ProbeState = iota // nobody holds it exclusively
	Absent                     // there is no such file
	Locked                     // some process holds it exclusively
	Hidden                     // it cannot be told here
)
