package awareness

import "oc/store/span"

// Own is the text that an adopted session sent to the conversation it came from, by the raw message of its transcript,
// with every white space as one blank; "" for messages that are none (release 2026.9.6). That is the prompt as it was
// sent, where the message says it, else its first block. What was only imported from that conversation is not the
// session's own: somebody there may well write it again. A transcript keeps a secret masked, so that a prompt with one
// is not known again when it comes back.
func Own(message []byte) string {
	if role, _ := span.Text(span.Member(message, "role")); role != "user" {
		return ""
	}
	about := span.Member(message, "__openclaw")
	if sent := span.Member(about, "upstreamUserText"); span.KindOf(sent) == span.String {
		s, _ := span.Text(sent)
		return normal(s)
	}
	if set(span.Member(about, "mirrorOrigin")) {
		return ""
	}
	content := span.Member(message, "content")
	if span.KindOf(content) == span.Array {
		var first []byte
		_, _ = span.Items(content, 0, func(block []byte) error { // what is damaged says nothing
			first = block
			return errFirst
		})
		content = span.Member(first, "text")
	}
	if span.KindOf(content) != span.String {
		return ""
	}
	s, _ := span.Text(content)
	return normal(s)
}

// set says whether a value counts as true in JavaScript.
func set(value []byte) bool {
	switch span.KindOf(value) {
	case span.String:
		s, _ := span.Text(value)
		return s != ""
	case span.Number:
		f, _ := span.Float(value)
		return f != 0
	case span.Object, span.Array:
		return true
	}
	return string(value) == "true"
}
