package sqlfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// readCopy reads a copy of the database and its log, made where only this user can look, or one that was made before
// of the very same files.
func readCopy(ctx context.Context, was files, path string, cost *Cost, f func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx := takeCopy(was)
	if tx == nil {
		var err error
		if tx, err = makeCopy(ctx, was, path, cost); err != nil && !errors.Is(err, ErrNoRoom) {
			return err
		}
		if err != nil {
			if !dropCopies() {
				return err
			}
			if tx, err = makeCopy(ctx, was, path, cost); err != nil {
				return err
			}
		}
	}
	tx.ctx, tx.path, tx.cost = ctx, path, *cost
	whole := false
	defer func() {
		if whole && !tx.dead && tx.nameless {
			keepCopy(was, tx)
			return
		}
		tx.close()
	}()
	err := f(tx)
	whole = true // f did not panic
	return err
}

// makeCopy copies the files and opens the copy, which then loses its name.
func makeCopy(ctx context.Context, was files, path string, cost *Cost) (*Tx, error) {
	r, err := makeRoom(was.path)
	if err != nil {
		return nil, noRoom(path, was, err)
	}
	defer r.clear()
	to := filepath.Join(r.dir, copyName)
	if err := copyFiles(ctx, was, to, path, cost); err != nil {
		return nil, err
	}
	tx, err := begin(ctx, uri(to, "mode=rw", copyPragmas), path, PrivateCopy, cost, "BEGIN")
	if err != nil {
		return nil, err
	}
	tx.nameless = r.clear() == nil
	return tx, nil
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
	suffixes := []string{""}
	switch {
	case was.hot:
		suffixes = append(suffixes, "-journal")
	case was.wal.size > 0:
		suffixes = append(suffixes, "-wal")
	}
	var drafts []*draft
	defer func() {
		for _, d := range drafts {
			d.Close()
		}
	}()
	for _, suffix := range suffixes {
		d, err := newDraft(to + suffix)
		if err != nil {
			return noRoom(path, was, err)
		}
		drafts = append(drafts, d)
		n, readErr, writeErr := fill(ctx, d.File, was.path+suffix)
		cost.Copied += n
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case writeErr != nil:
			return noRoom(path, was, writeErr)
		case readErr != nil && was.same() != nil:
			return errMoved
		case readErr != nil:
			return &Error{Path: path, Doing: "copy", Err: readErr, Detail: "a private copy is needed to read it: " + readErr.Error()}
		}
	}
	if err := was.same(); err != nil {
		return err
	}
	for _, d := range drafts {
		if err := d.name(); err != nil {
			return noRoom(path, was, err)
		}
	}
	return nil
}

// fill copies a file. Which side of it failed makes a difference: one is the database, the other the place of the copy.
func fill(ctx context.Context, dst *os.File, from string) (n int64, readErr, writeErr error) {
	src, err := os.Open(from)
	if err != nil {
		return 0, err, nil
	}
	defer src.Close()
	const chunk = 16 << 20 // between looks at the context; the kernel copies by itself
	for ctx.Err() == nil {
		m, err := io.CopyN(dst, src, chunk)
		n += m
		var at *os.PathError
		switch {
		case err == io.EOF:
			return n, nil, nil
		case errors.As(err, &at) && at.Path == from:
			return n, err, nil
		case err != nil:
			return n, nil, err
		}
	}
	return n, nil, nil
}
