package json5

import (
	"math"
	"strconv"
)

// number reads a number: decimal with bare leading or trailing points, hexadecimal, Infinity or NaN, each with an optional sign.
func (p *parser) number() float64 {
	start := p.pos
	negative := p.peek() == '-'
	if negative || p.peek() == '+' {
		p.pos++
		start = p.pos
	}
	var n float64
	switch c := p.peek(); {
	case c == 'I':
		p.word("Infinity")
		n = math.Inf(1)
	case c == 'N':
		p.word("NaN")
		n = math.NaN()
	case c == '0' && p.pos+1 < len(p.data) && p.data[p.pos+1]|0x20 == 'x':
		p.pos += 2
		p.digits(isHex, "a hexadecimal digit")
		// A hexadecimal integer of any length is rounded correctly as a hexadecimal float.
		n, _ = strconv.ParseFloat(string(p.data[start:p.pos])+"p0", 64)
	default:
		p.decimal()
		// Out of range gives an infinity or zero, as in JavaScript.
		n, _ = strconv.ParseFloat(string(p.data[start:p.pos]), 64)
	}
	if negative {
		n = -n
	}
	return n
}

func (p *parser) decimal() {
	start := p.pos
	switch c := p.peek(); {
	case c == '0':
		p.pos++
	case c != '.':
		p.digits(isDigit, "a digit")
	}
	if p.peek() == '.' {
		bare := p.pos == start
		p.pos++
		if bare || isDigit(p.peek()) {
			p.digits(isDigit, "a digit")
		}
	}
	if p.peek()|0x20 == 'e' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		p.digits(isDigit, "a digit")
	}
}

func (p *parser) digits(is func(byte) bool, wanted string) {
	if !is(p.peek()) {
		p.fail(p.pos, "unexpected "+p.describe()+" where "+wanted+" should be")
	}
	for is(p.peek()) {
		p.pos++
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
