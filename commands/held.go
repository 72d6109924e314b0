package commands

import (
	"errors"
	"fmt"

	"oc/store/lock"
	"oc/store/sqlfile"
)

// heldBy names who keeps a database busy, where the system can tell: the process that writes to it, else one that has it open.
func heldBy(err error) error {
	var at *sqlfile.Error
	if !errors.Is(err, sqlfile.ErrBusy) || !errors.As(err, &at) {
		return err
	}
	if pid := lock.SQLiteWriter(at.Path); pid != 0 {
		return fmt.Errorf("%w; process %d holds it", err, pid)
	}
	if pid := lock.SQLiteUser(at.Path); pid != 0 {
		return fmt.Errorf("%w; process %d has it open", err, pid)
	}
	return err
}
