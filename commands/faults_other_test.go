//go:build !linux

package commands

import (
	"os"
	"testing"
)

// reviews are for Linux, whose terminals the tests know how to make.
var reviews []altering

func seat(t *testing.T, _ string) (*os.File, func()) {
	t.Fatal("no terminal can be made here")
	return nil, nil
}
