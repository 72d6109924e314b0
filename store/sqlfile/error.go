package sqlfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// What can be wrong with a file, for errors.Is.
var (
	ErrBusy        = errors.New("database is busy")
	ErrCorrupt     = errors.New("database is damaged")
	ErrNotDatabase = errors.New("not an SQLite database")
	ErrNoRoom      = errors.New("no room for a private copy")
	ErrOther       = errors.New("database is not as it was")
)

// Within the room: try again, try again later, try another way.
var (
	errMoved    = errors.New("changed while it was read")
	errLocked   = errors.New("locked")
	errUnusable = errors.New("shared memory cannot be used")
)

// Error says what could not be done with which file, and why.
type Error struct {
	Path   string // the database, or the file beside it that is at fault
	Doing  string // "read", "write", "copy"
	Kind   error  // ErrBusy, ErrCorrupt, ErrNotDatabase, ErrNoRoom, or nil
	Detail string // the reason in words, for a person
	Err    error  // the cause, if there is one: an fs.PathError or the driver's error
}

func (e *Error) Error() string {
	s := e.Doing + " " + e.Path + ": "
	switch {
	case e.Kind != nil && e.Detail != "":
		return s + e.Kind.Error() + ": " + e.Detail
	case e.Kind != nil:
		return s + e.Kind.Error()
	}
	return s + e.Detail
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// wrap names the file in an error of the system's or the driver's.
func wrap(path, doing string, err error) error {
	var ours *Error
	if err == nil || errors.As(err, &ours) || errors.Is(err, errMoved) || errors.Is(err, errLocked) || errors.Is(err, errUnusable) {
		return err
	}
	e := &Error{Path: path, Doing: doing, Err: err, Detail: err.Error()}
	var code interface{ Code() int }
	var pathErr *fs.PathError
	var beside *sideError
	if errors.As(err, &beside) {
		e.Path += beside.suffix
	}
	switch {
	case errors.As(err, &code):
		rc := code.Code()
		switch rc & 0xff {
		case lib.SQLITE_NOTADB:
			e.Kind, e.Detail = ErrNotDatabase, "it does not begin as one, or it is encrypted"
		case lib.SQLITE_CORRUPT:
			e.Kind, e.Detail = ErrCorrupt, corruption(err)
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
			return errLocked
		case lib.SQLITE_CANTOPEN:
			// The engine says only that it cannot; the system says why.
			if why := denied(path); errors.As(why, &pathErr) {
				e.Err, e.Detail = why, pathErr.Err.Error()
			} else if doing == "write" && unwritable(path) {
				e.Err = &fs.PathError{Op: doing, Path: e.Path, Err: fs.ErrPermission}
				e.Detail = "it, or the directory that it is in, cannot be written to by this user"
			}
		case lib.SQLITE_READONLY:
			e.Err = &fs.PathError{Op: doing, Path: e.Path, Err: fs.ErrPermission}
			e.Detail = "it, or the directory that it is in, cannot be written to by this user"
		case lib.SQLITE_FULL:
			e.Detail = "there is no room left on the disk"
		case lib.SQLITE_IOERR:
			switch rc {
			case lib.SQLITE_IOERR_SHORT_READ:
				e.Kind, e.Detail = ErrCorrupt, "it is cut short"
			case lib.SQLITE_IOERR_SHMSIZE:
				e.Detail = "there is no room left on the disk for its shared memory"
			}
		}
	case errors.As(err, &pathErr):
		e.Detail = pathErr.Err.Error()
	}
	return e
}

// canceled is the context's error if that is what err comes from: the engine has its own word for being interrupted.
func canceled(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case code(err)&0xff == lib.SQLITE_INTERRUPT:
		return ctx.Err()
	}
	return nil
}

func corruption(err error) string {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Error()
	}
	return err.Error()
}

// code is the driver's extended result code, 0 if err is not the driver's.
func code(err error) int {
	var c interface{ Code() int }
	if errors.As(err, &c) {
		return c.Code()
	}
	return 0
}

// guard turns a panic of the driver, which damaged files may provoke, into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{r}
		}
	}()
	return f()
}

type panicked struct{ r any }

var errDead = &panicked{"it was stopped before"}

func (p *panicked) Error() string { return fmt.Sprintf("the database engine stopped: %v", p.r) }
func (p *panicked) Code() int     { return lib.SQLITE_CORRUPT }

// faultsPanic makes a fault in mapped memory (a -shm cut by somebody else) a panic that guard can catch.
func faultsPanic() (restore func()) {
	old := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(old) }
}
