package visible

import (
	"encoding/json"
	"strings"
)

// cleanBrackets removes [TOOL_CALL] and [TOOL_RESULT] blocks that hold what they
// say. A block that is not closed goes to the end.
func cleanBrackets(s string) string {
	if !bracketed(s) {
		return s
	}
	in := codeSpans(s)
	e := edits{s: s}
	b := brackets{
		s:       s,
		callEnd: -1, resultEnd: -1,
		tool: probe{s: s, find: toolName}, args: probe{s: s, find: argsArrow}, result: probe{s: s, find: resultName},
	}
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '[')
		if n < 0 {
			return e.text()
		}
		i += n
		word, body := bracket(s, i, false)
		if body < 0 {
			i++
			continue
		}
		if in.has(i) {
			i = body
			continue
		}
		end, behind := b.close(body, word)
		if end >= 0 && in.has(end) {
			end = -1
		}
		if end < 0 {
			end, behind = len(s), len(s)
		}
		if !b.holds(word, body, end) {
			i = body
			continue
		}
		e.put(i, behind, "")
		i = behind
	}
}

func bracketed(s string) bool {
	return anyFold(s, "tool_call", func(i int) bool { return true }) || anyFold(s, "tool_result", func(i int) bool { return true })
}

// bracket reads [TOOL_CALL] or [/TOOL_CALL] at i.
func bracket(s string, i int, closes bool) (word string, end int) {
	j := skip(s, i+1)
	if closes {
		if at(s, j) != '/' {
			return "", -1
		}
		j = skip(s, j+1)
	}
	for _, word := range [...]string{"tool_call", "tool_result"} {
		if hasFold(s, j, word) {
			if k := skip(s, j+len(word)); at(s, k) == ']' {
				return word, k + 1
			}
		}
	}
	return "", -1
}

type brackets struct {
	s                        string
	callAt, callEnd          int // the next closing brackets, where they are known
	resultAt, resultEnd      int
	tool, args, result       probe
	callLooked, resultLooked bool
}

// close finds the bracket that closes a block.
func (b *brackets) close(from int, word string) (at, end int) {
	pos, fin, looked := &b.callAt, &b.callEnd, &b.callLooked
	if word == "tool_result" {
		pos, fin, looked = &b.resultAt, &b.resultEnd, &b.resultLooked
	}
	if *looked && (*pos < 0 || *pos >= from) {
		return *pos, *fin
	}
	*looked, *pos, *fin = true, -1, -1
	for i := from; ; i++ {
		n := strings.IndexByte(b.s[i:], '[')
		if n < 0 {
			return *pos, *fin
		}
		i += n
		if w, e := bracket(b.s, i, true); e >= 0 && w == word {
			*pos, *fin = i, e
			return i, e
		}
	}
}

func (b *brackets) holds(word string, from, to int) bool {
	if word == "tool_call" {
		return b.tool.within(from, to) && b.args.within(from, to)
	}
	if c := at(b.s, skip(b.s, from)); skip(b.s, from) < to && (c == '{' || c == '[') {
		return true
	}
	return b.result.within(from, to)
}

// probe finds the next place where find succeeds, asked with rising places.
type probe struct {
	s       string
	find    func(s string, i int) (end int)
	at, end int
	looked  bool
}

func (p *probe) within(from, to int) bool {
	if !p.looked || p.at >= 0 && p.at < from {
		p.looked = true
		for p.at = from; p.at < len(p.s); p.at++ {
			if p.end = p.find(p.s, p.at); p.end >= 0 {
				break
			}
		}
		if p.at >= len(p.s) {
			p.at = -1
		}
	}
	return p.at >= 0 && p.end <= to
}

func arrow(s string, i int) int {
	if i = skip(s, i); strings.HasPrefix(s[i:], "=>") {
		return i + 2
	}
	return -1
}

func toolName(s string, i int) int {
	if !hasFold(s, i, "tool") || !edge(s, i) {
		return -1
	}
	if i = arrow(s, i+4); i < 0 {
		return -1
	}
	if i = skip(s, i); !quote(at(s, i)) {
		return -1
	}
	j := i + 1
	if c := at(s, j); !nameByte(c) && c != '_' {
		return -1
	}
	for j++; j < len(s) && j-i <= 120 && (word(s[j]) || strings.IndexByte(".:-", s[j]) >= 0); j++ {
	}
	if !quote(at(s, j)) {
		return -1
	}
	return j + 1
}

func argsArrow(s string, i int) int {
	if !hasFold(s, i, "args") || !edge(s, i) {
		return -1
	}
	return arrow(s, i+4)
}

func resultName(s string, i int) int {
	for _, name := range [...]string{"tool", "result", "output", "content"} {
		if !hasFold(s, i, name) || !edge(s, i) {
			continue
		}
		if end := arrow(s, i+len(name)); end >= 0 {
			return end
		}
		if j := skip(s, i+len(name)); at(s, j) == ':' {
			return j + 1
		}
	}
	return -1
}

