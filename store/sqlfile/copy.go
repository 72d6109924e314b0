package sqlfile

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// readCopy reads a copy of the database and its log, made where only this user can look. The copy loses its name as
// soon as SQLite has it open, so that not even a kill leaves it behind.
func readCopy(ctx context.Context, was files, path string, cost *Cost, f func(*Tx) error) (err error) {
	dir, err := os.MkdirTemp("", "oc-read-")
	if err != nil {
		return &Error{
			Path: path, Doing: "copy", Err: err,
			Detail: "its log can only be read from a private copy, for which there is no temporary directory: " + err.Error(),
		}
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "copy.sqlite")
	if err := copyFiles(ctx, was, to, path, cost); err != nil {
		return err
	}
	tx, err := begin(ctx, uri(to, "mode=rw", copyPragmas), path, PrivateCopy, cost, "BEGIN")
	if err != nil {
		return err
	}
	defer tx.close()
	os.RemoveAll(dir)
	return f(tx)
}

func copyFiles(ctx context.Context, was files, to, path string, cost *Cost) error {
	p, err := enter(ctx, was.main.id, lockless)
	if err != nil {
		return err
	}
	defer p.leave()
	if err := was.settle(ctx); err != nil {
		return err
	}
	suffixes := []string{"", "-wal"}
	if was.hot {
		suffixes = []string{"", "-journal"}
	}
	for _, suffix := range suffixes {
		n, err := copyFile(ctx, was.path+suffix, to+suffix)
		cost.Copied += n
		if err != nil {
			if was.same() != nil {
				return errMoved
			}
			return &Error{Path: path, Doing: "copy", Err: err, Detail: "its log can only be read from a private copy: " + err.Error()}
		}
	}
	return was.same()
}

func copyFile(ctx context.Context, from, to string) (n int64, err error) {
	src, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := dst.Close(); err == nil {
			err = e
		}
	}()
	const chunk = 16 << 20 // between looks at the context; the kernel copies by itself
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		m, err := io.CopyN(dst, src, chunk)
		n += m
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
