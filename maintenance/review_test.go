package maintenance

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// One plan archives some rows and drops others, and touches no third.
func TestReview(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	s := taken(t, `{"a": {"sessionId": "1", "updatedAt": 5, "pinnedAt": 3}, "b": {"sessionId": "2", "updatedAt": 5}, "c": {"sessionId": "3", "updatedAt": 5}}`)
	p, err := Review(s, []string{"a"}, []string{"b"}, now)
	if err != nil {
		t.Fatal(err)
	}
	did := map[Kind]string{}
	for _, a := range p.Actions {
		if !a.Applies || a.Key == "c" {
			t.Errorf("%+v", a)
		}
		did[a.Kind] += a.Key
		if a.Kind == PutRow && (!strings.Contains(string(a.Value), `"archivedAt": 1790000000000`) || strings.Contains(string(a.Value), "pinnedAt")) {
			t.Errorf("the row is written as %s", a.Value)
		}
	}
	if _, ok := did[Rewrite]; !ok || did[PutRow] != "a" || did[DropRow] != "b" {
		t.Errorf("%v", did)
	}
	if p, err := Review(taken(t, `{"a": {"updatedAt": 5}}`), nil, nil, now); err != nil || !p.Empty() {
		t.Errorf("nothing was decided: %+v %v", p, err)
	}
	for _, lists := range [][2][]string{{{"x"}, nil}, {nil, {"x"}}} {
		var none *NoRow
		if _, err := Review(taken(t, `{"a": {"updatedAt": 5}}`), lists[0], lists[1], now); !errors.As(err, &none) || none.Key != "x" {
			t.Errorf("got %v", err)
		}
	}
}
