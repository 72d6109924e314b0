package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"oc/store/span"
	"oc/transcript"
)

// importer reads the lines of the other program as messages.
type importer struct {
	page  *Page
	of    *Conversation
	want  Part
	names map[string]string // of tools, by the id of the call
	seed  string
	later bool
	first bool // a prompt was seen
	all   []Message
	total int
	size  int
}

func (in *importer) read(ctx context.Context) error {
	s := transcript.Scanner{}
	err := in.of.Scan(ctx, &s, func(r *transcript.Row) error {
		switch {
		case r.Blank:
		case r.Err != nil:
			if in.page.Broken++; len(in.page.Findings) < maxFlaws {
				in.page.Findings = append(in.page.Findings, Flaw{in.of, transcript.Finding{Code: transcript.NotJSON, At: r.Place, Byte: r.Offset, Why: r.Err.Error()}})
			}
		default:
			in.line(r)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
		return nil
	}
	return err
}

// line adds the message of a line, if it is one that a reader sees.
func (in *importer) line(r *transcript.Row) {
	kind, _ := span.Text(span.Member(r.Raw, "type"))
	message := span.Member(r.Raw, "message")
	is := func(name string) bool { return string(span.Member(r.Raw, name)) == "true" }
	if kind != "user" && kind != "assistant" || transcript.Role(message) != kind || is("isSidechain") || in.later && is("isMeta") {
		return
	}
	content := span.Member(message, "content")
	switch {
	case r.Size > LongRow:
		content = []byte("[]")
	case span.KindOf(content) == span.Array:
		content = in.blocks(content)
	case span.KindOf(content) != span.String:
		return
	}
	if kind == "user" && r.Size <= LongRow && !is("isMeta") && !is("isCompactSummary") {
		if content = in.unseeded(content); content == nil {
			return
		}
	}
	m := Message{Of: in.of, Kind: transcript.Message, Place: r.Place, Long: r.Size > LongRow}
	stamp, _ := span.Text(span.Member(r.Raw, "timestamp"))
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		m.Time = at.UnixMilli()
	}
	m.ID, _ = span.Text(span.Member(r.Raw, "uuid"))
	m.ID = span.Trim(m.ID)
	if (in.want.Since != 0 || in.want.Before != 0) && (m.Time == 0 || m.Time < in.want.Since || in.want.Before != 0 && m.Time >= in.want.Before) {
		in.page.Outside++
		return
	}
	m.Raw = in.message(kind, message, content, &m)
	if n := len(in.all); n > 0 && answers(in.all[n-1].Raw, m.Raw) {
		in.all[n-1].Raw = withBlocks(in.all[n-1].Raw, content)
		return
	}
	in.total++
	in.all = append(in.all, m)
	in.size += len(m.Raw)
	for in.want.Limit > 0 && len(in.all) > in.want.Limit || in.want.Bytes > 0 && in.size > in.want.Bytes && len(in.all) > 1 {
		in.size -= len(in.all[0].Raw)
		in.all = in.all[1:]
	}
}

// message is a line as OpenClaw's history has it.
func (in *importer) message(kind string, from, content []byte, m *Message) []byte {
	b := append(append([]byte(`{"role":"`+kind+`","content":`), content...), ',')
	if kind == "assistant" {
		b = append(b, `"api":"anthropic-messages","provider":"`+ClaudeCLI+`",`...)
		for _, x := range [][2]string{{"model", "model"}, {"stop_reason", "stopReason"}} {
			if s, ok := span.Text(span.Member(from, x[0])); ok && span.Trim(s) != "" {
				b = append(span.Quote(append(b, `"`+x[1]+`":`...), s), ',')
			}
		}
		usage := []byte{}
		for _, x := range [][2]string{{"input_tokens", "input"}, {"output_tokens", "output"}, {"cache_read_input_tokens", "cacheRead"}, {"cache_creation_input_tokens", "cacheWrite"}} {
			if raw := span.Path(from, "usage", x[0]); span.KindOf(raw) == span.Number {
				usage = append(append(usage, `,"`+x[1]+`":`...), raw...)
			}
		}
		if len(usage) > 0 {
			b = append(append(append(b, `"usage":{`...), usage[1:]...), "},"...)
		}
	}
	if m.Time != 0 {
		b = append(strconv.AppendInt(append(b, `"timestamp":`...), m.Time, 10), ',')
	}
	b = append(b, `"__openclaw":{`...)
	if in.later {
		id := m.ID
		if id == "" {
			id = ClaudeCLI + ":" + in.of.ID + ":line:" + strconv.Itoa(m.Place.Line)
		}
		b = append(span.Quote(append(b, `"id":`...), id), ',')
	}
	b = span.Quote(append(b, `"importedFrom":"`+ClaudeCLI+`","cliSessionId":`...), in.of.ID)
	if m.ID != "" {
		b = span.Quote(append(b, `,"externalId":`...), m.ID)
	}
	return append(b, "}}"...)
}

// blocks spells calls and results of tools as OpenClaw does: a call has
// arguments, and a result the name of its tool.
func (in *importer) blocks(content []byte) []byte {
	out := []byte{'['}
	_, _ = span.Items(content, 0, func(b []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		member := func(name string) string { s, _ := span.Text(span.Member(b, name)); return span.Trim(s) }
		switch member("type") {
		case "tool_use":
			if id, name := member("id"), member("name"); id != "" && name != "" {
				in.names[id] = name
			}
			out = renamed(out, b)
		case "tool_result":
			name := ""
			if span.Member(b, "name") == nil {
				name = in.names[member("tool_use_id")]
			}
			if out = append(out, b...); name != "" {
				out = append(span.Quote(append(out[:len(out)-1], `,"name":`...), name), '}')
			}
		default:
			out = append(out, b...)
		}
		return nil
	})
	return append(out, ']')
}

// renamed is a block of type tool_use as a toolcall, its input as arguments.
func renamed(dst, b []byte) []byte {
	dst = append(dst, '{')
	n := len(dst)
	var input []byte
	put := func(key, val []byte) {
		if len(dst) > n {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, key...), ':'), val...)
	}
	_, _ = span.Each(b, 0, func(key, val []byte) error {
		switch {
		case span.Is(key, "type"):
			put(key, []byte(`"toolcall"`))
		case span.Is(key, "input"):
			input = val
		default:
			put(key, val)
		}
		return nil
	})
	if input != nil && span.Member(b, "arguments") == nil {
		put([]byte(`"arguments"`), input)
	}
	return append(dst, '}')
}

