// Package term is the one place of oc that knows terminals: how wide they are, whether they show colour, how to show data on them
// safely, and how tables, sizes, ages and progress look. Strings that come from data are escaped on the way out by everything here:
// Printf, Paint, tables and facts; only Write puts bytes out as they are.
package term

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	xterm "golang.org/x/term"
)

// Out is an output stream: standard output or standard error. It gathers what is written and hands it on in large pieces, when Flush
// is called or 64 KiB have come together. The first failure is kept; what is written after it is dropped, and Write gives it back, so
// that a stream can stop. Its methods may be called from several goroutines.
type Out struct {
	Wide bool // tables may be wider than the terminal

	w        io.Writer
	screen   any // what width and colour were found at
	width    int
	terminal bool
	colour   bool
	ellipsis string
	prompt   bool // hand on every write at once

	mu       sync.Mutex
	buf      []byte
	sent     int64 // bytes handed on
	err      error
	progress *Progress
}

// Options is what an Out has to know about its surroundings.
type Options struct {
	Env     func(name string) string // COLUMNS, NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG
	NoColor bool
	Prompt  bool // every write goes out at once, as standard error wants it
}

const (
	defaultWidth = 80
	piece        = 64 << 10
)

// New is an Out over w. Width, colour and terminal are found here, once, by looking at screen: most often w itself, or what it wraps.
func New(w io.Writer, screen any, o Options) *Out {
	env := o.Env
	if env == nil {
		env = func(string) string { return "" }
	}
	out := &Out{w: w, screen: screen, width: defaultWidth, terminal: IsTerminal(screen), ellipsis: "...", prompt: o.Prompt}
	if file, ok := screen.(*os.File); ok && out.terminal {
		if columns, _, err := xterm.GetSize(int(file.Fd())); err == nil && columns > 0 {
			out.width = columns
		}
	}
	if columns, err := strconv.Atoi(strings.TrimSpace(env("COLUMNS"))); err == nil && columns > 0 {
		out.width = columns
	}
	kind := env("TERM")
	out.colour = out.terminal && !o.NoColor && env("NO_COLOR") == "" && kind != "" && kind != "dumb"
	if speaksUTF8(env) {
		out.ellipsis = "…"
	}
	return out
}

// speaksUTF8 reads the locale as POSIX orders it.
func speaksUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// IsTerminal says whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && file != nil && xterm.IsTerminal(int(file.Fd()))
}

// Width is the number of columns: COLUMNS, else what the terminal says, else 80.
func (o *Out) Width() int { return o.width }

// Terminal says whether a person sees this.
func (o *Out) Terminal() bool { return o.terminal }

// Color says whether colours are shown: on a terminal only, and not under NO_COLOR, --no-color or TERM=dumb.
func (o *Out) Color() bool { return o.colour }

// Write puts bytes out as they are.
func (o *Out) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.progress != nil {
		o.progress.wipe()
	}
	if o.err != nil {
		return 0, o.err
	}
	o.buf = append(o.buf, b...)
	if o.prompt || len(o.buf) >= piece {
		o.flush()
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(b), nil
}

// Printf writes a formatted line or part of one. Strings and errors among args are escaped; Styled ones are shown as they are.
func (o *Out) Printf(format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			safe[i] = Escape(v)
		case Styled:
			safe[i] = string(v)
		case error:
			safe[i] = Escape(v.Error())
		case fmt.Stringer:
			safe[i] = Escape(v.String())
		default:
			safe[i] = arg
		}
	}
	fmt.Fprintf(o, format, safe...) //nolint:errcheck // kept in o.err
}

// Flush hands on what was gathered. It gives back the first failure that there was, at any time.
func (o *Out) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return o.err
}

func (o *Out) flush() {
	if o.err != nil || len(o.buf) == 0 {
		return
	}
	n, err := o.w.Write(o.buf)
	o.sent += int64(n)
	if err == nil && n < len(o.buf) {
		err = io.ErrShortWrite
	}
	o.err, o.buf = err, o.buf[:0]
}

// Discard drops what was written, if none of it has been handed on yet, and says whether the stream is as new.
func (o *Out) Discard() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent > 0 || o.err != nil {
		return false
	}
	o.buf = o.buf[:0]
	return true
}

// Empty says whether nothing was written so far.
func (o *Out) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent == 0 && len(o.buf) == 0 && o.err == nil
}
