package transcript

import (
	"strings"

	"oc/store/span"
	"oc/transcript/visible"
)

func blank(b []byte) bool { return visible.Trim(string(b)) == "" }

// Role is the role of a raw message, "" if it has none.
func Role(message []byte) string {
	s, _ := span.Text(span.Member(message, "role"))
	return s
}

// Text is what a raw message says in a title or a preview: its content if that
// is a string, else the first block of text that says something, without reply
// directives and the white space around. "" if there is none.
func Text(message []byte) string {
	return contentText(span.Member(message, "content"))
}

func contentText(content []byte) (said string) {
	switch span.KindOf(content) {
	case span.String:
		s, _ := span.Text(content)
		return visible.Trim(visible.Undirect(s))
	case span.Array:
		_, _ = span.Items(content, 0, func(block []byte) error {
			if said != "" || span.KindOf(block) != span.Object {
				return nil
			}
			switch kind, _ := span.Text(span.Member(block, "type")); kind {
			case "text", "output_text", "input_text":
				s, _ := span.Text(span.Member(block, "text"))
				said = visible.Trim(visible.Undirect(s))
			}
			return nil
		})
	}
	return said
}

// forwarded tells whether a user message came from another session.
func forwarded(message []byte) bool {
	kind, _ := span.Text(span.Path(message, "provenance", "kind"))
	return kind == "inter_session"
}

// collapse makes every run of white space one blank.
func collapse(s string) string {
	return strings.Join(visible.Fields(s), " ")
}

// member is the raw value of the first member of that name, found without a
// look at those behind it.
func member(obj []byte, name string) (found []byte) {
	if span.KindOf(obj) != span.Object {
		return nil
	}
	_, _ = span.Each(obj, 0, func(key, val []byte) error {
		if span.Is(key, name) {
			found = val
			return ErrStop
		}
		return nil
	})
	return found
}
