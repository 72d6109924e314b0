package visible

import "strings"

var (
	traceSigns  = []string{"📊", "🛠️", "📖", "📝", "🔍", "🔎", "⚙️"}
	traceLabels = []string{
		"session status", "exec", "read", "edit", "write", "patch", "search", "open", "click", "find", "screenshot",
		"update plan", "tool call", "tool result", "function call", "shell", "command",
	}
	traceVerbs = strings.Fields(`run check fetch pull push view show list switch create merge rebase stage restore reset stash
		search find print copy move remove install start cd git pnpm npm yarn bun node python python3 bash sh`)
)

const (
	warning = "⚠️"
	tools   = "🛠️"
)

// cleanTraces removes lines that only report what a tool did.
func cleanTraces(s string) string {
	if !traced(s) {
		return s
	}
	in := codeSpans(s)
	e := edits{s: s}
	for i := 0; i < len(s); {
		end := len(s)
		if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		if !in.has(i) && traceLine(Trim(s[i:end])) {
			e.put(i, end, "")
		}
		i = end
	}
	return e.text()
}

func traced(s string) bool {
	for _, sign := range traceSigns {
		if strings.Contains(s, sign) {
			return true
		}
	}
	return anyFold(s, "tool", func(i int) bool { return channelName(s, i) >= 0 }) ||
		anyFold(s, "function", func(i int) bool { return channelName(s, i) >= 0 })
}

// channelName is the end of tool-call, tool_result, function call and their
// like at i, -1 if there is none.
func channelName(s string, i int) int {
	for _, two := range [...][2]string{{"tool", "call"}, {"tool", "result"}, {"function", "call"}} {
		if !hasFold(s, i, two[0]) {
			continue
		}
		j := i + len(two[0])
		if c := at(s, j); c == '-' || c == '_' || c == ' ' {
			j++
		}
		if hasFold(s, j, two[1]) {
			return j + len(two[1])
		}
	}
	return -1
}

// traceLine tells whether a trimmed line is a report.
func traceLine(s string) bool {
	if rest, ok := strings.CutPrefix(s, ">"); ok {
		s = rest[skip(rest, 0):]
	}
	if end := channelName(s, 0); end >= 0 {
		if c := at(s, skip(s, end)); c == ':' || c == '=' {
			return true
		}
	}
	rest := s
	if warned, ok := strings.CutPrefix(s, warning); ok {
		rest = warned[skip(warned, 0):]
		if failure, ok := strings.CutPrefix(rest, tools); ok && failed(failure) {
			return true
		}
	}
	if rest == s && strings.HasPrefix(s, tools) && compact(s[len(tools):]) {
		return true
	}
	for _, sign := range traceSigns {
		body, ok := strings.CutPrefix(rest, sign)
		if !ok {
			continue
		}
		i := skip(body, 0)
		for _, label := range traceLabels {
			if hasFold(body, i, label) && at(body, skip(body, i+len(label))) == ':' {
				return true
			}
		}
	}
	return false
}

// failed tells whether s names something and ends in "(agent) failed" with or
// without a reason.
func failed(s string) bool {
	start := skip(s, 0)
	if start == 0 || start == len(s) {
		return false
	}
	w, _ := char(s, start)
	for i := indexFold(s, start+w, "(agent)"); i >= 0; i = indexFold(s, i+1, "(agent)") {
		if spaceBefore(s, i) == 0 || back(s, i) < start+w {
			continue
		}
		j := i + len("(agent)")
		for n := 0; n < 2 && at(s, j) == '`'; n++ {
			j++
		}
		k := skip(s, j)
		if k == j || !hasFold(s, k, "failed") {
			continue
		}
		k = skip(s, k+len("failed"))
		if k == len(s) || s[k] == ':' && !strings.ContainsAny(s[k:], "\n\r\u2028\u2029") {
			return true
		}
	}
	return false
}

// compact tells whether s is a command in back ticks or begins with a verb.
func compact(s string) bool {
	i := skip(s, 0)
	for {
		j := i
		switch {
		case hasFold(s, i, "elevated"):
			j += len("elevated")
		case hasFold(s, i, "pty"):
			j += len("pty")
		}
		if j == i || !edge(s, j) {
			break
		}
		j = skip(s, j)
		switch {
		case strings.HasPrefix(s[j:], "·"):
			j += len("·")
		case at(s, j) == ',':
			j++
		default:
			j = -1
		}
		if j < 0 {
			break
		}
		i = skip(s, j)
	}
	if at(s, i) == '`' {
		return skip(s, i+1) < len(s)
	}
	for _, verb := range traceVerbs {
		if hasFold(s, i, verb) && edge(s, i+len(verb)) {
			return true
		}
	}
	return false
}
