package awareness

import (
	"context"
	"errors"
	"path/filepath"

	"oc/store"
)

// ErrQuarantined is a change to a database that OpenClaw has found damaged and refuses to open.
var ErrQuarantined = errors.New("OpenClaw has put it in quarantine")

// Quarantine is why OpenClaw refuses to open a state database; see [store.Quarantine].
func Quarantine(ctx context.Context, path string) (reason string, err error) {
	return store.Quarantine(ctx, filepath.Dir(filepath.Dir(path)), path)
}
