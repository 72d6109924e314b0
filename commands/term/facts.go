package term

import "strings"

// Fact is one line of a block: a label, and what there is to say about it.
type Fact struct {
	Label string
	Value string
	Style Style
}

// Facts writes "label  value" lines, their values one below the other. Values are escaped, and wrapped when they do not fit. Facts
// without a value are left out; ask for Unknown where that is meant.
func (o *Out) Facts(facts ...Fact) {
	widest := 0
	for _, f := range facts {
		if f.Value != "" {
			widest = max(widest, Columns(f.Label))
		}
	}
	indent := blanks(widest + 2)
	for _, f := range facts {
		if f.Value == "" {
			continue
		}
		value := Escape(f.Value)
		if !o.Wide && len(indent)+Columns(value) > o.width && o.width > len(indent)+20 {
			value = strings.TrimPrefix(Wrap(value, o.width, indent), indent)
		}
		o.Printf("%s  %s\n", Styled(Pad(Escape(f.Label), widest, false)), Styled(o.paint(f.Style, value)))
	}
}