// cleanBlocks removes calls of tools written as plain text on lines of their own.
func cleanBlocks(s string) string {
	if !blocksIn(s) {
		return s
	}
	b := blocks{s: s, fuel: fuelFor(s), parameter: next{s: s, lit: "</parameter>", fold: true}}
	e := edits{s: s}
	for i := 0; i < len(s); {
		start := horizontal(s, i)
		end := b.json(start)
		if end < 0 {
			end = b.xml(start)
		}
		if b.fuel.left < 0 {
			return s
		}
		if end >= 0 {
			end = lineBreak(s, end)
			e.put(i, end, "")
			i = end
			if i > 0 && s[i-1] == '\n' {
				continue
			}
		}
		n := strings.IndexByte(s[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return e.text()
}

// blocksIn tells whether any block could be in the text.
func blocksIn(s string) bool {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '[')
		if n < 0 {
			break
		}
		i += n
		j := i + 1
		if strings.HasPrefix(s[j:], "tool:") && toolWord(s, j+5) > j+5 {
			j += 5
		}
		if end := toolWord(s, j); end > j && at(s, end) == ']' {
			return true
		}
	}
	for i := 0; ; {
		j := skip(s, i)
		if _, end := functionTag(s, j); end >= 0 {
			return true
		}
		k := j
		if strings.HasPrefix(s[k:], "<|channel|>") {
			k += len("<|channel|>")
		}
		for _, channel := range [...]string{"commentary", "analysis", "final"} {
			if strings.HasPrefix(s[k:], channel) {
				if to := skip(s, k+len(channel)); to > k+len(channel) && strings.HasPrefix(s[to:], "to=") {
					return true
				}
			}
		}
		n := strings.IndexByte(s[j:], '\n')
		if n < 0 {
			return false
		}
		i = j + n + 1
	}
}

func toolWord(s string, i int) int {
	for i < len(s) && dashed.has(s, i) {
		i++
	}
	return i
}

func horizontal(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// lineBreak passes one line break, if there is one.
func lineBreak(s string, i int) int {
	switch {
	case at(s, i) == '\r' && at(s, i+1) == '\n':
		return i + 2
	case at(s, i) == '\r' || at(s, i) == '\n':
		return i + 1
	}
	return i
}

// functionTag reads <function=name>.
func functionTag(s string, i int) (name string, end int) {
	if !hasFold(s, i, "<function=") {
		return "", -1
	}
	return xmlName(s, i+len("<function="))
}

var xmlWord = in("A-Za-z0-9_.:-")

func xmlName(s string, i int) (string, int) {
	j := i
	for j < len(s) && j-i <= 120 && xmlWord.has(s, j) {
		j++
	}
	if j == i || j-i > 120 || at(s, j) != '>' {
		return "", -1
	}
	return s[i:j], j + 1
}

type blocks struct {
	s         string
	fuel      *fuel
	parameter next
}

// bracket reads [name] and a line break, or [tool:name].
func (b *blocks) bracket(i int) (name string, end int, tool bool) {
	s := b.s
	if at(s, i) != '[' {
		return "", -1, false
	}
	tool = strings.HasPrefix(s[i+1:], "tool:")
	lo := i + 1
	if tool {
		lo += len("tool:")
	}
	hi := toolWord(s, lo)
	if hi == lo || at(s, hi) != ']' {
		return "", -1, false
	}
	if tool {
		return s[lo:hi], hi + 1, true
	}
	line := horizontal(s, hi+1)
	if end = lineBreak(s, line); end == line {
		return "", -1, false
	}
	return s[lo:hi], end, false
}

// harmony reads "commentary to=name code".
func (b *blocks) harmony(i int) int {
	s := b.s
	if strings.HasPrefix(s[i:], "<|channel|>") {
		i += len("<|channel|>")
	}
	j := i
	for j < len(s) && (nameByte(s[j]) || s[j] == '_') {
		j++
	}
	if c := s[i:j]; c != "commentary" && c != "analysis" && c != "final" {
		return -1
	}
	if j = horizontal(s, j); !strings.HasPrefix(s[j:], "to=") {
		return -1
	}
	j += len("to=")
	name := toolWord(s, j)
	if name == j {
		return -1
	}
	if j = horizontal(s, name); !strings.HasPrefix(s[j:], "code") {
		return -1
	}
	j = skip(s, j+len("code"))
	if strings.HasPrefix(s[j:], "<|message|>") {
		j = skip(s, j+len("<|message|>"))
	}
	return j
}

// json reads an opening, a JSON object, and the closing that goes with it.
func (b *blocks) json(i int) int {
	s := b.s
	name, body, tool := b.bracket(i)
	closed := body >= 0 && !tool
	if body < 0 {
		if body = b.harmony(i); body < 0 {
			return -1
		}
	}
	end := b.object(skip(s, body))
	if end < 0 {
		return -1
	}
	j := skip(s, end)
	if !closed {
		if strings.HasPrefix(s[j:], "<|call|>") {
			return j + len("<|call|>")
		}
		return end
	}
	if strings.HasPrefix(s[j:], "[END_TOOL_REQUEST]") {
		return j + len("[END_TOOL_REQUEST]")
	}
	if mark := "[/" + name + "]"; strings.HasPrefix(s[j:], mark) {
		return j + len(mark)
	}
	return -1
}

// object is the end of the JSON object at i, of at most 256,000 units.
func (b *blocks) object(i int) int {
	s := b.s
	if at(s, i) != '{' {
		return -1
	}
	depth, quoted, escaped, units := 0, false, false, 0
	for j := i; j < len(s); j++ {
		c := s[j]
		if c&0xc0 != 0x80 {
			units++
			if c >= 0xf0 {
				units++
			}
		}
		if units > 256000 {
			b.fuel.burn(j - i)
			return -1
		}
		switch {
		case quoted:
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				if !b.fuel.burn(2*(j-i)) || !json.Valid([]byte(s[i:j+1])) {
					return -1
				}
				return j + 1
			}
		}
	}
	b.fuel.burn(len(s) - i)
	return -1
}

// xml reads an opening, <parameter=name> elements, and </function>.
func (b *blocks) xml(i int) int {
	s := b.s
	_, j, tool := b.bracket(i)
	if j < 0 {
		if _, j = functionTag(s, i); j < 0 {
			return -1
		}
	}
	count := 0
	for {
		k := skip(s, j)
		if !hasFold(s, k, "<parameter=") {
			break
		}
		_, body := xmlName(s, k+len("<parameter="))
		if body < 0 {
			break
		}
		end := b.parameter.after(body)
		if !b.fuel.burn(8) || end < 0 {
			break
		}
		j = end + len("</parameter>")
		count++
	}
	b.fuel.burn(j - i)
	if count == 0 {
		return -1
	}
	if k := skip(s, j); hasFold(s, k, "</function>") {
		return k + len("</function>")
	}
	if tool {
		return j
	}
	return -1
}

// cleanDowngraded removes calls and results that were written as text for
// models without tools.
func cleanDowngraded(s string) string {
	marked := func(int) bool { return true }
	if !anyFold(s, "[tool call", marked) && !anyFold(s, "[tool result", marked) && !anyFold(s, "[historical context", marked) {
		return s
	}
	s = downgradedCalls(s)
	s = downgradedResults(s)
	bracket := next{s: s, lit: "]"}
	e := edits{s: s}
	for i := indexFold(s, 0, "[historical context:"); i >= 0; {
		end := bracket.after(i)
		if end < 0 {
			break
		}
		end++
		if at(s, end) == '\n' {
			end++
		}
		e.put(i, end, "")
		i = indexFold(s, end, "[historical context:")
	}
	return Trim(e.text())
}

func downgradedCalls(s string) string {
	fuel := fuelFor(s)
	bracket := next{s: s, lit: "]"}
	e := edits{s: s}
	for i := indexFold(s, 0, "[tool call:"); i >= 0; {
		end := bracket.after(i)
		if end < 0 {
			break
		}
		j := horizontal(s, end+1)
		j = horizontal(s, lineBreak(s, j))
		if hasFold(s, j, "arguments") {
			j += len("arguments")
			if at(s, j) == ':' {
				j++
			}
			if at(s, j) == ' ' {
				j++
			}
			if to := jsonish(s, j, fuel); to >= 0 {
				j = to
			}
			if fuel.left < 0 {
				return s
			}
		}
		kept := at(s, i-1)
		if i == e.done && len(e.b) > 0 {
			kept = e.b[len(e.b)-1]
		}
		if i == e.done && len(e.b) == 0 || kept == '\n' || kept == '\r' {
			j = lineBreak(s, j)
		}
		e.put(i, j, "")
		i = indexFold(s, j, "[tool call:")
	}
	return e.text()
}

// jsonish is the end of a balanced value, a string, or the rest of the line;
// -1 where the first two do not end.
func jsonish(s string, i int, f *fuel) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	if i == len(s) {
		return -1
	}
	c := s[i]
	if c != '{' && c != '[' && c != '"' {
		for i < len(s) && s[i] != '\n' && s[i] != '\r' {
			i++
		}
		return i
	}
	depth, quoted, escaped := 0, false, false
	for j := i; j < len(s); j++ {
		switch {
		case quoted && escaped:
			escaped = false
		case quoted && s[j] == '\\':
			escaped = true
		case s[j] == '"':
			quoted = !quoted
			if !quoted && depth == 0 {
				return j + 1
			}
		case quoted:
		case s[j] == '{' || s[j] == '[':
			depth++
		case s[j] == '}' || s[j] == ']':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	f.burn(len(s) - i)
	return -1
}

func downgradedResults(s string) string {
	bracket := next{s: s, lit: "]"}
	tool := next{s: s, lit: "[tool ", fold: true}
	e := edits{s: s}
	for i := indexFold(s, 0, "[tool result for id"); i >= 0; {
		end := bracket.after(i)
		if end < 0 {
			break
		}
		end++
		if at(s, end) == '\n' {
			end++
		}
		to := tool.after(end)
		if to < 0 {
			to = len(s)
		}
		for to > end && s[to-1] == '\n' {
			to--
		}
		e.put(i, to, "")
		i = indexFold(s, to, "[tool result for id")
	}
	return e.text()
}
