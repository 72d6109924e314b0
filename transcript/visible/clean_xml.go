package visible

import "strings"

// tag is one XML-like tag in a text.
type tag struct {
	name       string // in lower case
	start, end int
	inside     int // behind the name
	closes     bool
	alone      bool // <name/>
	cut        bool // no ">" before the next "<" or the end
}

var toolTags = map[string]bool{
	"tool_call": true, "tool_result": true, "function_call": true, "function_calls": true, "function_response": true,
	"function": true, "tool_calls": true, antml + "invoke": true, antml + "parameter": true,
}

const antml = "antml" + ":"

var tagName = in("A-Za-z0-9_.:-")

// readTag reads the tag at i, of a tool's name or of any.
func readTag(s string, i int, any bool, f *fuel) (t tag, ok bool) {
	j, closes := opening(s, i)
	k := j
	if c := at(s, j); !nameByte(c) && c != '_' && c != ':' {
		return t, false
	}
	for k < len(s) && tagName.has(s, k) {
		k++
	}
	if c := at(s, k); k < len(s) && c != '/' && c != '>' && space(s, k) == 0 {
		return t, false
	}
	if !any && k-j > len("function_response") {
		return t, false
	}
	name := strings.ToLower(s[j:k])
	if !any && !toolTags[name] {
		return t, false
	}
	t = tag{name: name, start: i, inside: k, closes: closes}
	end := insideEnd(s, k, f)
	if end < 0 {
		t.cut, t.end = true, len(s)
		return t, true
	}
	t.end = end + 1
	t.alone = !closes && strings.HasSuffix(s[k:back(s, end)], "/")
	return t, true
}

// insideEnd is where the ">" of a tag stands; quoted values may hold any
// character.
func insideEnd(s string, i int, f *fuel) int {
	var q byte
	escaped := false
	for j := i; j < len(s); j++ {
		c := s[j]
		switch {
		case q != 0 && escaped:
			escaped = false
		case q != 0 && c == '\\':
			escaped = true
		case q != 0:
			if c == q {
				q = 0
			}
		case quote(c):
			q = c
		case c == '<':
			f.burn(j - i)
			return -1
		case c == '>':
			f.burn(j - i)
			return j
		}
	}
	f.burn(len(s) - i)
	return -1
}

// jsonStart tells whether a call's body begins with JSON, behind what looks
// like attributes.
func jsonStart(s string, i int, f *fuel) bool {
	from := i
	defer func() { f.burn(i - from) }()
	for {
		j := skip(s, i)
		k := j
		if c := at(s, k); j == i || !nameByte(c) && c != '_' && c != ':' {
			break
		}
		for k < len(s) && tagName.has(s, k) {
			k++
		}
		if k = skip(s, k); at(s, k) != '=' {
			break
		}
		k = skip(s, k+1)
		if c := at(s, k); quote(c) {
			n := strings.IndexByte(s[k+1:], c)
			if n < 0 {
				i = len(s)
				return false
			}
			i = k + n + 2
			continue
		}
		v := k
		for k < len(s) && strings.IndexByte("\"'=<>`", s[k]) < 0 && space(s, k) == 0 {
			k++
		}
		if k == v {
			break
		}
		i = k
		if strings.ContainsAny(s[v+1:k], "[{") {
			return true
		}
	}
	c := at(s, skip(s, i))
	return c == '{' || c == '['
}

// elementStart tells whether a body begins with an element of one of the names.
func elementStart(s string, i int, names []string, spaced bool) bool {
	if i = skip(s, i); at(s, i) != '<' {
		return false
	}
	i++
	if spaced && hasFold(s, i, antml) {
		i += len(antml)
	}
	for _, name := range names {
		if hasFold(s, i, name) && edge(s, i+len(name)) {
			return true
		}
	}
	return false
}

var (
	callElements   = []string{"function_call", "tool_call", "function", "invoke", "parameter", "parameters", "argument", "arguments"}
	nestedElements = []string{"function_call", "tool_call"}
)

func lineStart(s string, i int) bool {
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
		i--
	}
	return i == 0 || s[i-1] == '\n' || s[i-1] == '\r'
}

func lineEnd(s string, i int) bool {
	i = horizontal(s, i)
	return i >= len(s) || s[i] == '\n' || s[i] == '\r'
}

// xmlCleaner is one pass over a text that takes out calls of tools.
type xmlCleaner struct {
	s    string
	f    *fuel
	in   spans
	out  []byte
	done int // what stands before is in out or gone

	shown map[string]int // opening tags that were kept, by name
	last  int            // end of the call that was taken out last, -1 if none

	block   tag // the call that is being taken out; no name if none
	quotes  bool
	scanned int // how far the quotes of the block were followed
	q       byte
	escaped bool
}

