package maintenance

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"oc/store/jsonfile"
	"oc/store/span"
)

// smallTranscript is the size in bytes up to which a transcript may turn out
// to hold no message (spec/maintenance.md 2.5).
const smallTranscript = 4096

// content tells what is in a transcript of the given size. One that is large,
// damaged or cannot be read holds messages: it is never taken for empty.
func content(path string, size int64) Content {
	if size > smallTranscript {
		return Messages
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return Messages
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) > smallTranscript {
		return Messages
	}
	for _, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if span.Trim(string(line)) == "" {
			continue
		}
		if span.Valid(line) != nil || isMessage(line) {
			return Messages
		}
	}
	return Empty
}

// isMessage tells whether a row of a transcript is a message.
func isMessage(line []byte) bool {
	if kind := span.Member(line, "type"); kind != nil {
		text, _ := span.Text(kind)
		return text == "message"
	}
	return isRole(span.Path(line, "message", "role")) || isRole(span.Member(line, "role"))
}

func isRole(raw []byte) bool {
	switch text, _ := span.Text(raw); text {
	case "user", "assistant", "tool", "toolResult", "system":
		return true
	}
	return false
}

// pointer looks whether the row's pointer names a trajectory outside of the
// directory that is provably its own: by its name and by what its first line
// says (spec/maintenance.md 2.8). Whatever else a pointer names is left alone,
// above all files beside the store.
func (s *Snapshot) pointer(n *namer, r *Row) {
	for _, i := range r.side {
		f := &s.Files[i]
		if !strings.HasSuffix(f.Base, ".trajectory-path.json") || f.Size > 1<<16 {
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err != nil || span.Valid(text) != nil {
			continue
		}
		said := func(name string) string { t, _ := span.Text(span.Member(text, name)); return t }
		version, _ := span.Float(span.Member(text, "schemaVersion"))
		path := filepath.Clean(said("runtimeFile"))
		if said("traceSchema") != "openclaw-trajectory-pointer" || version != 1 || said("sessionId") != r.ID || !filepath.IsAbs(path) {
			continue
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || n.inside(n.here(resolved)) || filepath.Base(resolved) != jsonfile.TrajectoryName(r.ID) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !beginsTrajectory(path, r.ID) {
			continue
		}
		if i, ok := n.add(path); ok {
			r.runtime = i
		}
	}
}

// beginsTrajectory tells whether the first line of a file with something on it
// is that of the session's trajectory.
func beginsTrajectory(path, id string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<16))
	lines.Buffer(nil, 1<<16+1)
	for lines.Scan() {
		line := []byte(span.Trim(lines.Text()))
		if len(line) == 0 {
			continue
		}
		if span.Valid(line) != nil {
			return false
		}
		said := func(name string) string { t, _ := span.Text(span.Member(line, name)); return t }
		version, _ := span.Float(span.Member(line, "schemaVersion"))
		return said("traceSchema") == "openclaw-trajectory" && version == 1 && said("source") == "runtime" && said("sessionId") == id
	}
	return false
}
