package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// open opens the transcript, which was listed a moment ago. One that has got another name since, because its session was reset, deleted or restored
// meanwhile, is looked for beside its old place: a message is not missed because of when one looked.
func (v *Volume) open() (*os.File, error) {
	f, err := os.Open(v.Path)
	for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ { // it may come back
		now := movedTo(v.Path, v.Bytes)
		if now == "" {
			break
		}
		if f, again := os.Open(now); again == nil {
			return f, nil
		}
	}
	return f, err
}

// movedTo is the name that a transcript, or the archive of one, has now: that of the session it is of, or its newest archive. "" where there is
// none of that many bytes at least. Packed archives are not meant, which hold the messages of a database.
func movedTo(path string, bytes int64) (name string) {
	dir, base := filepath.Split(path)
	at := strings.Index(base, ".jsonl")
	if at < 0 {
		return ""
	}
	live := base[:at+len(".jsonl")]
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries { // by name, and so by time
		rest, ok := strings.CutPrefix(e.Name(), live)
		kind, _, dotted := strings.Cut(strings.TrimPrefix(rest, "."), ".")
		switch {
		case !ok || !e.Type().IsRegular() || e.Name() == base:
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() < bytes {
			continue
		}
		switch {
		case rest == "":
			return filepath.Join(dir, live)
		case dotted && (kind == "deleted" || kind == "reset" || kind == "bak") && !strings.HasSuffix(rest, ".zst"):
			name = filepath.Join(dir, e.Name())
		}
	}
	return name
}