// cleanToolXML removes calls and results of tools that were written as XML.
func cleanToolXML(s string, p Profile) string {
	if !toolXML(s) {
		return s
	}
	x := xmlCleaner{s: s, f: fuelFor(s), in: codeSpans(s), shown: map[string]int{}, last: -1}
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			break
		}
		i += n
		if x.block.name == "" && x.in.has(i) {
			i++
			continue
		}
		t, ok := readTag(s, i, false, x.f)
		if x.f.left < 0 {
			return s
		}
		if !ok {
			i++
			continue
		}
		if x.block.name != "" {
			x.inside(t)
			x.done, i = t.end, max(t.end, i+1)
			continue
		}
		x.out = append(x.out, s[x.done:i]...)
		next := x.outside(t, p)
		x.done, i = next, max(next, i+1)
		if x.block.name != "" && t.cut {
			x.done = len(s)
			break
		}
	}
	switch x.block.name {
	case "":
		x.out = append(x.out, s[x.done:]...)
	case "function":
		x.out = append(x.out, s[x.block.start:]...)
	}
	return unwrapParameters(string(x.out))
}

// toolXML tells whether any name of a tool's tag stands in the text.
func toolXML(s string) bool {
	names := []string{"tool_call", "tool_result", "function_call", "function_calls", "function_response", "function", "tool_calls", "invoke", "parameter"}
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return false
		}
		i += n
		j, _ := opening(s, i)
		if hasFold(s, j, antml) {
			j += len(antml)
		}
		for _, name := range names {
			if hasFold(s, j, name) && edge(s, j+len(name)) {
				return true
			}
		}
	}
}

// inside takes a tag within a call: it may close it.
func (x *xmlCleaner) inside(t tag) {
	b := &x.block
	if !t.closes || t.name != b.name && (b.name != "tool_result" || t.name != "tool_call") {
		return
	}
	if x.quotes && x.quoted(t.start) {
		return
	}
	x.last = t.end
	x.block = tag{}
}

// quoted tells whether the text of the block up to i ends inside a string.
func (x *xmlCleaner) quoted(i int) bool {
	for ; x.scanned < i; x.scanned++ {
		c := x.s[x.scanned]
		switch {
		case x.q == 0:
			if quote(c) {
				x.q = c
			}
		case x.escaped:
			x.escaped = false
		case c == '\\':
			x.escaped = true
		case c == x.q:
			x.q = 0
		}
	}
	return x.q != 0
}

// outside takes a tag in visible text and returns where the text goes on. It
// may open a call.
func (x *xmlCleaner) outside(t tag, p Profile) int {
	s := x.s
	keep := func(end int) int {
		x.out = append(x.out, s[t.start:end]...)
		return end
	}
	switch {
	case t.closes && t.cut:
		return keep(t.inside)
	case t.closes:
		if x.shown[t.name] > 0 {
			x.shown[t.name]--
			return keep(t.end)
		}
		return t.end
	case t.alone:
		x.last = t.end
		return t.end
	}
	body := t.end
	if t.cut {
		body = t.inside
	}
	plural := t.name == "function_calls" || t.name == "tool_calls"
	xml := t.name == "tool_call" || t.name == "function" || t.name == antml+"invoke"
	if plural && p == Delivery {
		if end, ok := x.close(t.end, t.name); ok {
			xml = x.follows(end.end, "function_response")
		}
	}
	isJSON := jsonStart(s, body, x.f)
	isXML := !isJSON && xml && elementStart(s, body, callElements, true)
	call := (isJSON || isXML) && (t.name != "function" || x.standsAlone(t))
	if call || t.name == "function_response" && x.result(t) {
		x.block = t
		x.quotes = isJSON || isXML && x.nestedJSON(body)
		x.scanned, x.q, x.escaped = t.end, 0, false
		return t.end
	}
	if t.cut {
		return keep(t.inside)
	}
	x.shown[t.name]++
	return keep(t.end)
}

// close finds the tag that closes name.
func (x *xmlCleaner) close(i int, name string) (tag, bool) {
	for from := i; ; {
		n := strings.IndexByte(x.s[i:], '<')
		if n < 0 || !x.f.burn(32) {
			x.f.burn(i - from)
			return tag{}, false
		}
		i += n
		t, ok := readTag(x.s, i, false, x.f)
		switch {
		case !ok:
			i++
		case t.closes && t.name == name && !t.cut:
			x.f.burn(i - from)
			return t, true
		default:
			i = max(t.end, i+1)
		}
	}
}

// follows tells whether an opening tag of the name comes next.
func (x *xmlCleaner) follows(i int, name string) bool {
	if i = skip(x.s, i); at(x.s, i) != '<' {
		return false
	}
	t, ok := readTag(x.s, i, false, x.f)
	return ok && !t.closes && t.name == name
}

// nestedJSON tells whether the body is a call whose own body is JSON.
func (x *xmlCleaner) nestedJSON(i int) bool {
	if !elementStart(x.s, i, nestedElements, false) {
		return false
	}
	t, ok := readTag(x.s, skip(x.s, i), false, x.f)
	return ok && !t.closes && !t.alone && !t.cut && (t.name == "function_call" || t.name == "tool_call") &&
		jsonStart(x.s, t.end, x.f)
}

