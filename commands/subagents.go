package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oc/commands/term"
	"oc/gateway"
	"oc/store/span"
)

func subagents() *Command {
	return &Command{
		Name:  "subagents",
		Short: "list and stop sub-agents",
		Long:  "Without a further word it lists them, as oc subagents list does.",
		Flags: []Flag{speakerFlag},
		Exits: liveExits,
		Run:   listSubagents,
		Sub: []*Command{{
			Name:  "list",
			Short: "list the sub-agents of a session",
			Long: "Asks the gateway for the sub-agents that a session has at work and those that ended in the last 30 minutes, with OpenClaw's own tool subagents, and for their tasks, whose ids oc " +
				"subagents cancel takes.",
			Flags: []Flag{speakerFlag},
			Examples: []Example{
				{"oc subagents list", "those of the main session"},
				{"oc subagents list --as agent:ops:main --json", "those of another session, as OpenClaw's own document"},
			},
			Exits: liveExits,
			Run:   listSubagents,
		}, {
			Name:  "cancel",
			Args:  "TASK",
			Short: "stop a sub-agent",
			Long: "Stops one task of a session's tree: its own sub-agents and theirs. TASK is the id of a task or of a run, the key of the sub-agent's session, or its label. A task of another tree is " +
				"refused, as OpenClaw's tool does it; name its owner with --as.",
			Flags: []Flag{speakerFlag},
			Examples: []Example{
				{`oc subagents cancel "Count the boxes"`, "by its label"},
			},
			Exits: liveExits,
			Run:   cancelSubagent,
		}},
	}
}

// task is a piece of background work as the gateway tells it (tasks.list).
type task struct {
	id, run, child, owner, title, status, runtime string
	touched                                       int64 // ms since 1970
}

func taskOf(raw []byte) task {
	touched, _ := span.Int(span.Member(raw, "updatedAt"))
	return task{
		touched: touched,
		id:      textIn(raw, "taskId"), run: textIn(raw, "runId"), child: textIn(raw, "childSessionKey"), owner: textIn(raw, "ownerKey"),
		title: textIn(raw, "title"), status: textIn(raw, "status"), runtime: textIn(raw, "runtime"),
	}
}

func (t task) ended() bool { return t.status != "queued" && t.status != "running" }

// is tells whether a word means the task; a label only where nothing else does.
func (t task) is(word string) bool { return word == t.id || word == t.run || word == t.child }

// mostTasks is how many tasks are looked through, the newest first.
const mostTasks = 5000

// tasks are those of all sessions; more says that there are further ones, older than these.
func (g *live) tasks(ctx context.Context) (all []task, more bool, err error) {
	page := gateway.Tasks{Limit: 500}
	for {
		got, err := g.do(ctx, page)
		if err != nil {
			return nil, false, err
		}
		_, _ = span.Items(span.Member(got, "tasks"), 0, func(raw []byte) error {
			all = append(all, taskOf(raw))
			return nil
		})
		next := textIn(got, "nextCursor")
		if next == "" || next == page.Cursor || len(all) >= mostTasks {
			return all, next != "" && next != page.Cursor, nil
		}
		page.Cursor = next
	}
}

// treeOf are the tasks that a session gave, and those that their sessions gave, with what is not theirs left out.
func treeOf(all []task, root string) (its []task) {
	in := map[string]bool{root: true}
	for grew := true; grew; {
		grew = false
		for _, t := range all {
			if in[t.owner] && t.child != "" && !in[t.child] {
				in[t.child], grew = true, true
			}
		}
	}
	for _, t := range all {
		if in[t.owner] && t.child != t.owner { // a session's own turn is no task that it gave
			its = append(its, t)
		}
	}
	return its
}

// helpers are the sub-agents of a session.
type helpers struct {
	*live
	of    string
	raw   json.RawMessage // the tool's own answer
	tasks []task          // of the session's tree
}

func listSubagents(ctx context.Context, c *Call) error {
	g, err := c.connect(ctx, gateway.Read)
	if err != nil {
		return err
	}
	defer g.Close()
	h := helpers{live: g}
	if h.of, err = g.speaker(ctx); err != nil {
		return err
	}
	if h.raw, err = g.tool(ctx, gateway.Tool{Name: "subagents", Key: h.of, Args: map[string]any{"action": "list"}}, 0); err != nil {
		return err
	}
	all, _, err := g.tasks(ctx)
	if err != nil {
		return err
	}
	h.tasks = treeOf(all, h.of)
	if c.JSON() {
		return c.Document(h.document)
	}
	h.text(c)
	return nil
}

// taskFor is the task behind a sub-agent's run.
func (h *helpers) taskFor(run, child string) task {
	for _, t := range h.tasks {
		if run != "" && t.run == run || child != "" && t.child == child {
			return t
		}
	}
	return task{}
}

func (h *helpers) text(c *Call) {
	empty := true
	for _, part := range []struct{ name, head string }{{"active", "At work:"}, {"recent", "Ended in the last 30 minutes:"}} {
		first := true
		_, _ = span.Items(span.Member(h.raw, part.name), 0, func(e []byte) error {
			if first {
				if !empty {
					c.Out.Printf("\n")
				}
				c.Out.Printf("%s\n", part.head)
			}
			first, empty = false, false
			h.line(c, e)
			return nil
		})
	}
	if empty {
		c.Out.Printf("%s has no sub-agents at work, and none ended in the last 30 minutes.\n", h.of)
	}
}

