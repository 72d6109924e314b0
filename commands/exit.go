package commands

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"oc/awareness"
	"oc/commands/term"
	"oc/store/sqlfile"
)

// Exit statuses of oc.
const (
	ExitDone        = 0
	ExitFailed      = 1   // unreadable, damaged when reading, I/O; also a partial answer
	ExitUsage       = 2   // the command line is wrong
	ExitFindings    = 3   // warnings or errors remain
	ExitLimit       = 4   // done, but a limit cannot be met
	ExitBusy        = 5   // locked, or a gateway that does not answer
	ExitRefused     = 6   // not safe to change
	ExitNothing     = 7   // nothing happened in time
	ExitInterrupted = 130 // a signal came
)

// exits is what help and manual pages say about each status, and the word that a JSON error has for it.
var exits = []struct {
	status      int
	code, means string
}{
	{ExitDone, "done", "done, nothing to report"},
	{ExitFailed, "failed", "failed: unreadable, damaged, or an I/O error; also an answer that is only partial"},
	{ExitUsage, "usage", "the command line is wrong"},
	{ExitFindings, "findings", "warnings or errors remain (notes do not count)"},
	{ExitLimit, "limit", "done, but a limit cannot be met: what is over it is protected"},
	{ExitBusy, "busy", "busy: locked, or the gateway does not answer; try again"},
	{ExitRefused, "refused", "refused: changing it would not be safe"},
	{ExitNothing, "nothing", "nothing happened in time"},
	{ExitInterrupted, "interrupted", "interrupted: the step at hand was finished"},
}

// Error is a failure with the exit status it means. Err says what, where, why and what to do, in one line; without Err the status
// alone is handed on and nothing is printed (the command has said it all).
type Error struct {
	Exit    int    // 0 counts as ExitFailed
	Code    string // stable word in the JSON error; empty: the one of the status
	Details any    // further facts for the JSON error, marshalled under "details"
	Err     error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Exit)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Failf, Usagef, Busyf and Refusef are errors of their exit status; the format may wrap a cause with %w.
func Failf(format string, args ...any) error { return errorf(ExitFailed, format, args) }

// Usagef is an error in the command line: exit 2. It names the flag and what it takes.
func Usagef(format string, args ...any) error { return errorf(ExitUsage, format, args) }

// Busyf says that somebody else is at work: exit 5.
func Busyf(format string, args ...any) error { return errorf(ExitBusy, format, args) }

// Refusef says that a change would not be safe: exit 6.
func Refusef(format string, args ...any) error { return errorf(ExitRefused, format, args) }

// Status ends a command with an exit status and nothing more to say: findings (3), a limit that cannot be met (4), a partial answer.
func Status(exit int) error { return &Error{Exit: exit} }

func errorf(exit int, format string, args []any) error {
	return &Error{Exit: exit, Err: fmt.Errorf(format, args...)}
}

// usage is [Usagef] for what was typed, which may be of any length: each word is cut to what a reader can take in.
func usage(format string, args ...any) error {
	for i, a := range args {
		if word, ok := a.(string); ok {
			args[i] = brief(word)
		}
	}
	return errorf(ExitUsage, format, args)
}

// brief is a word that was typed as a message repeats it.
func brief(word string) string { return term.CutMiddle(word, 200, "...") }

// classify is the one place that turns an error into an exit status and the word that JSON has for it. An Error says it itself;
// sentinels of the engines are listed here.
func classify(err error) (exit int, code string) {
	var e *Error
	switch {
	case err == nil:
		exit = ExitDone
	case errors.As(err, &e):
		exit, code = e.Exit, e.Code
		if exit == ExitDone {
			exit = ExitFailed
		}
	case errors.Is(err, syscall.EPIPE): // the reader has seen enough
		exit = ExitDone
	case errors.Is(err, context.Canceled):
		exit = ExitInterrupted
	case errors.Is(err, sqlfile.ErrBusy):
		exit = ExitBusy
	case errors.Is(err, awareness.ErrPlace), errors.Is(err, awareness.ErrMade), errors.Is(err, awareness.ErrNewer), errors.Is(err, awareness.ErrQuarantined):
		exit = ExitRefused
	default:
		exit = ExitFailed
	}
	if code == "" {
		for _, x := range exits {
			if x.status == exit {
				code = x.code
			}
		}
	}
	return exit, code
}
