package doctor

import (
	"slices"

	"oc/store"
)

// A Report is what an examination has found.
type Report struct {
	Findings []Finding // the worst first, then by family, check and place
	Stores   []Store
	Size     Size
	Deep     bool
	Partly   Size // transcripts that were read at their ends alone, and their bytes
}

// A Store is one of those that were looked at.
type Store struct {
	Agent      string
	Configured bool
	Era        store.Era
	Path       string
	Rows       int // -1: it cannot be read
	Files      int // transcripts beside it
	Bytes      int64
	Other      *store.Other
}

// Count is how many findings have a code or a severity.
func (r *Report) Count(word string) (n int) {
	for i := range r.Findings {
		if f := &r.Findings[i]; string(f.Code) == word || string(f.Severity) == word {
			n += 1 + f.More
		}
	}
	return n
}

// Healthy tells that nothing worse than notes was found.
func (r *Report) Healthy() bool { return r.Count(string(Error)) == 0 && r.Count(string(Warn)) == 0 }

// sort orders the findings, the worst first; those of one check stay in the
// order in which they were found. There may be very many of them, and each is
// large: their places are sorted, then each is moved once.
func (r *Report) sort() {
	order := map[Code]uint64{}
	for i, c := range Checks() {
		order[c.Code] = uint64(i)
	}
	from := make([]uint64, len(r.Findings)) // severity, check, and where it stands
	for i := range r.Findings {
		f := &r.Findings[i]
		from[i] = uint64(f.Severity.rank())<<48 | order[f.Code]<<32 | uint64(i)
	}
	slices.Sort(from)
	for i := range from {
		held, to := r.Findings[i], i
		for at := int(uint32(from[i])); at != i; at = int(uint32(from[to])) {
			r.Findings[to], from[to] = r.Findings[at], uint64(to)
			to = at
		}
		r.Findings[to], from[to] = held, uint64(to)
	}
}
