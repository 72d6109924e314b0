package journal

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"oc/store/lock"
)

// lockDirs keeps oc out of the directories in which steps change something, when it comes with another journal: two states may have one
// directory of sessions. Directories below another one of them are locked with that.
func (j *Journal) lockDirs(ctx context.Context, steps []Step) (release func() error, err error) {
	var dirs []string
	for i := range steps {
		dirs = append(dirs, filepath.Dir(steps[i].Path))
		if steps[i].To != "" {
			dirs = append(dirs, filepath.Dir(steps[i].To))
		}
	}
	slices.Sort(dirs) // in one order, so that two never wait for each other
	var locked []func() error
	release = func() (err error) {
		for _, unlock := range slices.Backward(locked) {
			err = errors.Join(err, unlock())
		}
		return err
	}
	last := ""
	for _, dir := range slices.Compact(dirs) {
		if last != "" && under(dir, last) {
			continue
		}
		last = dir
		unlock, err := lock.Place(ctx, dir, j.wait)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		locked = append(locked, unlock)
	}
	return release, nil
}
