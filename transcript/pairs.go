package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"oc/store/span"
)

// Pairs checks that calls of tools and their results belong together, over the
// rows of one branch in order (spec/transcript.md 1.10; field-reports.md S12).
// The zero Pairs is ready to use.
type Pairs struct {
	Report func(Finding)

	open    map[string]openCall
	done    map[string]bool
	orphans map[string]Finding // results whose call may still come
	answers int                // assistant rows so far
}

type openCall struct {
	at     Finding
	answer int // the assistant row of the call, counted
}

// Add takes the next row of the branch.
func (p *Pairs) Add(e *Entry, at Place) {
	if span.KindOf(e.Message) != span.Object {
		return
	}
	f := Finding{At: at, Byte: at.Offset, ID: string(e.ID)}
	switch Role(e.Message) {
	case "assistant":
		p.answers++
		for _, c := range Calls(e.Message) {
			p.call(f, c)
		}
	case "toolResult":
		p.result(f, ResultID(e.Message))
	}
}

func (p *Pairs) report(f Finding, c Code, why string) {
	if p.Report != nil {
		f.Code, f.Why = c, why
		p.Report(f)
	}
}

func (p *Pairs) call(f Finding, c Call) {
	if c.Arguments == nil {
		p.report(f, NoArguments, fmt.Sprintf("the call of %q has no arguments", c.Name))
	}
	if c.ID == "" {
		p.report(f, NoCallID, fmt.Sprintf("a call of %q has no id", c.Name))
		return
	}
	if early, ok := p.orphans[c.ID]; ok {
		delete(p.orphans, c.ID)
		early.Other = f.At
		p.report(early, EarlyResult, "its call stands behind it")
		return
	}
	if p.open == nil {
		p.open, p.done = map[string]openCall{}, map[string]bool{}
	}
	p.open[c.ID] = openCall{f, p.answers}
}

func (p *Pairs) result(f Finding, id string) {
	switch _, open := p.open[id]; {
	case id == "":
		p.report(f, NoCallID, "the result names no call")
	case open:
		delete(p.open, id)
		p.done[id] = true
	case p.done[id]:
		p.report(f, SecondResult, "its call was answered before")
	default:
		if p.orphans == nil {
			p.orphans = map[string]Finding{}
		}
		p.orphans[id] = f
	}
}

// Check reports what is open at the end of the branch, in its order: calls
// without a result and results without a call.
func (p *Pairs) Check() {
	var list []Finding
	add := func(f Finding, c Code, why string) {
		f.Code, f.Why = c, why
		list = append(list, f)
	}
	for _, c := range p.open {
		if c.answer == p.answers {
			add(c.at, OpenCall, "the last answer waits for its result")
		} else {
			add(c.at, LostResult, "the conversation went on without its result")
		}
	}
	for _, f := range p.orphans {
		add(f, OrphanResult, "no call has its id")
	}
	slices.SortFunc(list, func(a, b Finding) int { return cmp.Compare(a.At.Offset, b.At.Offset) })
	for _, f := range list {
		p.report(f, f.Code, f.Why)
	}
}
