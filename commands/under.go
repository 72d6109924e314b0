package commands

import (
	"oc/maintenance/journal"
	"oc/store/lock"
)

// under is what commands stand on: the zero value is the system. Tests put faults there, and a machine without other processes.
type under struct {
	files   journal.FS   // what changes go through
	machine lock.Machine // whose processes and locks are looked at
	proc    string       // its process file system
}

// machine is the one that processes and locks are of.
func (c *Call) machine() lock.Machine {
	if c.under.machine != nil {
		return c.under.machine
	}
	return lock.Local()
}
