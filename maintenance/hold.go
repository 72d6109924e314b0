package maintenance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oc/store/lock"
)

// hold takes the locks of the transcripts that a plan replaces, so that nobody
// writes to them meanwhile, and gives them back. One that somebody holds is a
// lock.ErrHeld; one that a dead process has left is not touched, because the
// undo would not bring it back. The times of directories stay.
func (w *Worker) hold(p *Plan) (release func() error, err error) {
	var hands []*lock.Hand
	release = func() (err error) {
		for _, h := range hands {
			err = errors.Join(err, keepsTime(filepath.Dir(h.Path()), h.Release))
		}
		return err
	}
	for _, path := range p.transcriptsReplaced() {
		err := keepsTime(filepath.Dir(path), func() error {
			if r := lock.Look(path+lock.Suffix, w.Machine, w.Now()); r.Removable() {
				return fmt.Errorf("%s is left of a process that is gone; oc doctor --fix %s first", r.Path, "lock-dead")
			}
			h, err := lock.Hold(path, w.Machine, w.Now())
			if err == nil {
				hands = append(hands, h)
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(err, release())
		}
	}
	return release, nil
}

// keepsTime lets act change names in a directory that keeps its time.
func keepsTime(dir string, act func() error) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	err = act()
	return errors.Join(err, os.Chtimes(dir, info.ModTime(), info.ModTime()))
}
