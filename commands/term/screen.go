package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	xterm "golang.org/x/term"
)

// A Screen is a terminal that a command has to itself, until Close gives it back as it was: nothing scrolls, keys come one by one and
// unseen, and what stood there before stands there again.
type Screen struct {
	Keys    <-chan Key      // closed when nobody types any more
	Resized <-chan struct{} // the terminal has another size

	out    *Out
	file   *os.File
	in     *os.File
	before *xterm.State
	stop   func()
	close  sync.Once
	err    error
}

// A Key is what was typed: a character, or the name of a key.
type Key string

// The keys that have names. CtrlC asks for the end, which a screen does not bring about by itself.
const (
	CtrlC    Key = "ctrl-c"
	Esc      Key = "esc"
	Enter    Key = "enter"
	Up       Key = "up"
	Down     Key = "down"
	Left     Key = "left"
	Right    Key = "right"
	PageUp   Key = "page-up"
	PageDown Key = "page-down"
)

// ErrNoScreen says that there is no terminal to draw on and to type at.
var ErrNoScreen = errors.New("it needs a terminal to draw on and to type at")

// Modes of a terminal, set and set back: another page, no cursor, lines that are cut where they are too long.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Screen takes the terminal over that o writes to and stdin reads from. The error is ErrNoScreen, or the terminal's.
func (o *Out) Screen(stdin io.Reader) (*Screen, error) {
	file, _ := o.screen.(*os.File)
	in, _ := stdin.(*os.File)
	if !o.terminal || file == nil || !IsTerminal(in) {
		return nil, ErrNoScreen
	}
	before, err := xterm.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	if err := o.Flush(); err != nil {
		xterm.Restore(int(in.Fd()), before) //nolint:errcheck // the other error is told
		return nil, err
	}
	resized, stop := resizes()
	keys := make(chan Key)
	s := &Screen{Keys: keys, Resized: resized, out: o, file: file, in: in, before: before, stop: stop}
	s.put(enterScreen)
	go typed(in, keys)
	return s, nil
}

// Size is how many columns and rows there are.
func (s *Screen) Size() (columns, rows int) {
	columns, rows, err := xterm.GetSize(int(s.file.Fd()))
	if err != nil || columns < 1 || rows < 1 {
		return defaultWidth, 24
	}
	return columns, rows
}

// Show draws a page: body from the top, as much of it as there is room for from the line first on, and foot at the bottom. Both write
// as to any terminal of that width. It gives back how many lines body has and how many of them are seen.
func (s *Screen) Show(first int, body, foot func(o *Out)) (lines, seen int, err error) {
	columns, rows := s.Size()
	top, bottom := s.lines(columns, body), s.lines(columns, foot)
	bottom = bottom[max(0, len(bottom)-rows):]
	room := rows - len(bottom)
	first = max(0, min(first, len(top)-room))
	lines, seen = len(top), min(room, len(top)-first)
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[H") // drawn at once, where a terminal knows how
	for i := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		switch {
		case i >= room:
			b.WriteString(bottom[i-room])
		case i < seen:
			b.WriteString(top[first+i])
		}
		b.WriteString("\x1b[K")
	}
	b.WriteString("\x1b[?2026l")
	s.put(b.String())
	return lines, seen, s.err
}

// lines is what write writes, line by line.
func (s *Screen) lines(columns int, write func(o *Out)) []string {
	if write == nil {
		return nil
	}
	var b bytes.Buffer
	o := &Out{w: &b, width: columns, terminal: true, colour: s.out.colour, ellipsis: s.out.ellipsis}
	write(o)
	o.Flush() //nolint:errcheck // a buffer takes all
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (s *Screen) put(text string) {
	if _, err := io.WriteString(s.file, text); err != nil && s.err == nil {
		s.err = err
	}
}

// Close gives the terminal back. It may be called more than once.
func (s *Screen) Close() error {
	s.close.Do(func() {
		s.stop()
		s.put(leaveScreen)
		s.err = errors.Join(s.err, xterm.Restore(int(s.in.Fd()), s.before))
	})
	return s.err
}

// typed reads keys until there are no more.
func typed(in io.Reader, keys chan<- Key) {
	defer close(keys)
	b := make([]byte, 256)
	for kept := 0; ; {
		n, err := in.Read(b[kept:])
		all, rest := keysOf(b[:kept+n])
		for _, k := range all {
			keys <- k
		}
		kept = copy(b, rest)
		if err != nil {
			return
		}
		if n == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// named are the sequences that keys with names send.
var named = map[string]Key{
	"\x1b[A": Up, "\x1b[B": Down, "\x1b[C": Right, "\x1b[D": Left, "\x1bOA": Up, "\x1bOB": Down, "\x1bOC": Right, "\x1bOD": Left,
	"\x1b[5~": PageUp, "\x1b[6~": PageDown,
}

// keysOf tells keys apart; rest is the beginning of a character of several bytes that has not come whole. An escape sequence comes
// whole: one that oc has no name for is no key, and an escape that nothing follows is that key.
func keysOf(b []byte) (keys []Key, rest []byte) {
	for len(b) > 0 {
		switch c := b[0]; {
		case c == 0x1b:
			n := sequence(b)
			if k, ok := named[string(b[:n])]; ok {
				keys = append(keys, k)
			} else if n == 1 {
				keys = append(keys, Esc)
			}
			b = b[n:]
			continue
		case c == 3:
			keys = append(keys, CtrlC)
		case c == '\r' || c == '\n':
			keys = append(keys, Enter)
		case c < ' ' || c == 0x7f:
		default:
			if !utf8.FullRune(b) {
				return keys, b
			}
			_, n := utf8.DecodeRune(b)
			keys = append(keys, Key(b[:n]))
			b = b[n:]
			continue
		}
		b = b[1:]
	}
	return keys, nil
}

// sequence is the length of the escape sequence that b begins with.
func sequence(b []byte) int {
	if len(b) < 2 || b[1] != '[' && b[1] != 'O' {
		return 1
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
	}
	return len(b)
}
