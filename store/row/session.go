package row

import (
	"strings"

	"oc/store/lazy"
	"oc/store/span"
)

var checkpoint = lazy.Regexp(`(?i)^.+\.checkpoint\.[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.jsonl$`)

// IsCheckpointName tells whether a file name is that of a compaction
// checkpoint (spec/file-store.md 4.5).
func IsCheckpointName(name string) bool {
	return strings.Contains(strings.ToLower(name), ".checkpoint.") && checkpoint().MatchString(name)
}

// IsTranscriptID tells whether a trimmed session id can name a transcript
// file (spec/file-store.md 4.1).
func IsTranscriptID(id string) bool {
	return len(id) <= 128 && named(id, "._-") && !(strings.Contains(id, ".") && IsCheckpointName(id+".jsonl"))
}

// UnsafeID is what Check says of a session id that would lead a file name astray.
const UnsafeID = "the session id is not safe as a file name"

// Check says why OpenClaw drops the row when it loads the store; "" where it
// keeps it (spec/file-store.md 2.3, step 3).
func (e *Entry) Check() string {
	if span.KindOf(e.Val) != span.Object {
		return "the row is no object"
	}
	raw := e.Raw(SessionID)
	if raw == nil {
		return ""
	}
	id, ok := span.Text(raw)
	if !ok {
		return "the session id is no text"
	}
	if !isSafeID(span.Trim(id)) {
		return UnsafeID
	}
	return ""
}

func isSafeID(id string) bool { return len(id) <= 255 && named(id, "._:@-") }

// named tells whether s is letters and digits, with the given marks behind the
// first of them.
func named(s, marks string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte(marks, c) < 0) {
			return false
		}
	}
	return s != ""
}

// ID is the session id after loading: trimmed, and "" where the row has none
// or one that can name no transcript while no file is named either.
func (e *Entry) ID() string {
	id, ok := e.Text(SessionID)
	if !ok {
		return ""
	}
	if id = span.Trim(id); !isSafeID(id) {
		return ""
	}
	if IsTranscriptID(id) {
		return id
	}
	if file, ok := e.Text(SessionFile); ok && span.Trim(file) != "" {
		return id
	}
	return ""
}

// ModelRef is the model that the row last ran, after loading: both trimmed, a
// blank model (or one that is no text) without its provider
// (spec/file-store.md 2.3, step 4).
func (e *Entry) ModelRef() (model, provider string) {
	model, _ = e.Text(Model)
	if model = span.Trim(model); model == "" {
		return "", ""
	}
	provider, _ = e.Text(ModelProvider)
	return model, span.Trim(provider)
}
