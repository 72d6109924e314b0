package commands

import (
	"oc/commands/term"
	"oc/maintenance"
	"oc/store/span"
)

// handedMembers is what came of a change that a gateway made.
func handedMembers(p *span.Printer, d *maintenance.Done) {
	h := d.Handed
	saved := int64(0)
	if d.Run != nil {
		saved = d.Run.Saved
	}
	p.Key("committed").Object()
	p.Key("rows").Int(int64(len(h.Dropped) + len(h.Written)))
	p.Key("files").Int(int64(h.Gone))
	p.Key("freedBytes").Int(h.Freed)
	p.Key("savedBytes").Int(saved)
	p.Key("reclaimedNow").Int(max(0, h.Freed-saved))
	p.Key("notDone").Int(int64(len(h.NotDone)))
	p.End()
	p.Key("archives").Array()
	for _, path := range h.Archives {
		p.String(path)
	}
	p.End()
	p.Key("unplanned").Array()
	for _, u := range h.Unplanned {
		p.Object()
		optional(p, "key", u.Key)
		optional(p, "target", u.Target)
		p.Key("covered").Bool(u.Covered)
		p.End()
	}
	p.End()
	if d.Run != nil && len(h.Unsaved) > 0 {
		p.Key("unsaved").Array()
		for _, key := range h.Unsaved {
			p.String(key)
		}
		p.End()
	}
	if p.Key("undo"); d.Run == nil {
		p.Null()
		return
	}
	p.Object()
	p.Key("run").String(d.Run.ID)
	p.Key("possible").Bool(true)
	p.Key("covers").Object()
	p.Key("rows").Int(int64(len(h.Dropped) + len(h.Written) - len(h.Unsaved)))
	p.Key("files").Int(int64(h.Covered))
	p.End()
	p.End()
}

// handedText shows it to a person.
func handedText(c *Call, d *maintenance.Done) {
	h := d.Handed
	if h == nil {
		return
	}
	c.Out.Printf("Done by the gateway: %s and %s changed.\n", plural(len(h.Dropped)+len(h.Written), "row", "rows"), plural(h.Gone, "file", "files"))
	for _, path := range h.Archives {
		c.Out.Printf("Archived: %s\n", term.Escape(baseOf(path)))
	}
	if d.Run != nil {
		c.Out.Printf("Take it back, once the gateway is stopped, with: oc undo %s\n", d.Run.ID)
	} else if len(h.Dropped)+len(h.Written)+h.Gone > 0 {
		c.Out.Printf("Nothing was saved by oc; it cannot be taken back with oc undo.\n")
	}
}

// remarkHanded tells what a gateway did beside the plan, and what it left.
func (c *Call) remarkHanded(d *maintenance.Done) {
	if d == nil || d.Handed == nil {
		return
	}
	for _, u := range d.Handed.Unplanned {
		what := or(u.Key, u.Target)
		if u.Covered {
			c.Warnf("the gateway took %s too, which was not planned; undo brings it back", what)
		} else {
			c.Warnf("the gateway took %s too, which was not planned and was not saved", what)
		}
	}
	h := d.Handed
	if d.Run == nil {
		return
	}
	if h.Gone > h.Covered {
		c.Notef("%s of what is gone %s not saved, and oc undo does not bring %s back", plural(h.Gone-h.Covered, "file", "files"), map[bool]string{true: "is", false: "are"}[h.Gone-h.Covered == 1], map[bool]string{true: "it", false: "them"}[h.Gone-h.Covered == 1])
	}
}
