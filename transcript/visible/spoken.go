package visible

import (
	"crypto/sha256"
	"fmt"

	"oc/store/span"
)

// supplements tells whether a message only adds the sound of another one: what
// it says of that, and blocks that are no text.
func supplements(o object) (digest, text string, ok bool) {
	mark := parseObject(o.get("openclawTtsSupplement"))
	digest, text = mark.first("textSha256"), mark.first("spokenText")
	if digest == "" && text == "" || !o.is("role", "assistant") || span.KindOf(o.get("content")) != span.Array {
		return "", "", false
	}
	for _, raw := range items(o.get("content")) {
		if span.KindOf(raw) != span.Object && span.KindOf(raw) != span.Array {
			continue
		}
		b := parseObject(raw)
		if !b.is("type", "text") {
			ok = true
			continue
		}
		if s, _ := b.text("text"); Trim(s) != "" && Trim(s) != "Audio reply" {
			return "", "", false
		}
	}
	return digest, text, ok
}

// voiced puts the sound of a message to the message that was spoken, the newest
// with its text, and tells whether there is one.
func voiced(shown []Shown, o object) bool {
	digest, text, ok := supplements(o)
	if !ok {
		return false
	}
	for i := len(shown) - 1; i >= 0; i-- {
		t := parseObject(shown[i].Message)
		mark := parseObject(t.get("openclawTtsSupplement"))
		said := Trim(t.said())
		if !t.is("role", "assistant") || said == "" || mark.first("textSha256", "spokenText") != "" || sentBetween(shown[i].Message) {
			continue
		}
		sum := sha256.Sum256([]byte(said))
		if fmt.Sprintf("%x", sum) != digest && said != text {
			continue
		}
		blocks := items(t.get("content"))
		if span.KindOf(t.get("content")) != span.Array {
			var b object
			b.setText("type", "text")
			b.setText("text", said)
			blocks = [][]byte{b.append(nil)}
		}
		for _, raw := range items(o.get("content")) {
			if span.KindOf(raw) == span.Object && !parseObject(raw).is("type", "text") {
				blocks = append(blocks, raw)
			}
		}
		t.set("content", array(blocks))
		shown[i].Message = t.append(nil)
		return true
	}
	return false
}
