package visible

import "oc/store/span"

// deepest is how far into a value these functions go. OpenClaw nests some ten
// levels; what lies deeper is kept as it is spelled, or left out where it would
// have to be looked at.
const deepest = 64

// AppendJSON appends a raw value as JSON.stringify(JSON.parse(raw)) prints it,
// without white space. raw must be valid.
func AppendJSON(dst, raw []byte) []byte { return appendJSON(dst, raw, 0) }

func appendJSON(dst, raw []byte, depth int) []byte {
	if depth > deepest {
		return append(dst, raw...)
	}
	switch span.KindOf(raw) {
	case span.Object:
		return parseObject(raw).appendAt(dst, depth)
	case span.Array:
		dst = append(dst, '[')
		n := 0
		_, _ = span.Items(raw, 0, func(val []byte) error {
			if n > 0 {
				dst = append(dst, ',')
			}
			n++
			dst = appendJSON(dst, val, depth+1)
			return nil
		})
		return append(dst, ']')
	}
	return span.AppendValue(dst, raw, 0)
}

// object is a JSON object whose members keep their raw values.
type object []property

type property struct {
	name string
	val  []byte
}

func parseObject(raw []byte) (o object) {
	_, _ = span.Each(raw, 0, func(key, val []byte) error {
		name, _ := span.Text(key)
		o = append(o, property{name, val})
		return nil
	})
	return span.Ordered(o, func(p *property) string { return p.name })
}

func (o object) index(name string) int {
	for i := range o {
		if o[i].name == name {
			return i
		}
	}
	return -1
}

func (o object) get(name string) []byte {
	if i := o.index(name); i >= 0 {
		return o[i].val
	}
	return nil
}

// text is a member that is a string.
func (o object) text(name string) (string, bool) { return span.Text(o.get(name)) }

func (o object) is(name, text string) bool {
	s, ok := o.text(name)
	return ok && s == text
}

func (o *object) set(name string, val []byte) {
	if i := o.index(name); i >= 0 {
		(*o)[i].val = val
		return
	}
	*o = append(*o, property{name, val})
}

func (o *object) setText(name, s string) { o.set(name, span.Quote(nil, s)) }

// drop removes a member and tells whether it was there.
func (o *object) drop(names ...string) (found bool) {
	for _, name := range names {
		if i := o.index(name); i >= 0 {
			*o = append((*o)[:i:i], (*o)[i+1:]...)
			found = true
		}
	}
	return found
}

func (o object) append(dst []byte) []byte { return o.appendAt(dst, 0) }

func (o object) appendAt(dst []byte, depth int) []byte {
	dst = append(dst, '{')
	for i, p := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(span.Quote(dst, p.name), ':')
		dst = appendJSON(dst, p.val, depth+1)
	}
	return append(dst, '}')
}

// items are the raw values of an array.
func items(raw []byte) (list [][]byte) {
	_, _ = span.Items(raw, 0, func(val []byte) error {
		list = append(list, val)
		return nil
	})
	return list
}

func array(list [][]byte) []byte {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
