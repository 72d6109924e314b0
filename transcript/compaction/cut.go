// Package compaction decides what OpenClaw decides about the size of a conversation: when its context is too full, where it is
// cut, in which chunks the older part is summarised, and when the memory is flushed before that.
//
// It follows spec/transcript.md 3 and 4, release 2026.7.35. All of it is pure: rows and messages come in as what counts of them,
// so that a conversation of any size is planned in little memory.
package compaction

import (
	"slices"

	"oc/store/span"
	"oc/transcript"
)

// A Row is what a cut needs to know of a row of the branch.
type Row struct {
	Kind   transcript.Kind
	Role   Role // of a message
	Tokens int32
}

// A Role is who speaks in a message, as far as a cut goes.
type Role uint8

// The roles.
const (
	Nobody Role = iota
	User
	Assistant
	Result
	Bash
	Other
)

// RoleOf is the role that a message says.
func RoleOf(name string) Role {
	switch name {
	case "user":
		return User
	case "assistant":
		return Assistant
	case "toolResult":
		return Result
	case "bashExecution":
		return Bash
	}
	return Other
}

// RowOf is what counts of a row.
func RowOf(e *transcript.Entry) Row {
	r := Row{Kind: e.Kind}
	if e.Kind == transcript.Message && span.KindOf(e.Message) == span.Object {
		name := transcript.Voice(e.Message)
		r.Role, r.Tokens = RoleOf(name), int32(transcript.Tokens(name, e.Message))
	}
	return r
}

// A Cut is where a branch is cut in two: what stands before Keep is summarised, what follows is kept.
type Cut struct {
	From int // the first row that is summarised: behind what an earlier compaction left out
	Keep int // the first row that is kept
	Turn int // where the turn begins that the cut goes through; -1 where it goes between turns
}

// Split tells whether the cut goes through a turn. Its beginning, [Turn, Keep), is then summarised apart.
func (c Cut) Split() bool { return c.Turn >= 0 }

// History are the rows that are summarised as finished turns: [From, until).
func (c Cut) History() (until int) {
	if c.Split() {
		return c.Turn
	}
	return c.Keep
}

// Find cuts a branch so that about keep tokens of its end are kept. last is the row of the latest compaction, -1 for none, and
// kept the row that it keeps from, -1 where that is not on the branch. ok is false where there is nothing to cut: the branch is
// empty, or ends with a compaction.
func Find(rows []Row, last, kept, keep int) (c Cut, ok bool) {
	if c, ok = Whole(rows, last, kept); ok {
		c = find(rows, c.From, keep)
	}
	return c, ok
}

// Whole is the cut behind everything: nothing is kept.
func Whole(rows []Row, last, kept int) (c Cut, ok bool) {
	if len(rows) == 0 || rows[len(rows)-1].Kind == transcript.Compaction {
		return Cut{}, false
	}
	from := 0
	if last >= 0 {
		if from = last + 1; kept >= 0 {
			from = kept
		}
	}
	return Cut{From: from, Keep: len(rows), Turn: -1}, true
}

func find(rows []Row, from, keep int) Cut {
	c := Cut{From: from, Keep: from, Turn: -1}
	first, latest := -1, -1
	for i := from; i < len(rows); i++ {
		if rows[i].canCut() {
			if latest = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return c
	}
	c.Keep = first
	sum := 0
	for i := len(rows) - 1; i >= from; i-- {
		if rows[i].Kind != transcript.Message {
			continue
		}
		if sum += int(rows[i].Tokens); sum < keep {
			continue
		}
		c.Keep = latest
		if next := slices.IndexFunc(rows[i:], Row.canCut); next >= 0 {
			c.Keep = i + next
		}
		break
	}
	// Rows of state in front of the cut belong to what is kept.
	for c.Keep > from && rows[c.Keep-1].Kind != transcript.Message && rows[c.Keep-1].Kind != transcript.Compaction {
		c.Keep--
	}
	if rows[c.Keep].Kind == transcript.Message && rows[c.Keep].Role == User {
		return c
	}
	for i := c.Keep; i >= from; i-- {
		if rows[i].beginsTurn() {
			c.Turn = i
			break
		}
	}
	return c
}

func (r Row) canCut() bool {
	switch r.Kind {
	case transcript.Message:
		return r.Role != Result
	case transcript.BranchSummary, transcript.CustomMessage:
		return true
	}
	return false
}

func (r Row) beginsTurn() bool {
	switch r.Kind {
	case transcript.Message:
		return r.Role == User || r.Role == Bash
	case transcript.BranchSummary, transcript.CustomMessage:
		return true
	}
	return false
}
