package sqlfile

import "os"

// draft is a file that gets its name when it is whole, where the system can do that: a process that is killed before
// leaves nothing of it.
type draft struct {
	*os.File
	path  string
	named bool
}

func newDraft(path string) (*draft, error) {
	if f := openNameless(path); f != nil {
		return &draft{File: f, path: path}, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &draft{f, path, true}, nil
}

func (d *draft) name() error {
	if d.named {
		return nil
	}
	return link(d.File, d.path)
}
