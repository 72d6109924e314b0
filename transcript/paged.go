package transcript

const (
	pageBits = 12
	pageLen  = 1 << pageBits
)

// paged is a list that grows without being copied: a transcript of a million
// rows costs what its rows cost. The first page grows like any list, so that a
// short transcript costs little.
type paged[T any] struct {
	pages [][]T
	n     int
}

// at is the i-th of the list. It stays where it is once the list is longer than
// a page; before that, until the next add.
func (p *paged[T]) at(i int32) *T { return &p.pages[i>>pageBits][i&(pageLen-1)] }

func (p *paged[T]) add(v T) {
	last := len(p.pages) - 1
	switch {
	case last < 0:
		p.pages, last = append(p.pages, nil), 0
	case len(p.pages[last]) == pageLen:
		p.pages, last = append(p.pages, make([]T, 0, pageLen)), last+1
	}
	p.pages[last] = append(p.pages[last], v)
	p.n++
}
