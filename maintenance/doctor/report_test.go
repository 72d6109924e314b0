package doctor

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The worst come first, and those of one check stay in the order in which they were found.
func TestReportOrder(t *testing.T) {
	all := Checks()
	rapid.Check(t, func(t *rapid.T) {
		var r Report
		for i := range rapid.IntRange(0, 60).Draw(t, "findings") {
			r.Findings = append(r.Findings, Finding{
				Code:     all[rapid.IntRange(0, 4).Draw(t, "check")*len(all)/5].Code,
				Severity: rapid.SampledFrom([]Severity{Error, Warn, Info}).Draw(t, "severity"),
				Subject:  Subject{Line: i},
			})
		}
		want := slices.Clone(r.Findings)
		place := func(f Finding) int {
			return slices.IndexFunc(all, func(c Check) bool { return c.Code == f.Code })
		}
		slices.SortStableFunc(want, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(place(a), place(b)))
		})
		if r.sort(); !slices.EqualFunc(want, r.Findings, func(a, b Finding) bool { return gocmp.Equal(a, b) }) {
			t.Fatal(gocmp.Diff(want, r.Findings))
		}
	})
}
