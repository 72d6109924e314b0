package span

// A Cursor walks the members of an object, and of the objects inside it that
// the caller enters, in one pass over the text:
//
//	for key, err := c.Open(); key != nil; key, err = c.Next() {
//		val, err := c.Value() // or c.Open() again, to enter it
//	}
//
// After the last member At is behind the object.
type Cursor struct {
	B  []byte
	At int
}

// Open passes white space and the start of an object, and returns the name of
// its first member with its quotes; nil where it is empty.
func (c *Cursor) Open() (key []byte, err error) {
	if c.At = white(c.B, c.At); c.At >= len(c.B) {
		return nil, cut(c.B)
	}
	if c.B[c.At] != '{' {
		return nil, unexpected(c.B, c.At, "an object")
	}
	c.At = white(c.B, c.At+1)
	if c.At < len(c.B) && c.B[c.At] == '}' {
		c.At++
		return nil, nil
	}
	return c.name()
}

// Next returns the name of the member that follows a value; nil at the end of
// the object.
func (c *Cursor) Next() (key []byte, err error) {
	if c.At = white(c.B, c.At); c.At >= len(c.B) {
		return nil, cut(c.B)
	}
	switch c.B[c.At] {
	case ',':
		c.At = white(c.B, c.At+1)
		return c.name()
	case '}':
		c.At++
		return nil, nil
	}
	return nil, unexpected(c.B, c.At, "',' or '}'")
}

// Name returns the name at the cursor and goes to its value: the caller knows
// that the cursor stands in an object, at a member.
func (c *Cursor) Name() (key []byte, err error) { return c.name() }

// Value passes the value at the cursor and returns it.
func (c *Cursor) Value() ([]byte, error) {
	end, err := Skip(c.B, c.At)
	if err != nil {
		return nil, err
	}
	val := c.B[c.At:end]
	c.At = end
	return val, nil
}

// name passes a member's name, its colon and the white space around.
func (c *Cursor) name() ([]byte, error) {
	start := c.At
	value, err := name(c.B, start)
	if err != nil {
		return nil, err
	}
	end := value
	for c.B[end-1] != '"' { // back over white space and the colon
		end--
	}
	c.At = value
	return c.B[start:end], nil
}

// Each passes white space and one object, and gives each of its members to f
// in the order of the text: the name with its quotes and the raw value, both
// slices of b. It returns the offset behind the object. An error of f ends it.
func Each(b []byte, at int, f func(key, val []byte) error) (int, error) {
	c := Cursor{b, at}
	key, err := c.Open()
	for ; key != nil; key, err = c.Next() {
		val, err := c.Value()
		if err != nil {
			return c.At, err
		}
		if err := f(key, val); err != nil {
			return c.At, err
		}
	}
	return c.At, err
}
