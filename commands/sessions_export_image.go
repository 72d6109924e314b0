package commands

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"oc/store/span"
)

// picture is an image that stands in a message: what kind it is, as its bytes say, and these as base64. Only kinds that are a raster and
// nothing else are pictures; no script can be in them.
type picture struct{ kind, data string }

var rasters = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pictureMark is the member that ties a block to its picture, through whatever is done to the message. What a transcript says there itself
// is taken out.
const pictureMark = "ocPicture"

// pictures are the images of a message, and the message with a mark at each. One that is none, or of another kind, has no mark and stays as
// it was.
func pictures(raw []byte) (marked []byte, all []picture) {
	content := span.Member(raw, "content")
	if span.KindOf(content) != span.Array || !bytes.Contains(content, []byte("image")) && !bytes.Contains(content, []byte(pictureMark)) && !bytes.Contains(content, []byte(`\u`)) {
		return raw, nil // a long message is not copied for nothing
	}
	blocks := []byte{'['}
	changed := false
	_, _ = span.Items(content, 0, func(b []byte) error {
		if len(blocks) > 1 {
			blocks = append(blocks, ',')
		}
		if span.KindOf(b) == span.Object && span.Member(b, pictureMark) != nil {
			b, changed = without(b, pictureMark), true
		}
		if p, ok := pictureOf(b); ok {
			all, changed = append(all, p), true
			if data := span.Member(b, "data"); len(data) > pieceSize {
				b = without(b, "data")
				b = append(b[:len(b)-1], `,"bytes":`+strconv.Itoa(len(data)-2)+`}`...)
			}
			blocks = append(append(blocks, b[:len(b)-1]...), `,"`+pictureMark+`":`+strconv.Itoa(len(all))+`}`...)
			return nil
		}
		blocks = append(blocks, b...)
		return nil
	})
	if !changed {
		return raw, nil
	}
	out := []byte{'{'}
	_, _ = span.Each(raw, 0, func(key, val []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if span.Is(key, "content") {
			val = append(blocks, ']')
		}
		out = append(append(append(out, key...), ':'), val...)
		return nil
	})
	return append(out, '}'), all
}

// without is an object without a member.
func without(b []byte, name string) []byte {
	out := []byte{'{'}
	_, _ = span.Each(b, 0, func(key, val []byte) error {
		if span.Is(key, name) {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), val...)
		return nil
	})
	return append(out, '}')
}

// pictureOf is the image in a block: OpenClaw's data, or what providers write.
func pictureOf(b []byte) (p picture, ok bool) {
	kind, _ := span.Text(span.Member(b, "type"))
	switch kind {
	case "image", "input_image", "image_url":
	default:
		return p, false
	}
	text := ""
	for _, path := range [][]string{{"data"}, {"source", "data"}, {"image_url", "url"}, {"image_url"}, {"url"}} {
		if s, is := span.Text(span.Path(b, path...)); is {
			text = s
			break
		}
	}
	if head, data, is := strings.Cut(text, ","); is && strings.HasPrefix(head, "data:") && strings.HasSuffix(head, ";base64") {
		text = data
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(bytes) == 0 {
		return p, false
	}
	found := http.DetectContentType(bytes)
	for _, raster := range rasters {
		if found == raster {
			return picture{raster, base64.StdEncoding.EncodeToString(bytes)}, true
		}
	}
	return p, false
}
