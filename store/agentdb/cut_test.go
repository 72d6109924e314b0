package agentdb

import (
	"strings"
	"testing"
)

// A large row is not copied where nothing is cut from it, and no room is made for what is cut.
func TestCutCopiesNoMoreThanItKeeps(t *testing.T) {
	large := `"` + strings.Repeat("a", 4<<20) + `"`
	var c cutter
	in := []byte(`{"sessionId":"s","blob":` + large + `}`)
	got, err := c.cut(in)
	if err != nil || &got[0] != &in[0] || len(got) != len(in) || cap(c.free) != 0 {
		t.Errorf("%d of %d bytes, room for %d: %v", len(got), len(in), cap(c.free), err)
	}
	got, err = c.cut([]byte(`{"sessionId":"s","skillsSnapshot":` + large + `,"systemPromptReport":` + large + `,"label":"x"}`))
	if string(got) != `{"sessionId":"s","label":"x"}` || err != nil || cap(c.free) > 256<<10 {
		t.Errorf("%.40s, room for %d: %v", got, cap(c.free), err)
	}
}
