package awareness

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"oc/store/span"
)

// maxTail is how much of a conversation one scan reads (spec/awareness.md 2.3, release 2026.9.6). A line that is longer
// blocks the scan: nothing is skipped.
const maxTail = 1 << 20

// tail is what a conversation of Claude's command line holds behind an offset.
type tail struct {
	next  int64 // behind the last whole line
	turns int64 // of people, not of the session itself
	last  int64 // ms since 1970, of the latest of them

	blocked bool // what follows is a line of maxTail bytes or more
	shrunk  bool // the conversation ends before the offset
}

// claudeTail reads the whole lines behind an offset of the conversation at path. own are the latest texts that the
// adopted session itself sent there, normalised: they come back as echoes. The error is fs.ErrNotExist if the file
// is gone, or is no file any more.
func claudeTail(path string, offset int64, own []string) (t tail, err error) {
	t.next = offset
	if fi, err := os.Stat(path); err != nil {
		return t, err
	} else if !fi.Mode().IsRegular() {
		return t, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() <= offset {
		t.shrunk = err == nil && fi.Size() < offset
		return t, err
	}
	b := make([]byte, min(fi.Size()-offset, maxTail))
	n, err := f.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return t, err
	}
	b = b[:bytes.LastIndexByte(b[:n], '\n')+1]
	t.blocked = len(b) == 0 && n == maxTail
	t.next += int64(len(b))
	for line := range bytes.Lines(b) {
		text, at, ok := claudeTurn(line)
		if !ok || slices.Contains(own, normal(text)) {
			continue
		}
		if at == 0 {
			at = fi.ModTime().UnixMilli()
		}
		t.turns++
		t.last = max(t.last, at)
	}
	return t, nil
}

// claudeTurn is the text of a line that a person wrote, and its time, 0 if it has none. Tool results, summaries, side
// chains, messages of other sessions and what OpenClaw itself put at the start of a conversation are no such lines.
func claudeTurn(line []byte) (text string, at int64, ok bool) {
	line = bytes.TrimSpace(line)
	if span.KindOf(line) != span.Object || span.Valid(line) != nil {
		return "", 0, false
	}
	is := func(raw []byte, want string) bool { s, _ := span.Text(raw); return s == want }
	message := span.Member(line, "message")
	if !is(span.Member(line, "type"), "user") || !is(span.Member(message, "role"), "user") {
		return "", 0, false
	}
	for _, mark := range []string{"isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly"} {
		if string(span.Member(line, mark)) == "true" {
			return "", 0, false
		}
	}
	var texts []string
	switch content := span.Member(message, "content"); span.KindOf(content) {
	case span.String:
		s, _ := span.Text(content)
		texts = append(texts, s)
	case span.Array:
		_, err := span.Items(content, 0, func(item []byte) error {
			switch kind := span.Member(item, "type"); {
			case is(kind, "tool_result"):
				return errNoTurn
			case is(kind, "text"):
				if s, ok := span.Text(span.Member(item, "text")); ok {
					texts = append(texts, s)
				}
			}
			return nil
		})
		if err != nil {
			return "", 0, false
		}
	}
	for _, s := range texts {
		if strings.HasPrefix(s, "[Inter-session message]") || reseeds(s) {
			return "", 0, false
		}
	}
	if len(texts) == 0 {
		return "", 0, false
	}
	stamp, _ := span.Text(span.Member(line, "timestamp"))
	if when, err := time.Parse(time.RFC3339, stamp); err == nil {
		at = when.UnixMilli()
	}
	return texts[0], at, true
}

// What ends a look at the blocks of a message.
var (
	errNoTurn = errors.New("no turn")
	errFirst  = errors.New("the first is enough")
)

// reseeded begins the first message of a conversation that OpenClaw started over from its own transcript, which follows
// two lines further down.
const (
	reseeded   = "Continue this conversation using the OpenClaw transcript below"
	reseedPart = "<conversation_history>"
)

func reseeds(s string) bool {
	lines := strings.SplitN(s, "\n", 4)
	return len(lines) == 4 && strings.HasPrefix(s, reseeded) && lines[2] == "" && strings.HasPrefix(lines[3], reseedPart)
}

// normal is a text as echoes are compared: trimmed, white space as one blank.
func normal(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		switch {
		case r == 0x85: // JavaScript's \s does not have it
			return false
		case '\t' <= r && r <= '\r', r == ' ', r == 0xa0, r == 0x1680, 0x2000 <= r && r <= 0x200a,
			r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfeff:
			return true
		}
		return false
	}), " ")
}
