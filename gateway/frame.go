package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"oc/store/span"
)

// Largest frames that oc reads, in bytes. A hello is 16 KB; what a gateway
// itself takes is 25 MiB, and its answers to oc are a few.
const (
	maxGreeting = 4 << 20
	maxAnswer   = 16 << 20
	maxSkipped  = 32 << 20
)

var (
	errFrame    = errors.New("a frame that is no JSON object of the protocol")
	errOversize = errors.New("a frame larger than oc reads")
)

// frame is one message of the gateway. Its raw values alias what was read.
type frame struct {
	kind    string // res or event; others are for others
	id      string // of an answer
	ok      bool   // of an answer
	payload []byte
	failure []byte // error of an answer
	event   string // of an event
}

// parseFrame takes any bytes.
func parseFrame(b []byte) (f frame, err error) {
	b = bytes.TrimSpace(b)
	if span.KindOf(b) != span.Object || span.Valid(b) != nil {
		return f, errFrame
	}
	_, err = span.Each(b, 0, func(key, val []byte) error {
		switch name, _ := span.Text(key); name {
		case "type":
			f.kind, _ = span.Text(val)
		case "id":
			f.id, _ = span.Text(val)
		case "ok":
			f.ok = string(val) == "true"
		case "payload":
			f.payload = val
		case "error":
			f.failure = val
		case "event":
			f.event, _ = span.Text(val)
		}
		return nil
	})
	if err != nil || f.kind == "" {
		return frame{}, errFrame
	}
	return f, nil
}

var eventStart = []byte(`{"type":"event","event":"`)

// readFrame reads one message of at most limit bytes. Events that nobody wants
// are passed over without being held; skipped is true then.
func readFrame(r io.Reader, limit int, wanted bool) (f frame, skipped bool, err error) {
	in := bufio.NewReaderSize(r, 4096)
	if head, _ := in.Peek(len(eventStart)); !wanted && bytes.Equal(head, eventStart) {
		_, err = io.Copy(io.Discard, in)
		return f, true, err
	}
	b, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	switch {
	case err != nil:
		return f, false, err
	case len(b) > limit:
		return f, false, fmt.Errorf("%w: more than %d MiB", errOversize, limit>>20)
	}
	f, err = parseFrame(b)
	return f, false, err
}
