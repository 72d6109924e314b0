package visible

// class is a set of characters as a regular expression's [...] names it.
type class struct {
	ascii [128]bool
	wide  bool // all beyond ASCII, white space aside
	blank bool // white space beyond ASCII too
}

// in builds a class of ASCII characters from single ones and ranges, "a-z0-9_-":
// a hyphen is itself at the end.
func in(spec string) *class {
	c := new(class)
	for i := 0; i < len(spec); i++ {
		if i+2 < len(spec) && spec[i+1] == '-' {
			for b := spec[i]; b <= spec[i+2]; b++ {
				c.ascii[b] = true
			}
			i += 2
			continue
		}
		c.ascii[spec[i]] = true
	}
	return c
}

// notIn is the class of all that is neither white space nor among chars.
func notIn(chars string) *class {
	c := &class{wide: true}
	for i := range c.ascii {
		c.ascii[i] = space(string(rune(i)), 0) == 0
	}
	for i := range len(chars) {
		c.ascii[chars[i]] = false
	}
	return c
}

func (c *class) has(s string, i int) bool {
	if s[i] < 0x80 {
		return c.ascii[s[i]]
	}
	return c.wide && (c.blank || space(s, i) == 0)
}

// run finds where a run of a class ends. It remembers the last one, so that
// asking from many places inside one run costs one pass.
type run struct {
	*class
	start, end int
}

func (r *run) to(s string, i int) int {
	if r.start <= i && i < r.end {
		return r.end
	}
	j := i
	for j < len(s) && r.has(s, j) {
		j++
	}
	if j > i {
		r.start, r.end = i, j
	}
	return j
}

var (
	alnum  = in("A-Za-z0-9")
	ident  = in("A-Za-z0-9_")
	dashed = in("A-Za-z0-9_-")
	digits = in("0-9")
	hex    = in("A-Fa-f0-9")
)