// standsAlone tells whether a <function name=...> is a call and not prose.
func (x *xmlCleaner) standsAlone(t tag) bool {
	if t.cut || !named(x.s[t.inside:t.end]) {
		return false
	}
	i := t.start
	for i > 0 && (x.s[i-1] == ' ' || x.s[i-1] == '\t') {
		i--
	}
	return i == 0 || strings.IndexByte("\n\r.!?:", x.s[i-1]) >= 0
}

// named tells whether a tag has the attribute name.
func named(inside string) bool {
	return anyFold(inside, "name", func(i int) bool {
		return inside[i:i+4] == "name" && edge(inside, i) && at(inside, skip(inside, i+4)) == '='
	})
}

// result tells whether a <function_response> is the result of a tool.
func (x *xmlCleaner) result(t tag) bool {
	broken := lineEnd(x.s, t.end)
	if broken && lineStart(x.s, t.start) {
		return true
	}
	_, closed := x.close(t.end, t.name)
	if x.last >= 0 && x.last <= t.start && strings.Trim(x.s[x.last:t.start], " \t\n\r") == "" {
		return true
	}
	return closed && broken && lineStart(string(x.out[max(0, len(x.out)-4096):]), min(len(x.out), 4096))
}

// unwrapParameters takes the tags of <parameter> elements away that stand in no
// other element, and keeps what is in them.
func unwrapParameters(s string) string {
	if !anyFold(s, "parameter", func(i int) bool { return edge(s, i+len("parameter")) }) {
		return s
	}
	type element struct {
		name         string
		unwrap, trim bool
	}
	f := fuelFor(s)
	in := codeSpans(s)
	e := edits{s: s}
	var open []element
	closes := lastCloses(s, f)
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return e.text()
		}
		i += n
		if in.has(i) {
			i++
			continue
		}
		t, ok := readTag(s, i, true, f)
		if f.left < 0 {
			return s
		}
		if !ok || t.cut {
			i++
			continue
		}
		switch {
		case t.closes:
			k := len(open) - 1
			for k >= 0 && open[k].name != t.name {
				k--
			}
			f.burn(len(open) - k)
			if k < 0 {
				break
			}
			if open[k].unwrap {
				from := i
				if open[k].trim && lineStart(s, i) && lineEnd(s, t.end) {
					from = brokenBefore(s, e.done, i)
				}
				e.put(from, t.end, "")
			}
			open = open[:k]
		case t.alone:
			if t.name == "parameter" && len(open) == 0 {
				e.put(i, t.end, "")
			}
		case closes[t.name] >= t.end && closedLater(s, t, f) || dangling(s, t, f):
			el := element{name: t.name, unwrap: t.name == "parameter" && len(open) == 0}
			if el.unwrap {
				end := t.end
				if lineStart(s, i) {
					end = lineBreak(s, t.end)
					el.trim = end > t.end
				}
				e.put(i, end, "")
			}
			open = append(open, el)
		}
		i = max(t.end, i+1)
	}
}

// brokenBefore is where the line break begins that ends at i, if it is behind
// from.
func brokenBefore(s string, from, i int) int {
	switch {
	case i > from && s[i-1] == '\n':
		if i-2 >= from && s[i-2] == '\r' {
			return i - 2
		}
		return i - 1
	case i > from && s[i-1] == '\r':
		return i - 1
	}
	return i
}

// lastCloses is where the last closing tag of each name stands.
func lastCloses(s string, f *fuel) map[string]int {
	last := map[string]int{}
	for i := 0; ; i++ {
		n := strings.Index(s[i:], "/")
		if n < 0 {
			return last
		}
		i += n
		open := back(s, i) - 1
		if at(s, open) != '<' {
			continue
		}
		if t, ok := readTag(s, open, true, f); ok && !t.cut {
			last[t.name] = open
		}
	}
}

// closedLater tells whether the element is closed further on.
func closedLater(s string, open tag, f *fuel) bool {
	depth := 1
	for i := open.end; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 || !f.burn(n+32) {
			return false
		}
		i += n
		// Cheap names first: most tags are others.
		j, _ := opening(s, i)
		if !hasFold(s, j, open.name) {
			i++
			continue
		}
		t, ok := readTag(s, i, true, f)
		if !ok || t.name != open.name || t.cut {
			i++
			continue
		}
		if t.closes {
			if depth--; depth == 0 {
				return true
			}
		} else if !t.alone {
			depth++
		}
		i = max(t.end, i+1)
	}
}

// dangling tells whether the tag is a <function name=...> before a parameter.
func dangling(s string, t tag, f *fuel) bool {
	if t.name != "function" || !named(s[t.inside:t.end]) {
		return false
	}
	i := skip(s, t.end)
	if at(s, i) != '<' {
		return false
	}
	p, ok := readTag(s, i, true, f)
	return ok && p.name == "parameter" && !p.closes
}
