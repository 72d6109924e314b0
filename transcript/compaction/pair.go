package compaction

import "slices"

// A Paired is a message as a model gets it: one of the conversation, or a result that is missing from it.
type Paired struct {
	At      int    // its number; -1 for a result that is missing
	Missing string // the id of the call that nobody answered
}

// Pair puts the results of an answer's calls directly behind it, each once and in their order, and those that are missing behind these;
// results that no call asks for are left out (spec/transcript.md 1.10). Answers that failed or were broken off hold nothing open: they and
// what follows them stay as they are.
func Pair(messages []Message) (list []Paired) {
	placed := make([]bool, len(messages))
	failed := map[string]bool{}
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == Result && !placed[i] && failed[m.Answer]:
			list = append(list, Paired{At: i})
		case m.Role != Result:
			list = append(list, Paired{At: i})
		}
		for _, id := range m.Failed {
			failed[id] = true
		}
		answered := map[string]bool{}
		for k := i + 1; k < len(messages) && len(answered) < len(m.Calls); k++ {
			r := &messages[k]
			if slices.ContainsFunc(r.Calls, func(id string) bool { return slices.Contains(m.Calls, id) }) {
				break // the ids are used anew
			}
			if r.Role == Result && !placed[k] && slices.Contains(m.Calls, r.Answer) && !answered[r.Answer] {
				placed[k], answered[r.Answer] = true, true
				list = append(list, Paired{At: k})
			}
		}
		for _, id := range m.Calls {
			if !answered[id] {
				list = append(list, Paired{At: -1, Missing: id})
			}
		}
	}
	return list
}
