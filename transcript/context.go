package transcript

import (
	"fmt"
	"io"

	"oc/store/span"
)

// A Said is one message as the model gets it: the message of a row, or a row
// that stands for one.
type Said struct {
	Place
	Kind Kind
	// Role is user, assistant, toolResult, bashExecution, custom,
	// branchSummary or compactionSummary, or whatever else the row says.
	Role string
	// Raw is the raw message of a message row, else the raw row, which has the
	// content or the summary at its top.
	Raw []byte
}

// ForModel is the role under which a message reaches the model: user,
// assistant, toolResult, or "" if it does not.
func (s Said) ForModel() string {
	switch s.Role {
	case "user", "assistant", "toolResult":
		return s.Role
	case "custom", "branchSummary", "compactionSummary":
		return "user"
	case "bashExecution":
		if string(span.Member(s.Raw, "excludeFromContext")) != "true" {
			return "user"
		}
	}
	return ""
}

// A Context is what the model sees of a conversation, and the state that the
// rows of its branch leave behind.
type Context struct {
	Messages []Said
	Thinking string // thinking level; "off" if no row sets one
	Provider string
	Model    string // "" if no row names one
	Boundary Place  // the compaction or reset that the context begins with
	Bounded  bool   // whether there is one
	Hidden   int    // rows of the branch with a message that the model does not see
}

// Load reads rows of a file. The entries own their bytes.
func Load(r io.ReaderAt) func(Place) (Entry, error) {
	return func(at Place) (Entry, error) {
		b := make([]byte, at.Size)
		if _, err := r.ReadAt(b, at.Offset); err != nil {
			return Entry{}, fmt.Errorf("read the row at byte %d: %w", at.Offset, err)
		}
		return Parse(b)
	}
}

// Context is the context of the active branch, as buildSessionContext makes it
// (spec/transcript.md 1.7): a summary in place of what a compaction left out,
// then the rows it kept, then those after it. Only rows that the model sees are
// loaded, and as many before them as it takes to learn model and thinking level.
// Message rows without a message, on which OpenClaw fails, are left out.
func (t *Tree) Context(load func(Place) (Entry, error)) (Context, error) {
	c := Context{Thinking: "off"}
	if !t.begun {
		return c, nil
	}
	branch, _ := t.branch(t.leaf)
	boundary, from := t.window(branch)
	if boundary >= 0 {
		c.Bounded, c.Boundary = true, t.nodes.at(branch[boundary]).place()
	}
	loaded := map[int]*Entry{}
	get := func(i int) (*Entry, error) {
		if e := loaded[i]; e != nil {
			return e, nil
		}
		e, err := load(t.nodes.at(branch[i]).place())
		if err != nil {
			return nil, err
		}
		loaded[i] = &e
		return &e, nil
	}
	if err := c.state(t, branch, get); err != nil {
		return c, err
	}
	var kept func(*Entry) bool
	if boundary >= 0 && t.nodes.at(branch[boundary]).kind == Compaction {
		e, err := get(boundary)
		if err != nil {
			return c, err
		}
		c.Messages = append(c.Messages, Said{c.Boundary, Compaction, "compactionSummary", e.Raw})
	} else if boundary >= 0 {
		kept = keptByReset()
	}
	for i := range branch {
		n := t.nodes.at(branch[i])
		if i < from || i == boundary {
			if n.bits&speaks != 0 {
				c.Hidden++
			}
			continue
		}
		if n.kind != Message && n.kind != CustomMessage && n.kind != BranchSummary {
			continue
		}
		e, err := get(i)
		if err != nil {
			return c, err
		}
		if kept != nil && i < boundary && !kept(e) {
			c.Hidden++
			continue
		}
		if s, ok := said(e, n.place()); ok {
			c.Messages = append(c.Messages, s)
		}
	}
	return c, nil
}

// Voice is the role of a raw message as the context has it: what was a hookMessage up to version 2 is custom.
func Voice(message []byte) string {
	if role := Role(message); role != "hookMessage" {
		return role
	}
	return "custom"
}

// said is what a row says to the model.
func said(e *Entry, at Place) (Said, bool) {
	switch e.Kind {
	case Message:
		if span.KindOf(e.Message) != span.Object {
			return Said{}, false
		}
		return Said{at, Message, Voice(e.Message), e.Message}, true
	case CustomMessage:
		return Said{at, CustomMessage, "custom", e.Raw}, true
	case BranchSummary:
		if s, _ := span.Text(span.Member(e.Raw, "summary")); s != "" {
			return Said{at, BranchSummary, "branchSummary", e.Raw}, true
		}
	}
	return Said{}, false
}

