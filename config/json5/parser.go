package json5

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// parser walks the input once. It reports errors by panicking with an *Error, which Parse recovers: the grammar stays readable.
type parser struct {
	data     []byte
	pos      int
	comments []Comment
}

func (p *parser) fail(at int, reason string) {
	line, column := Position(p.data, at)
	panic(&Error{Byte: at, Line: line, Column: column, Reason: reason})
}

// peek returns the byte at the position, or 0 at the end; the end is told apart by p.end.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) end() bool { return p.pos >= len(p.data) }

func (p *parser) rune() (rune, int) { return utf8.DecodeRune(p.data[p.pos:]) }

// describe names what stands at the position, safely for one line of text.
func (p *parser) describe() string {
	if p.end() {
		return "end of input"
	}
	r, size := p.rune()
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte 0x%02x, which is not UTF-8", p.data[p.pos])
	}
	return fmt.Sprintf("%q", r)
}

// space skips white space and comments, and remembers the comments.
func (p *parser) space() {
	for !p.end() {
		switch c := p.data[p.pos]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			p.pos++
		case c == '/':
			p.comment()
		case c >= utf8.RuneSelf:
			r, size := p.rune()
			if r != '\uFEFF' && r != '\u2028' && r != '\u2029' && !unicode.Is(unicode.Zs, r) {
				return
			}
			p.pos += size
		default:
			return
		}
	}
}

func (p *parser) comment() {
	start := p.pos
	p.pos++
	switch p.peek() {
	case '/':
		for !p.end() && p.lineTerminator() == 0 {
			p.pos++
		}
		p.comments = append(p.comments, Comment{Span: Span{start, p.pos}})
	case '*':
		for p.pos++; p.pos+1 < len(p.data); p.pos++ {
			if p.data[p.pos] == '*' && p.data[p.pos+1] == '/' {
				p.pos += 2
				p.comments = append(p.comments, Comment{Span: Span{start, p.pos}, Block: true})
				return
			}
		}
		p.fail(len(p.data), fmt.Sprintf("the comment that starts at byte %d is not closed", start))
	default:
		p.fail(start, `a "/" that starts no comment`)
	}
}

// lineTerminator returns the width of the line terminator at the position, or 0; a carriage return and line feed are one.
func (p *parser) lineTerminator() int {
	switch p.peek() {
	case '\n':
		return 1
	case '\r':
		if p.pos+1 < len(p.data) && p.data[p.pos+1] == '\n' {
			return 2
		}
		return 1
	case 0xE2: // U+2028 and U+2029
		if d := p.data[p.pos:]; len(d) >= 3 && d[1] == 0x80 && (d[2] == 0xA8 || d[2] == 0xA9) {
			return 3
		}
	}
	return 0
}

func (p *parser) value(depth int) *Node {
	start := p.pos
	node := &Node{}
	switch c := p.peek(); {
	case p.end():
		p.fail(start, "the input ends where a value should be")
	case c == '{':
		p.object(node, p.deeper(depth))
	case c == '[':
		p.array(node, p.deeper(depth))
	case c == '"' || c == '\'':
		node.Kind, node.Text = String, p.string()
	case c == 'n':
		p.word("null")
	case c == 't':
		p.word("true")
		node.Kind, node.Bool = Bool, true
	case c == 'f':
		p.word("false")
		node.Kind = Bool
	case c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' || c == 'I' || c == 'N':
		node.Kind, node.Number = Number, p.number()
	default:
		p.fail(start, "unexpected "+p.describe()+" where a value should be")
	}
	node.Span = Span{start, p.pos}
	return node
}

func (p *parser) deeper(depth int) int {
	if depth >= MaxDepth {
		p.fail(p.pos, fmt.Sprintf("nested more than %d levels deep", MaxDepth))
	}
	return depth + 1
}

func (p *parser) word(word string) {
	for i := range len(word) {
		if p.peek() != word[i] {
			p.fail(p.pos, "unexpected "+p.describe()+" in what starts like "+word)
		}
		p.pos++
	}
}

func (p *parser) array(node *Node, depth int) {
	node.Kind = Array
	open := p.pos
	p.pos++
	for {
		p.space()
		if p.peek() == ']' {
			break
		}
		if p.end() {
			p.fail(p.pos, fmt.Sprintf("the array that starts at byte %d is not closed", open))
		}
		node.Items = append(node.Items, p.value(depth))
		p.space()
		if p.peek() == ',' {
			p.pos++
			continue
		}
		if p.peek() != ']' {
			p.fail(p.pos, fmt.Sprintf("unexpected %s where a comma or the end of the array from byte %d should be", p.describe(), open))
		}
		break
	}
	p.pos++
}

func (p *parser) object(node *Node, depth int) {
	node.Kind = Object
	open := p.pos
	p.pos++
	seen := map[string]int{}
	for {
		p.space()
		if p.peek() == '}' {
			break
		}
		if p.end() {
			p.fail(p.pos, fmt.Sprintf("the object that starts at byte %d is not closed", open))
		}
		m := p.member(depth)
		if before, again := seen[m.Key]; again {
			node.Members[before].Shadowed = true
		}
		seen[m.Key] = len(node.Members)
		node.Members = append(node.Members, m)
		p.space()
		if p.peek() == ',' {
			p.pos++
			continue
		}
		if p.peek() != '}' {
			p.fail(p.pos, fmt.Sprintf("unexpected %s where a comma or the end of the object from byte %d should be", p.describe(), open))
		}
		break
	}
	p.pos++
}

func (p *parser) member(depth int) Member {
	m := Member{KeySpan: Span{Start: p.pos}}
	if c := p.peek(); c == '"' || c == '\'' {
		m.Key = p.string()
	} else {
		m.Key = p.identifier()
	}
	m.KeySpan.End = p.pos
	p.space()
	if p.peek() != ':' {
		p.fail(p.pos, fmt.Sprintf("unexpected %s where the colon after the key at byte %d should be", p.describe(), m.KeySpan.Start))
	}
	p.pos++
	p.space()
	m.Value = p.value(depth)
	return m
}
