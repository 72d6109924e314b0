package maintenance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oc/config"
)

// An Astray store is a symbolic link that leads out of the state and of every directory of sessions: what lies there may be anybody's, so that
// oc reads it and does not write it (field-reports.md S6). OpenClaw 2026.7.35 replaces such a link by a file with its next write.
type Astray struct{ Path, To string }

func (e *Astray) Error() string {
	return fmt.Sprintf("the session store %s is a link to %s, outside of the state, and oc writes nothing there: put the file itself in place of the link, or link the directory", e.Path, e.To)
}

// Reachable holds that a store is one to be changed where it lies: a link to it, with those of directories followed, stays in the state, or
// leads to where sessions of an agent are. For a policy that is Beside the store nothing is asked. The error is an *Astray.
func Reachable(c *config.Config, index string, p *Policy) error {
	if at, err := os.Lstat(index); p.Beside || err != nil || at.Mode()&fs.ModeSymlink == 0 {
		return nil //nolint:nilerr // who reads it tells that
	}
	to, err := filepath.EvalSymlinks(index)
	if err != nil {
		return nil //nolint:nilerr // the same
	}
	homes := []string{c.StateDir, filepath.Dir(index)}
	for _, id := range c.StoreAgents() {
		homes = append(homes, filepath.Dir(c.StorePath(id)))
	}
	for _, dir := range homes {
		if within(to, realDir(dir)) {
			return nil
		}
	}
	return &Astray{index, to}
}
