package doctor

import (
	"fmt"
	"slices"

	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// parents hangs rows whose parent is not there on the entry before them, and
// so it does with rows that stand before their parent and are their own
// ancestors by that: OpenClaw writes a parent before what hangs on it, so that
// of a circle the link that leads down the file is the wrong one.
func (c *cure) parents(found []transcript.Finding, tree *transcript.Tree) (edits []edit, err error) {
	orphans, circle := map[int64]bool{}, map[int64]bool{}
	for _, f := range found {
		switch {
		case f.Code == transcript.OrphanParent && c.wants[f.Code]:
			orphans[f.At.Offset] = true
		case f.Code == transcript.Cycle && c.wants[f.Code]:
			circle[f.At.Offset] = true
		}
	}
	if len(orphans)+len(circle) == 0 {
		return nil, nil
	}
	last := ""
	err = c.each(func(r *transcript.Row) error {
		if r.Blank || r.Err != nil || r.ID == nil {
			return nil
		}
		why := ""
		if orphans[r.Offset] {
			why = fmt.Sprintf("whose parent %s is nowhere", r.Parent.ID)
		} else if circle[r.Offset] && r.Parent.OK() {
			if at, ok := tree.Find(string(r.Parent.ID)); ok && at.Offset >= r.Offset {
				why = fmt.Sprintf("whose parent %s does not stand before it", r.Parent.ID)
			}
		}
		if why != "" {
			said := "begins the conversation"
			if last != "" {
				said = "hangs on the entry before it, " + last
			}
			edits = append(edits, edit{at: r.Place, brk: r.Break, raw: withParent(r.Raw, last, last != ""), says: fmt.Sprintf("line %d, %s, %s", r.Line, why, said)})
		}
		if r.Kind >= transcript.Message && r.Kind <= transcript.SessionInfo && !r.Side {
			last = string(r.ID)
		}
		return nil
	})
	return edits, err
}

// kept gives a compaction that keeps from a row that is not there the row that
// hung on it: the first one that is left of what it kept. Where no row hung on
// it, nothing in the file tells what was kept, and guessing could put more
// into the context than fits.
func (c *cure) kept(found []transcript.Finding, _ *transcript.Tree) (edits []edit, err error) {
	wanted := map[int64]bool{}
	for _, f := range found {
		if f.Code == transcript.FirstKept && c.wants[f.Code] {
			wanted[f.At.Offset] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	below := map[string]string{} // the first row that hung on one that is not there
	err = c.each(func(r *transcript.Row) error {
		if r.Blank || r.Err != nil || r.ID == nil {
			return nil
		}
		if wanted[r.Offset] {
			if to := below[string(r.FirstKept.ID)]; to != "" {
				edits = append(edits, edit{
					at: r.Place, brk: r.Break, raw: withFirstKept(r.Raw, to),
					says: fmt.Sprintf("line %d keeps from %s on, which hung on the lost %s", r.Line, to, r.FirstKept.ID),
				})
			} else {
				c.decline(transcript.FirstKept, string(r.ID), keptUnknown)
			}
		}
		if r.Parent.OK() && below[string(r.Parent.ID)] == "" {
			below[string(r.Parent.ID)] = string(r.ID)
		}
		return nil
	})
	return edits, err
}

const keptUnknown = "no row hung on the one that is lost, so that nothing tells what was kept: the summary stays, and what came before it is in oc sessions history KEY"

func withFirstKept(raw []byte, id string) []byte {
	return slices.Clone(row.Edit(raw, row.Change{Name: "firstKeptEntryId", Val: span.Quote(nil, id)}))
}

// relinked is a row whose links lead to rows that go: what hung on one hangs
// on what was above it, what pointed at one points there, and what was kept
// from one is kept from the next row on that stays. says is "" where nothing
// of it changes.
func (c *cure) relinked(r *transcript.Row, above map[string]transcript.Ref, tree *transcript.Tree) (raw []byte, says string, err error) {
	raw = r.Raw
	up := func(from transcript.Ref) (to transcript.Ref, moved bool) {
		to = from
		for range len(above) + 1 {
			next, gone := above[string(to.ID)]
			if !to.OK() || !gone {
				break
			}
			to, moved = next, true
		}
		return to, moved
	}
	if to, moved := up(r.Parent); moved {
		raw = withParent(raw, string(to.ID), to.OK())
		says = fmt.Sprintf("line %d hangs on what was before the row that goes", r.Line)
	}
	for name, at := range map[string]transcript.Ref{"targetId": r.Target, "appendParentId": r.AppendTo} {
		if to, moved := up(at); moved && r.Kind == transcript.Leaf {
			val := []byte("null")
			if to.OK() {
				val = span.Quote(nil, string(to.ID))
			}
			raw = slices.Clone(row.Edit(raw, row.Change{Name: name, Val: val}))
			says = fmt.Sprintf("line %d points at what was before the row that goes", r.Line)
		}
	}
	if _, gone := above[string(r.FirstKept.ID)]; gone && r.FirstKept.OK() {
		to, err := c.nextKept(string(r.ID), string(r.FirstKept.ID), above, tree)
		if err != nil {
			return nil, "", err
		}
		raw = withFirstKept(raw, to)
		says = fmt.Sprintf("line %d keeps from the row behind the one that goes on", r.Line)
	}
	return raw, says, nil
}

// nextKept is the row that follows one that goes, on the way to a compaction;
// the compaction itself where none does, which keeps nothing.
func (c *cure) nextKept(compaction, gone string, above map[string]transcript.Ref, tree *transcript.Tree) (string, error) {
	way, _ := tree.BranchTo(compaction)
	load, met := transcript.Load(c.text), false
	for _, at := range way {
		e, err := load(at)
		if err != nil {
			return "", err
		}
		id := string(e.ID)
		if met = met || id == gone; !met {
			continue
		}
		if _, goes := above[id]; !goes {
			return id, nil
		}
	}
	return compaction, nil
}
