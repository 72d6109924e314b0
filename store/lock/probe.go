package lock

// Probe is what the kernel says of a SQLite lock.
type Probe struct {
	State ProbeState
	PID   int    // of the owner; 0: not told, as for a process of another container
	Says  string // why the state is Hidden, or who is meant; may be empty
}

// ProbeState is the answer of ProbeSQLite.
type ProbeState int

const (
	Hidden   ProbeState = iota // it exists, and the system refuses to tell
	Absent                     // there is no such file
	Unlocked                   // nobody holds it exclusively
	Locked                     // some process holds it exclusively
	Untold                     // this system has no such question
)
