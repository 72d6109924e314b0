package transcript

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Case says whether capitals and small letters are the same to a search.
type Case uint8

// The ways to look at case. Letters are the same where Unicode's simple case
// folding says so.
const (
	SmartCase  Case = iota // they are, unless what is looked for has a capital
	IgnoreCase             // they are
	ExactCase              // they are not
)

// A Needle is what a search looks for: a text or a regular expression, in the
// decoded strings of a transcript. It may be used by several goroutines.
type Needle struct {
	text  string
	fold  bool
	runes []rune // of text, folded
	re    *regexp.Regexp
	sieve sieve
	whole bool // the sieve looks for all of the text
}

// NewNeedle looks for a text. The error says why it cannot be looked for.
func NewNeedle(text string, c Case) (*Needle, error) {
	if text == "" {
		return nil, errors.New("there is nothing to look for in an empty text")
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8")
	}
	n := &Needle{text: text, fold: folds(c, strings.IndexFunc(text, unicode.IsUpper) >= 0)}
	if n.fold {
		for _, r := range text {
			n.runes = append(n.runes, fold(r))
		}
	}
	n.sieve = newSieve([]literal{{[]rune(text), n.fold}})
	n.whole = len(n.sieve.piece) == len(text)
	return n, nil
}

// NewPattern looks for a regular expression in the syntax of package regexp
// (RE2). One that matches an empty text matches everywhere, and is an error.
func NewPattern(expr string, c Case) (*Needle, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := &Needle{text: expr, fold: folds(c, capitals(tree))}
	if n.fold {
		expr = "(?i)" + expr
		if tree, err = syntax.Parse(expr, syntax.Perl); err != nil {
			return nil, err
		}
	}
	if n.re, err = regexp.Compile(expr); err != nil {
		return nil, err
	}
	if n.re.MatchString("") {
		return nil, fmt.Errorf("the expression %q matches an empty text, so everything", n.text)
	}
	n.sieve = newSieve(required(tree.Simplify()))
	return n, nil
}

// IgnoresCase tells whether capitals and small letters are the same.
func (n *Needle) IgnoresCase() bool { return n.fold }

func folds(c Case, capital bool) bool { return c == IgnoreCase || c == SmartCase && !capital }

// Find is the first place in a decoded text, in bytes.
func (n *Needle) Find(s string) (start, end int, ok bool) {
	switch {
	case n.re != nil:
		if at := n.re.FindStringIndex(s); at != nil {
			return at[0], at[1], true
		}
	case n.fold:
		return n.findFolded(s)
	default:
		if i := strings.Index(s, n.text); i >= 0 {
			return i, i + len(n.text), true
		}
	}
	return 0, 0, false
}

func (n *Needle) findFolded(s string) (start, end int, ok bool) {
	first := n.runes[0]
	for i := 0; i < len(s); {
		r, w := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, w = utf8.DecodeRuneInString(s[i:])
		}
		if fold(r) == first {
			if j, ok := n.here(s, i); ok {
				return i, j, true
			}
		}
		i += w
	}
	return 0, 0, false
}

// here tells whether the text stands at i, and where it ends.
func (n *Needle) here(s string, i int) (end int, ok bool) {
	for _, want := range n.runes {
		if i == len(s) {
			return 0, false
		}
		r, w := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, w = utf8.DecodeRuneInString(s[i:])
		}
		if fold(r) != want {
			return 0, false
		}
		i += w
	}
	return i, true
}

// fold is the least of the runes that r equals in any case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		least = min(least, o)
	}
	return least
}

// capitals tells whether a literal of the expression has a capital letter.
func capitals(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if unicode.IsUpper(r) && re.Flags&syntax.FoldCase == 0 {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if capitals(sub) {
			return true
		}
	}
	return false
}

// A literal is text that every match holds.
type literal struct {
	runes []rune
	fold  bool
}

// required lists texts that stand in everything that the expression matches.
func required(re *syntax.Regexp) (all []literal) {
	switch re.Op {
	case syntax.OpLiteral:
		all = append(all, literal{re.Rune, re.Flags&syntax.FoldCase != 0})
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			all = append(all, required(sub)...)
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			all = required(re.Sub[0])
		}
	}
	return all
}