// line shows one sub-agent: what it is called, how it stands, and the names by which it can be stopped.
func (h *helpers) line(c *Call, e []byte) {
	status := cmp.Or(textIn(e, "status"), term.Unknown)
	if t := h.taskFor(textIn(e, "runId"), textIn(e, "sessionKey")); t.status == "cancelled" {
		status = t.status // 2026.7.35 calls it failed
	}
	about := []string{cmp.Or(textIn(e, "runtime"), term.Unknown)}
	if n, ok := span.Int(span.Member(e, "totalTokens")); ok {
		about = append(about, term.Count(n)+" tokens")
	}
	if model := textIn(e, "model"); model != "" {
		about = append(about, model)
	}
	style := term.Plain
	switch {
	case status == "running":
		style = term.Green
	case status == "failed", status == "timeout":
		style = term.Red
	}
	name := cmp.Or(textIn(e, "label"), textIn(e, "taskName"), textIn(e, "task"))
	c.Out.Printf("  %s  %s  %s\n", c.Out.Paint(style, status), c.Out.Paint(term.Bold, term.CutEnd(name, max(16, c.Out.Width()-40), "…")), c.Out.Paint(term.Dim, strings.Join(about, ", ")))
	child := textIn(e, "sessionKey")
	c.Out.Printf("    %s\n", child)
	if id := h.taskFor(textIn(e, "runId"), child).id; id != "" {
		c.Out.Printf("    task %s\n", id)
	}
}

// document has the tool's own members, then oc's. tasks are OpenClaw's on 2026.9.6 and missing before, so that taskIds stands beside
// them: the id of the task behind each run.
func (h *helpers) document(p *span.Printer) error {
	p.Object()
	members(p, h.raw, "via", "gateway", "taskIds")
	p.Key("taskIds").Object()
	for _, part := range []string{"active", "recent"} {
		_, _ = span.Items(span.Member(h.raw, part), 0, func(e []byte) error {
			if run := textIn(e, "runId"); run != "" {
				p.Key(run)
				if id := h.taskFor(run, textIn(e, "sessionKey")).id; id != "" {
					p.String(id)
				} else {
					p.Null()
				}
			}
			return nil
		})
	}
	p.End()
	h.print(p)
	p.End()
	return nil
}

func cancelSubagent(ctx context.Context, c *Call) error {
	g, err := c.connect(ctx, gateway.Write)
	if err != nil {
		return err
	}
	defer g.Close()
	of, err := g.speaker(ctx)
	if err != nil {
		return err
	}
	word := strings.TrimSpace(c.Arg(0))
	all, more, err := g.tasks(ctx)
	if err != nil {
		return err
	}
	t, err := pick(all, of, word, more)
	if err != nil {
		return err
	}
	// A run may not stop at once.
	limited, stop := context.WithTimeout(ctx, c.budget(g.cfg)+g.slack(20*time.Second))
	defer stop()
	got, err := g.Do(limited, gateway.CancelTask{ID: t.id})
	if err != nil {
		return gatewayError(err)
	}
	cancelled := string(span.Member(got, "cancelled")) == "true"
	why := textIn(got, "reason")
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("status").String(map[bool]string{true: "cancelled", false: "error"}[cancelled])
			p.Key("taskId").String(t.id)
			optional(p, "childSessionKey", t.child)
			optional(p, "runId", t.run)
			members(p, got, "status", "taskId", "childSessionKey", "runId", "via", "gateway")
			g.print(p)
			p.End()
			return nil
		}); err != nil {
			return err
		}
	}
	if !cancelled {
		return Failf("task %s (%s) was not stopped: %s", t.id, cmp.Or(t.title, t.child), cmp.Or(why, "the gateway gave no reason"))
	}
	if !c.JSON() {
		c.Out.Printf("%s was stopped: task %s\n", cmp.Or(t.child, t.title), t.id)
	}
	return nil
}

// pick finds the task that a word means among those of a session's tree: one that is still at work before one that has ended.
func pick(all []task, of, word string, more bool) (task, error) {
	its := treeOf(all, of)
	found := slices.DeleteFunc(slices.Clone(its), func(t task) bool { return !t.is(word) })
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(its), func(t task) bool { return t.title != word })
	}
	if open := slices.DeleteFunc(slices.Clone(found), task.ended); len(open) > 0 {
		found = open
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && found[0].ended():
		return found[0], nil // the newest: that it has ended is the gateway's to say
	case len(found) > 1:
		var ids []string
		for _, t := range found {
			ids = append(ids, fmt.Sprintf("%s (%s)", t.id, cmp.Or(t.child, t.title)))
		}
		return task{}, Usagef("%q means %d tasks: %s; give the id of one", word, len(found), strings.Join(ids, ", "))
	}
	for _, t := range all {
		if t.is(word) && t.child != t.owner {
			owner := cmp.Or(t.owner, "no session")
			return task{}, &Error{Exit: ExitRefused, Code: "outside-tree", Err: fmt.Errorf("nothing was stopped: task %s is of %s, outside the tree of %s; name its owner with --as", t.id, owner, of)}
		}
	}
	err := fmt.Errorf("%s has no task %q: oc subagents list --as %s shows those that there are", of, word, of)
	if more {
		err = fmt.Errorf("%s has no task %q among the newest %s of the gateway: give the id of the task", of, word, term.Count(mostTasks))
	}
	return task{}, &Error{Exit: ExitFailed, Code: "not-found", Err: err}
}