// state finds the last rows that set the model and the thinking level.
func (c *Context) state(t *Tree, branch []int32, get func(int) (*Entry, error)) error {
	thinking, model := false, false
	text := func(raw []byte) string {
		s, _ := span.Text(raw)
		return s
	}
	for i := len(branch) - 1; i >= 0 && !(thinking && model); i-- {
		switch kind := t.nodes.at(branch[i]).kind; {
		case kind == ThinkingChange && !thinking:
			e, err := get(i)
			if err != nil {
				return err
			}
			thinking, c.Thinking = true, text(span.Member(e.Raw, "thinkingLevel"))
		case kind == ModelChange && !model:
			e, err := get(i)
			if err != nil {
				return err
			}
			model, c.Provider, c.Model = true, text(span.Member(e.Raw, "provider")), text(span.Member(e.Raw, "modelId"))
		case kind == Message && !model:
			e, err := get(i)
			if err != nil {
				return err
			}
			if Role(e.Message) == "assistant" {
				model, c.Provider, c.Model = true, text(span.Member(e.Message, "provider")), text(span.Member(e.Message, "model"))
			}
		}
	}
	return nil
}

// window is where on the branch its last compaction or reset stands, none if
// there is none, and from where rows are kept.
func (t *Tree) window(branch []int32) (boundary, from int) {
	boundary = len(branch) - 1
	for boundary >= 0 && t.nodes.at(branch[boundary]).kind != Compaction && t.nodes.at(branch[boundary]).kind != Reset {
		boundary--
	}
	if boundary < 0 {
		return -1, 0
	}
	from = boundary
	kept, ok := t.kept[branch[boundary]]
	if !ok {
		return boundary, from
	}
	kept = t.keptFrom(kept, branch[boundary])
	for i := range branch[:boundary] {
		if t.nodes.at(branch[i]).id == kept {
			return boundary, i
		}
	}
	return boundary, from
}

// keptFrom is the row from which a compaction keeps, where it names one that is
// no entry: the nearest entry above that, else the first below it on the way to
// the compaction, else the first below it anywhere, else what is before the
// compaction.
func (t *Tree) keptFrom(id, boundary int32) int32 {
	n := t.at(id)
	if n == nil || t.canonical(n.kind) {
		return id
	}
	opaque := func(i int32) bool { return i >= 0 && !t.canonical(t.nodes.at(i).kind) }
	up, _ := t.path(id)
	for k := len(up) - 1; k >= 0; k-- {
		if !opaque(up[k]) {
			return t.nodes.at(up[k]).id
		}
	}
	way, _ := t.path(t.nodes.at(boundary).parent)
	first := none
	for k := len(way) - 1; k >= 0; k-- {
		if t.nodes.at(way[k]).id == id {
			if first >= 0 {
				return first
			}
			break
		}
		if !opaque(way[k]) {
			first = t.nodes.at(way[k]).id
		}
	}
	below := map[int32]bool{id: true}
	for i := range int32(t.nodes.n) {
		n := t.nodes.at(i)
		if n.parent < 0 || !below[n.parent] {
			continue
		}
		if t.canonical(n.kind) {
			return n.id
		}
		below[n.id] = true
	}
	return t.nodes.at(boundary).parent
}

// keptByReset tells, of rows before a reset in their order, which of them stay:
// what users and assistants said, and results of calls among that.
func keptByReset() func(*Entry) bool {
	calls := map[string]bool{}
	return func(e *Entry) bool {
		if e.Kind != Message {
			return false
		}
		switch Role(e.Message) {
		case "user":
			return true
		case "assistant":
			for _, c := range Calls(e.Message) {
				calls[c.ID] = true
			}
			return true
		case "toolResult":
			id := ResultID(e.Message)
			return id != "" && calls[id]
		}
		return false
	}
}

// A Call is one call of a tool in an assistant's message.
type Call struct {
	ID, Name  string
	Arguments []byte // raw; nil where it has none
}

// Calls are the calls of tools in a raw message, in every spelling that
// OpenClaw takes.
func Calls(message []byte) (list []Call) {
	_, _ = span.Items(span.Member(message, "content"), 0, func(block []byte) error {
		switch kind, _ := span.Text(span.Member(block, "type")); kind {
		case "toolCall", "toolUse", "functionCall", "tool_call", "tool_use", "function_call":
			c := Call{Arguments: span.Member(block, "arguments")}
			c.ID, _ = span.Text(span.Member(block, "id"))
			c.Name, _ = span.Text(span.Member(block, "name"))
			if c.Arguments == nil {
				c.Arguments = span.Member(block, "input")
			}
			list = append(list, c)
		}
		return nil
	})
	return list
}

// ResultID is the id of the call that a raw tool result answers, "" if it names
// none.
func ResultID(message []byte) string {
	for _, name := range [...]string{"toolCallId", "toolUseId", "tool_call_id", "tool_use_id", "callId", "call_id"} {
		if s, ok := span.Text(span.Member(message, name)); ok && s != "" {
			return s
		}
	}
	return ""
}