// unseeded is the first prompt without the conversation that OpenClaw handed
// over in it; nil where nothing else is in it.
func (in *importer) unseeded(content []byte) []byte {
	if in.first {
		return content
	}
	if s, ok := span.Text(content); ok {
		in.first = true
		switch rest, seeded := in.handed(s); {
		case seeded && rest == "":
			return nil
		case seeded:
			return span.Quote(nil, rest)
		}
		return content
	}
	var blocks [][]byte
	texts, results := 0, false
	_, _ = span.Items(content, 0, func(b []byte) error {
		kind, _ := span.Text(span.Member(b, "type"))
		results = results || kind == "tool_result"
		if _, ok := span.Text(span.Member(b, "text")); ok && kind == "text" {
			texts++
		}
		blocks = append(blocks, b)
		return nil
	})
	if results || texts == 0 {
		return content
	}
	in.first = true
	for i, b := range blocks {
		s, ok := span.Text(span.Member(b, "text"))
		if kind, _ := span.Text(span.Member(b, "type")); !ok || kind != "text" || in.seed != "" && texts > 1 {
			continue
		}
		rest, seeded := in.handed(s)
		if !seeded {
			continue
		}
		if rest == "" {
			blocks = slices.Delete(blocks, i, i+1)
		} else {
			blocks[i] = append(span.Quote([]byte(`{"type":"text","text":`), rest), '}')
		}
		break
	}
	if len(blocks) == 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(blocks, []byte{','})...), ']')
}

// handed tells whether a prompt is a conversation that was handed over, and what
// the user said behind it. The row's receipt decides; without one the tags do.
func (in *importer) handed(s string) (rest string, seeded bool) {
	if in.seed != "" {
		sum := sha256.Sum256([]byte(s))
		return "", hex.EncodeToString(sum[:]) == in.seed
	}
	const open, between, end = "\n\n<conversation_history>\n", "\n</conversation_history>\n\n<next_user_message>\n", "\n</next_user_message>"
	head := strings.Index(s, open)
	if head < 0 || head > 300 || strings.Count(s[:head], "\n") != 1 { // a heading of two lines
		return "", false
	}
	at, last := strings.Index(s, between), strings.LastIndex(s, end)
	if at != strings.LastIndex(s, between) || at <= head+len(open)-1 || last < at+len(between) {
		return "", false
	}
	return s[at+len(between) : last], true
}

// answers tells whether a message is but the results of the calls that the one
// before it is made of.
func answers(before, m []byte) bool {
	if transcript.Role(before) != "assistant" || transcript.Role(m) != "user" {
		return false
	}
	ids := map[string]bool{}
	n, only := 0, true
	each := func(message []byte, kind string, f func(id string)) {
		_, _ = span.Items(span.Member(message, "content"), 0, func(b []byte) error {
			t, _ := span.Text(span.Member(b, "type"))
			id := ""
			for _, name := range []string{"id", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId"} {
				if s, _ := span.Text(span.Member(b, name)); id == "" {
					id = span.Trim(s)
				}
			}
			n, only = n+1, only && strings.ReplaceAll(strings.ToLower(t), "_", "") == kind
			f(id)
			return nil
		})
	}
	each(before, "toolcall", func(id string) { ids[id] = true })
	calls := n
	each(m, "toolresult", func(id string) { only = only && id != "" && ids[id] })
	return only && calls > 0 && n > calls
}

// withBlocks is a message with blocks added to its content.
func withBlocks(message, blocks []byte) []byte {
	content := span.Member(message, "content")
	at := bytes.Index(message, content)
	joined := append(append(append([]byte{}, content[:len(content)-1]...), ','), blocks[1:]...)
	return append(append(append([]byte{}, message[:at]...), joined...), message[at+len(content):]...)
}
