package doctor

import (
	"fmt"
	"slices"

	"oc/store/span"
	"oc/transcript"
)

// noImage stands where an image was whose data was none. OpenClaw puts a text
// there too, in memory, before each run (spec/transcript.md 1.9).
const noImage = `{"type":"text","text":"[an image stood here whose data was damaged]"}`

// images puts a text in place of each image whose data is none; the other
// blocks of the message keep their bytes.
func (c *cure) images(found []transcript.Finding, _ *transcript.Tree) (edits []edit, err error) {
	if !c.wants[transcript.BadImage] {
		return nil, nil
	}
	blocks := map[int64][]int{} // of a row: where its blocks begin in it
	for _, f := range found {
		if f.Code == transcript.BadImage {
			blocks[f.At.Offset] = append(blocks[f.At.Offset], int(f.Byte-f.At.Offset))
		}
	}
	if len(blocks) == 0 {
		return nil, nil
	}
	err = c.each(func(r *transcript.Row) error {
		all := blocks[r.Offset]
		if len(all) == 0 {
			return nil
		}
		var raw []byte
		done := 0
		for _, at := range slices.Sorted(slices.Values(all)) {
			end, err := span.Skip(r.Raw, at)
			if err != nil {
				return err
			}
			raw = append(append(raw, r.Raw[done:at]...), noImage...)
			done = end
		}
		raw = append(raw, r.Raw[done:]...)
		e, err := transcript.Parse(raw)
		if err != nil {
			return err
		}
		if c.became == nil {
			c.became = map[uint64]uint64{}
		}
		for _, salt := range []uint64{inBranch, inContext} {
			c.became[markOf(r.ID, r.Message)^salt] = markOf(e.ID, e.Message) ^ salt
		}
		says := "an image whose data is none gives way to a text that says so"
		if len(all) > 1 {
			says = fmt.Sprintf("%d images whose data is none give way to texts that say so", len(all))
		}
		edits = append(edits, edit{at: r.Place, brk: r.Break, raw: raw, says: fmt.Sprintf("line %d: %s", r.Line, says)})
		return nil
	})
	return edits, err
}
