package journal

import (
	"fmt"
	"io"
)

// Before writes what the file of a step of a loaded run held before the run, as it was saved. The errors are ErrNoBytes, where the run
// saved nothing or its bytes were given up, ErrDamaged, and those of the file system and of w.
func (j *Journal) Before(r *Run, s *Step, w io.Writer) error {
	if r.Purge || r.Expired || s.Old == nil || s.Old.Vault >= len(r.Vaults) {
		return fmt.Errorf("run %s: %w", r.ID, ErrNoBytes)
	}
	if s.Old.Link > 0 {
		sum, err := j.sum(linkName(r.Vaults[s.Old.Vault].Dir, s.Old.Link), w)
		if err == nil && sum.hex() != s.Before.SHA256 {
			err = fmt.Errorf("run %s: %w", r.ID, ErrDamaged)
		}
		return err
	}
	return j.unpack(s.Old.pack(r.Vaults[s.Old.Vault].Dir), *s.Old, s.Before, w)
}
