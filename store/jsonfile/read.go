// Package jsonfile reads the session store of the file era: sessions.json and
// the transcripts, archives and sidecars beside it (spec/file-store.md 2 and
// 4, OpenClaw 2026.7.35). It never writes.
package jsonfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"oc/store/row"
	"oc/store/span"
)

// A File is a store that was read whole. Its entries are spans of Text.
type File struct {
	Path    string
	Text    []byte
	ModTime time.Time
	Entries []row.Entry // in the order of their properties, those that OpenClaw keeps
	Skipped []row.Skipped
}

// Read reads the store at path and checks every byte of it. A store that is
// not there is an error that wraps fs.ErrNotExist; one that holds no JSON
// object is a *row.Damage. A file that changes under the reader is read again.
func Read(path string) (*File, error) {
	for try := 1; ; try++ {
		text, before, err := load(path)
		if err != nil {
			return nil, err
		}
		f := &File{Path: path, Text: text, ModTime: before.ModTime()}
		if err = f.parse(); err == nil {
			return f, nil
		}
		// OpenClaw replaces a store at once, but falls back to copying where it
		// cannot: one that was just written may be whole in a moment.
		after, statErr := os.Stat(path)
		same := statErr == nil && os.SameFile(before, after) && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime())
		if try == 6 || same && time.Since(before.ModTime()).Abs() > time.Second {
			return nil, err
		}
		time.Sleep(time.Duration(try) * 10 * time.Millisecond)
	}
}

// load reads a regular file whole. Anything else is refused without being
// opened for reading: a pipe would never end.
func load(path string) ([]byte, fs.FileInfo, error) {
	odd := func(info fs.FileInfo) error {
		return &row.Damage{Path: path, Reason: "it is " + KindOf(info.Mode()) + ", not a file"}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, nil, odd(info) // it is not even opened
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("read the session store: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the session store: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, odd(info)
	}
	text, err := readAll(f, info.Size())
	if err != nil {
		return nil, nil, fmt.Errorf("read the session store: %w", err)
	}
	return text, info, nil
}

// KindOf names what is no file for a sentence: "a directory"; "" for a file.
func KindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return ""
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else than a file"
}

func (f *File) parse() error {
	if len(f.Text) == 0 {
		return &row.Damage{Path: f.Path, Reason: "it is empty"}
	}
	entries, end, err := index(f.Text, pieces(len(f.Text)))
	if err != nil {
		return f.damage(err)
	}
	if err := span.End(f.Text, end); err != nil {
		return f.damage(err)
	}
	f.Entries = span.Ordered(entries, func(e *row.Entry) string { return e.Key })
	kept := f.Entries[:0]
	for i := range f.Entries {
		e := f.Entries[i]
		if why := e.Check(); why != "" {
			f.Skipped = append(f.Skipped, row.Skipped{Key: e.Key, Reason: why})
			continue
		}
		kept = append(kept, e)
	}
	clear(f.Entries[len(kept):])
	f.Entries = kept
	return nil
}

func (f *File) damage(err error) error {
	d := &row.Damage{Path: f.Path, Size: int64(len(f.Text)), Reason: err.Error()}
	var syntax *span.SyntaxError
	if errors.As(err, &syntax) {
		d.Offset, d.Reason = int64(syntax.Offset), syntax.Reason
		if len(f.Text) >= 3 && string(f.Text[:3]) == "\xef\xbb\xbf" && syntax.Offset == 0 {
			d.Reason = "it starts with a byte order mark, which OpenClaw cannot read"
		}
	}
	return d
}
