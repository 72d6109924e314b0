package sqlfile

import (
	"io/fs"
	"testing"
)

// asNobody runs a child as the user that the test runs as: here another one needs a password.
func asNobody(t *testing.T, role string, args ...string) {
	t.Helper()
	run(t, role, args...)
}

func identity(fs.FileInfo) string { return "" }
