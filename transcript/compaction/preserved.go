package compaction

import (
	"slices"
	"strings"

	"oc/transcript/visible"
)

// A Said is a message as a summary sees it: its role, and the raw message.
type Said struct {
	Role string
	Raw  []byte
}

// Preserved are the messages, by index, that a safeguarded summary keeps on a line each: those of the last turns that users began, at
// most 12. Where there are fewer of these, all that users said, and the newest of the rest until there are two a turn
// (spec/transcript.md 3.6).
func Preserved(messages []Said, turns int) (kept []int) {
	turns = min(turns, 12)
	if turns <= 0 {
		return nil
	}
	var users []int
	for i, m := range messages {
		if m.Role == "user" {
			users = append(users, i)
		}
	}
	if len(users) >= turns {
		for i := users[len(users)-turns]; i < len(messages); i++ {
			kept = append(kept, i)
		}
		return kept
	}
	kept = slices.Clone(users)
	for i := len(messages) - 1; i >= 0 && len(kept) < 2*turns; i-- {
		if !slices.Contains(kept, i) {
			kept = append(kept, i)
		}
	}
	slices.Sort(kept)
	return kept
}

// PreservedSection is what a summary says of the messages kept of it; "" for none.
func PreservedSection(messages []Said, kept []int) string {
	var lines []string
	for _, i := range kept {
		if l := Line(messages[i].Role, messages[i].Raw); l != "" {
			lines = append(lines, l)
		}
	}
	return section(recentTitle, lines)
}

// Sections are those of a text in Markdown with one of the names, whatever their case, each from its heading of level 2 or 3 to the next
// of the same level or the one above. What looks like a heading in a block of code is none (agents.defaults.compaction.postCompactionSections).
func Sections(text string, names []string) (found []string) {
	lines := strings.Split(text, "\n")
	for _, name := range names {
		var section []string
		level, code := 0, false
		for _, l := range lines {
			if strings.HasPrefix(visible.Trim(l), "```") {
				code = !code
			}
			n, title := heading(l)
			switch {
			case code || n == 0:
			case level > 0 && n <= level && n > 1:
				level = -1
			case level == 0 && (n == 2 || n == 3) && strings.EqualFold(title, visible.Trim(name)):
				level = n
			}
			if level > 0 {
				section = append(section, l)
			}
		}
		if section != nil {
			found = append(found, visible.Trim(strings.Join(section, "\n")))
		}
	}
	return found
}

func heading(line string) (level int, title string) {
	rest := strings.TrimLeft(line, "#")
	if level = len(line) - len(rest); level == 0 || !strings.HasPrefix(rest, " ") {
		return 0, ""
	}
	return level, visible.Trim(rest)
}
