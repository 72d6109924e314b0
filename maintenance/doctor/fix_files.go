package doctor

import (
	"os"
	"strings"

	"oc/maintenance"
)

// lock removes a lock that nobody holds. It is looked at once more when the
// plan is applied.
func (r *repair) lock(f Finding) error { return r.remove(f, strings.Join(f.Evidence, "; ")) }

// remove takes a file away.
func (r *repair) remove(f Finding, why string) error {
	info, err := os.Lstat(f.File)
	if err != nil {
		return err
	}
	r.m.Remove(f.File, info, maintenance.Rule(f.Code), why)
	return nil
}
