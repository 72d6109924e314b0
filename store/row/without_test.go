package row

import (
	"bytes"
	"strings"
	"testing"

	"oc/store/span"
)

func TestWithout(t *testing.T) {
	for in, want := range map[string]string{
		`{"skillsSnapshot":{"a":[1,2]}}`:                                            `{}`,
		`{"a":1,"skillsSnapshot":{}}`:                                               `{"a":1}`,
		`{"skillsSnapshot":{},"a":1}`:                                               `{"a":1}`,
		`{"a":1,"skillsSnapshot":{},"b":2,"systemPromptReport":[],"c":3}`:           `{"a":1,"b":2,"c":3}`,
		`{"skillsSnapshot":{},"systemPromptReport":[]}`:                             `{}`,
		`{ "a" : 1 , "skillsSnapshot" : {} , "skillsSnapshot" : 2 }`:                `{"a" : 1}`,
		`{"skills\u0053napshot":1,"a":{"skillsSnapshot":2},"b":"\"skillsSnapshot"}`: `{"a":{"skillsSnapshot":2},"b":"\"skillsSnapshot"}`,
		`[1]`:       `[1]`,
		`{}`:        `{}`,
		`{ "a" :1}`: `{ "a" :1}`,
	} {
		e, err := New("k", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, _ := e.Without(nil, SkillsSnapshot, SystemPromptReport); string(got.Val) != want {
			t.Errorf("%s: %s", in, got.Val)
		}
	}
}

// A large row is not copied where nothing goes, no room is made for what goes, and small ones share their room.
func TestWithoutCopiesNoMoreThanItKeeps(t *testing.T) {
	large := `"` + strings.Repeat("a", 4<<20) + `"`
	make := func(text string) Entry {
		e, err := New("k", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	in := make(`{"sessionId":"s","blob":` + large + `}`)
	got, rest := in.Without(nil, SkillsSnapshot)
	if &got.Val[0] != &in.Val[0] || rest != nil {
		t.Errorf("%d of %d bytes, room for %d", len(got.Val), len(in.Val), cap(rest))
	}
	in = make(`{"sessionId":"s","skillsSnapshot":` + large + `,"label":"x"}`)
	got, rest = in.Without(nil, SkillsSnapshot)
	if label, _ := got.Text(Label); string(got.Val) != `{"sessionId":"s","label":"x"}` || label != "x" || cap(rest) > pieceBytes {
		t.Errorf("%.40s, label %s, room for %d", got.Val, label, cap(rest))
	}
	second, _ := func() (Entry, []byte) {
		e := make(`{"skillsSnapshot":1,"label":"y"}`)
		return e.Without(rest, SkillsSnapshot)
	}()
	if label, _ := second.Text(Label); label != "y" || &second.Val[0] != &rest[:1][0] || string(got.Val) != `{"sessionId":"s","label":"x"}` {
		t.Errorf("%s beside %s", second.Val, got.Val)
	}
}

// What remains has every other member, each with its own value, and reads as if it had been indexed so.
func FuzzWithout(f *testing.F) {
	for _, s := range []string{`{"a":1,"skillsSnapshot":{},"b":2}`, `{"skillsSnapshot":1 , "systemPromptReport":2}`, `{"label":"x","a":[{}],"a":"\ud800"}`, `{ }`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := New("k", bytes.Clone(in))
		if (err == nil) != (span.Valid(in) == nil) {
			t.Fatalf("%q: %v", in, err)
		}
		if err != nil {
			return
		}
		got, _ := e.Without(nil, SkillsSnapshot, SystemPromptReport)
		again, err := New("k", got.Val)
		if err != nil {
			t.Fatalf("%q became %q: %v", in, got.Val, err)
		}
		var want []Member
		if whole, _ := New("k", in); span.KindOf(whole.Val) == span.Object {
			for _, m := range whole.Members() {
				if m.Field != SkillsSnapshot && m.Field != SystemPromptReport {
					want = append(want, m)
				}
			}
		}
		for _, all := range [][]Member{got.Members(), again.Members()} {
			if len(all) != len(want) {
				t.Fatalf("%q became %q", in, got.Val)
			}
			for i, m := range all {
				if m.Name != want[i].Name || m.Field != want[i].Field || !bytes.Equal(m.Val, want[i].Val) {
					t.Fatalf("%q became %q", in, got.Val)
				}
			}
		}
	})
}
