//go:build !linux

package lock

import (
	"errors"
	"io/fs"
	"os"
)

// ProbeSQLite says whether the file is there. Who locks it is not told here.
func ProbeSQLite(path string) Probe {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return Probe{State: Absent}
	}
	return Probe{State: Untold, Says: "this system does not tell who locks a file"}
}

// SQLiteWriter is not told here.
func SQLiteWriter(string) (pid int) { return 0 }

// SQLiteUser is not told here.
func SQLiteUser(string) (pid int) { return 0 }
