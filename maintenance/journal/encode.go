package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// A run has thousands of steps, and its manifest is written when it begins and when it is done: steps are written by hand, just as
// encoding/json writes them.

// append writes the step behind b. Its names are text by then.
func (s *Step) append(b []byte) ([]byte, error) {
	b = quote(append(b, `{"kind":`...), string(s.Kind))
	b = strconv.AppendInt(append(b, `,"phase":`...), int64(s.Phase), 10)
	b = quote(append(b, `,"path":`...), s.Path)
	b = texts(b, `,"to":`, s.To)
	b = number(b, `,"mode":`, uint64(s.Mode))
	b = signed(b, `,"time":`, s.Time)
	b = texts(b, `,"hook":`, s.Hook)
	var err error
	for _, x := range []struct {
		name string
		raw  json.RawMessage
	}{{`,"payload":`, s.Payload}, {`,"facts":`, s.Facts}} {
		if len(x.raw) > 0 && err == nil {
			var line bytes.Buffer
			err = json.Compact(&line, x.raw)
			b = append(append(b, x.name...), line.Bytes()...)
		}
	}
	if s.Rows != nil && err == nil {
		var rows []byte
		if rows, err = marshal(s.Rows); err == nil {
			b = append(append(b, `,"rows":`...), rows...)
		}
	}
	b = texts(b, `,"tie":`, s.Tie)
	b = s.Before.append(append(b, `,"before":`...))
	if !s.After.isZero() {
		b = s.After.append(append(b, `,"after":`...))
	}
	b = texts(b, `,"skipped":`, s.Skipped)
	b = texts(b, `,"undo":`, string(s.Undo))
	b = texts(b, `,"temp":`, s.Temp)
	b = s.Old.append(b, `,"old":`)
	b = s.New.append(b, `,"new":`)
	return append(b, '}'), err
}

func (s *Stamp) isZero() bool {
	return s.Type == "" && s.Size == 0 && s.MTime == 0 && s.Ino == 0 && s.Dev == 0 && s.Mode == 0 && s.UID == 0 && s.GID == 0 && s.Links == 0 && s.SHA256 == "" && s.Target == nil
}

func (s *Stamp) append(b []byte) []byte {
	at := len(b) + 1
	b = texts(append(b, '{'), `,"type":`, string(s.Type))
	b = signed(b, `,"size":`, s.Size)
	b = signed(b, `,"mtime":`, s.MTime)
	b = number(b, `,"ino":`, s.Ino)
	b = number(b, `,"dev":`, s.Dev)
	b = number(b, `,"mode":`, uint64(s.Mode))
	b = strconv.AppendInt(append(b, `,"uid":`...), int64(s.UID), 10)
	b = strconv.AppendInt(append(b, `,"gid":`...), int64(s.GID), 10)
	b = number(b, `,"links":`, s.Links)
	b = texts(b, `,"sha256":`, s.SHA256)
	if len(s.Target) > 0 {
		b = append(base64.StdEncoding.AppendEncode(append(b, `,"target":"`...), s.Target), '"')
	}
	return append(append(b[:at], b[at+1:]...), '}') // the first name has no comma
}

func (s *Saved) append(b []byte, name string) []byte {
	if s == nil {
		return b
	}
	b = strconv.AppendInt(append(append(b, name...), `{"vault":`...), int64(s.Vault), 10)
	b = signed(b, `,"offset":`, s.Offset)
	b = signed(b, `,"length":`, s.Length)
	b = signed(b, `,"link":`, int64(s.Link))
	if s.Late {
		b = append(b, `,"late":true`...)
	}
	return append(b, '}')
}

// texts, signed and number write a member that has a value.
func texts(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return quote(append(b, name...), s)
}

func signed(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), n, 10)
}

func number(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), n, 10)
}

// quote writes a string.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := marshal(s) // a string always can be written
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
