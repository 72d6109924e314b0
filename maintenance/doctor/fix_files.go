package doctor

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"oc/config"
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

// temp removes what is left of a write that did not end.
func (r *repair) temp(f Finding) error { return r.remove(f, strings.Join(f.Evidence, "; ")) }

// mode takes away what others may do: with a directory, and with the
// configuration.
func (r *repair) mode(f Finding) error {
	info, err := os.Stat(f.File)
	if err != nil {
		return err
	}
	if r.s == nil && !r.inState(f.File) {
		return errors.New("it lies outside of the state directory")
	}
	r.m.Chmod(f.File, info, info.Mode().Perm()&^0o077, maintenance.Rule(f.Code), strings.Join(f.Evidence, "; "))
	return nil
}

// inState tells whether a path is the state directory or lies in it.
func (r *repair) inState(path string) bool {
	state, real := resolve(r.x.Config.StateDir), resolve(path)
	return real == state || below(real, state)
}

// retire takes a key out of the configuration that OpenClaw's own doctor takes
// out too (spec/maintenance.md 4.4); all else in the file keeps its bytes.
func (r *repair) retire(f Finding) error {
	path := resolve(f.File)
	if !r.inState(path) {
		return errors.New("the file lies outside of the state directory")
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if r.configs == nil {
		r.configs = map[string]*configEdit{}
	}
	e := r.configs[path]
	if e == nil {
		e = &configEdit{path: path, info: info}
		if e.text, err = os.ReadFile(path); err != nil {
			return err
		}
		r.configs[path] = e
	}
	text, key, found, err := config.Without(e.text, retired)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("the key is not in the file any more")
	}
	e.text, e.keys = text, append(e.keys, key)
	return nil
}

// A configEdit is what becomes of a file of the configuration.
type configEdit struct {
	path string
	info os.FileInfo
	text []byte
	keys []string
}

// settle puts the edits of the configuration into the plan.
func (r *repair) settle() {
	for _, path := range slices.Sorted(maps.Keys(r.configs)) {
		e := r.configs[path]
		text := e.text
		r.m.Replace(path, e.info, func(w io.Writer) error { _, err := w.Write(text); return err }, maintenance.Rule(ConfigRetiredKey),
			"OpenClaw has given up "+strings.Join(e.keys, " and ")+"; all else in the file stays as it is")
	}
}
