package transcript

import (
	"bytes"
	"encoding/base64"
	"strings"

	"oc/store/span"
)

// checkMessage says what is wrong with a message: what OpenClaw fails on, and
// what it would repair before a run (spec/transcript.md 1.9). It passes the
// message twice.
func (s *Scanner) checkMessage(r *Row) {
	if span.KindOf(r.Message) != span.Object {
		s.report(NoMessage, r, 0, "")
		return
	}
	var role, content, stop []byte
	_, _ = span.Each(r.Message, 0, func(key, val []byte) error {
		switch {
		case span.Is(key, "role"):
			role = val
		case span.Is(key, "content"):
			content = val
		case span.Is(key, "stopReason"):
			stop = val
		}
		return nil
	})
	who := text(role)
	if blank(who) {
		s.report(BadRole, r, 0, "")
		return
	}
	user := string(who) == "user"
	if span.KindOf(content) != span.Array {
		if user && blankText(content) {
			s.report(BlankUser, r, 0, "")
		}
		return
	}
	empty, blankBlock := true, false
	_, _ = span.Items(content, 0, func(block []byte) error {
		empty = false
		switch kind := text(member(block, "type")); string(kind) {
		case "text":
			blankBlock = blankBlock || user && blankText(span.Member(block, "text"))
		case "image":
			if why := badImage(block); why != "" {
				s.report(BadImage, r, span.At(r.Raw, block), why)
			}
		}
		return nil
	})
	switch {
	case user && (empty || blankBlock):
		s.report(BlankUser, r, 0, "")
	case empty && string(who) == "assistant" && string(text(stop)) == "error":
		s.report(EmptyFailure, r, 0, "")
	}
}

// blankText tells whether a raw value is a text of nothing but white space.
func blankText(raw []byte) bool {
	if span.KindOf(raw) != span.String {
		return false
	}
	if c := raw[1]; c > ' ' && c < 0x80 && c != '\\' && c != '"' {
		return false
	}
	return blank(text(raw))
}

// badImage says why the data of an image block is no image, "" if it is one or
// OpenClaw would not look.
func badImage(block []byte) string {
	var data []byte
	kinds := [...]struct {
		name string
		val  []byte
	}{{name: "mimeType"}, {name: "mediaType"}, {name: "media_type"}}
	if _, err := span.Each(block, 0, func(key, val []byte) error { // once: the data are long
		if span.Is(key, "data") {
			data = val
		}
		for i := range kinds {
			if span.Is(key, kinds[i].name) {
				kinds[i].val = val
			}
		}
		return nil
	}); err != nil || span.KindOf(data) != span.String {
		return ""
	}
	image := false
	for i := range kinds {
		s, _ := span.Text(kinds[i].val)
		image = image || strings.HasPrefix(strings.ToLower(strings.TrimSpace(s)), "image/")
	}
	if !image {
		return ""
	}
	b := data[1 : len(data)-1]
	if bytes.IndexByte(b[:min(len(b), 4096)], '\\') >= 0 {
		b = text(data)
	}
	return badBase64(b)
}

var base64Byte = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c <= ' ':
			t[c] = 1 // passed over
		case c == '=':
			t[c] = 2
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '+', c == '/':
			t[c] = 3
		}
	}
	return t
}()

func badBase64(b []byte) string {
	n, padding := 0, 0
	start := make([]byte, 0, 128)
	for len(b) > 0 {
		if len(start) == cap(start) && padding == 0 { // eight bytes of data at a time
			for len(b) >= 8 && base64Byte[b[0]]&base64Byte[b[1]]&base64Byte[b[2]]&base64Byte[b[3]]&base64Byte[b[4]]&base64Byte[b[5]]&base64Byte[b[6]]&base64Byte[b[7]] == 3 {
				n, b = n+8, b[8:]
			}
			if len(b) == 0 {
				break
			}
		}
		c := b[0]
		b = b[1:]
		switch base64Byte[c] {
		case 1:
			continue
		case 2:
			padding++
			continue
		case 3:
			if padding > 0 {
				return "there is data behind the padding"
			}
			if n++; len(start) < cap(start) {
				start = append(start, c)
			}
			continue
		}
		return "the data is not base64"
	}
	if n == 0 || padding > 2 || n%4 == 1 || padding > 0 && (n+padding)%4 != 0 {
		return "the data is cut"
	}
	raw, err := base64.RawStdEncoding.DecodeString(string(start[:len(start)-len(start)%4]))
	if err != nil || !imageStart(string(raw)) {
		return "the data is no image"
	}
	return ""
}

// imageStart tells whether bytes begin like an image that a model takes.
func imageStart(s string) bool {
	for _, magic := range [...]string{"\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a", "BM"} {
		if strings.HasPrefix(s, magic) {
			return true
		}
	}
	if len(s) < 12 {
		return false
	}
	if s[:4] == "RIFF" && s[8:12] == "WEBP" {
		return true
	}
	if s[4:8] != "ftyp" {
		return false
	}
	for i := 8; i+4 <= len(s); i += 4 {
		if strings.Contains("heic heix hevc hevx heis heim hevm hevs mif1 msf1", s[i:i+4]) {
			return true
		}
	}
	return false
}
