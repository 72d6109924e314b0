package commands

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// An output is a file that a command makes because a flag names it.
type output struct {
	flag      string // "--output"
	path      string // absolute; "" for standard output
	mode      fs.FileMode
	overwrite bool   // a plain file that is there is replaced
	instead   string // what to do where it must not be: "give another name, or --overwrite to replace it"
}

// output is the file that a flag names; without it, or with -, it is standard output.
func (c *Call) output(name string) (o output, err error) {
	o = output{flag: "--" + name, path: c.String(name), mode: 0o600}
	switch {
	case o.path == "-":
		o.path = ""
	case c.Given(name) && strings.TrimSpace(o.path) == "":
		return o, Usagef("%s takes the path of a file, or - for standard output", o.flag)
	case o.path != "" && !filepath.IsAbs(o.path):
		o.path = filepath.Join(c.Dir, o.path)
	}
	return o, nil
}

// place refuses what OpenClaw would take for its own, below the folders own, and what is there. What a file of OpenClaw's may be taken
// for is said in as, "a transcript".
func (o *output) place(as string, own ...string) error {
	if o.path == "" {
		return nil
	}
	dir := filepath.Dir(o.path)
	if info, err := os.Stat(dir); err != nil {
		return Failf("%s: the folder %s cannot be written: %w", o.flag, dir, err)
	} else if !info.IsDir() {
		return Failf("%s: %s is no folder", o.flag, dir)
	}
	for _, place := range own {
		if within(dir, place) {
			return Refusef("%s: %s is in the state of OpenClaw, %s, where it may be taken for %s; write it elsewhere", o.flag, o.path, place, as)
		}
	}
	switch info, err := os.Lstat(o.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Failf("%s: %w", o.flag, err)
	case !info.Mode().IsRegular():
		return Refusef("%s: %s is there and no plain file; it was left alone", o.flag, o.path)
	case !o.overwrite:
		return Refusef("%s: %s is there already; %s", o.flag, o.path, o.instead)
	}
	return nil
}

// within tells whether a folder is another one or lies in it, whatever links lead there.
func within(dir, place string) bool {
	real := func(path string) string {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return r
		}
		return filepath.Clean(path)
	}
	rel, err := filepath.Rel(real(place), real(dir))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// write makes the file beside its place and moves it there when it is whole. It gives back the number of bytes.
func (o *output) write(make func(io.Writer) error) (n int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*") // 0600
	if err != nil {
		return 0, Failf("write %s: %w", o.path, err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // moved, mostly
	defer f.Close()           //nolint:errcheck // closed below, mostly
	buffered := bufio.NewWriterSize(f, 256<<10)
	w := &counting{w: buffered}
	if err := make(w); err != nil {
		return w.n, err
	}
	if err := errors.Join(buffered.Flush(), f.Chmod(o.mode), f.Sync(), f.Close()); err != nil {
		return w.n, Failf("write %s: %w", o.path, err)
	}
	if o.overwrite {
		err = os.Rename(f.Name(), o.path)
	} else if err = os.Link(f.Name(), o.path); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Lstat(o.path); errors.Is(there, fs.ErrNotExist) { // a file system without links
			err = os.Rename(f.Name(), o.path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return w.n, Refusef("%s: %s was made by somebody else meanwhile; it was left alone", o.flag, o.path)
	case err != nil:
		return w.n, Failf("write %s: %w", o.path, err)
	}
	return w.n, nil
}

// counting counts what is written.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
