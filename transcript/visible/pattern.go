package visible

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A Rule is one of logging.redactPatterns.
type Rule struct {
	re   *regexp.Regexp
	need string // in small letters; stands in every match, in some case
}

// may tells whether the rule can match in a text: an expression is fifty times
// slower than a look for a word.
func (p *Rule) may(s string) bool { return p.need == "" || indexFold(s, 0, p.need) >= 0 }

// Pattern reads one of logging.redactPatterns: /pattern/flags, or a pattern that
// is matched in any case. The flags i, m and s count. What only a backtracking
// engine can match, as look-around, is an error, which does not repeat the
// pattern.
func Pattern(text string) (*Rule, error) {
	text = Trim(text)
	flags := "i"
	if end := strings.LastIndexByte(text, '/'); end > 1 && text[0] == '/' && strings.Trim(text[end+1:], "gimsuy") == "" {
		flags = ""
		for _, f := range []string{"i", "m", "s"} {
			if strings.Contains(text[end+1:], f) {
				flags += f
			}
		}
		text = text[1:end]
	}
	if text == "" {
		return nil, errors.New("the pattern is empty")
	}
	if flags != "" {
		text = "(?" + flags + ")" + text
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			return nil, errors.New(bad.Code.String())
		}
		return nil, errors.New("it is no regular expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New("it cannot be compiled")
	}
	return &Rule{re, required(tree.Simplify())}, nil
}

// required is the longest text in ASCII that every match has, in small letters;
// "" if none is known. In any case k and s may also be letters beyond ASCII.
func required(re *syntax.Regexp) (best string) {
	switch re.Op {
	case syntax.OpLiteral:
		var b strings.Builder
		end := func() {
			if b.Len() > len(best) {
				best = b.String()
			}
			b.Reset()
		}
		for _, r := range re.Rune {
			c := lower(byte(r))
			if r >= utf8.RuneSelf || re.Flags&syntax.FoldCase != 0 && (c == 'k' || c == 's') {
				end()
				continue
			}
			b.WriteByte(c)
		}
		end()
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			if s := required(sub); len(s) > len(best) {
				best = s
			}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			best = required(re.Sub[0])
		}
	}
	return best
}
