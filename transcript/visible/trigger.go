package visible

import "sync"

import "strings"

// A text without any of these words is not looked at further. OpenClaw has the
// same filter; the results follow it.
var suspects = strings.Fields(`key token secret password passwd auth cookie signature credential card cvc cvv payment
	securitycode security-code security_code jwt= session= code=
	sk- gho_ ghp_ ghs_ ghu_ ghr_ github_pat_ glpat- gloas- xoxb- xoxa- xoxp- xoxr- xoxs- xapp- hooks.slack.com discord gsk_
	aiza ya29. 1//0 eyj pplx- fal_ fc- bb_live_ gaaaa sk_live_ sk_test_ rk_live_ rk_test_ npm_ pypi- doo_v1_ dop_v1_ dor_v1_
	dp.ct. dp.pt. dp.sa. dp.st. dp.scim. dp.audit. dckr_ bkua_ ccipat_ sbp_ ddp_ ddw_ glsa_ nfp_ cfpat- atctt3 atatt atbb
	bbdc- hrku- pat-eu1- pat-na1- apify_api_ flyv1 fio-u- tvly- exa_ syt_ retaindb_ mem0_ brv_ xai- fw- fw_ fpk_
	akid ltai hf_ api_org_ r8_`)

// bits is a set of words by their number.
type bits [4]uint64

func (b *bits) set(n uint8)      { b[n>>6] |= 1 << (n & 63) }
func (b *bits) has(n uint8) bool { return b[n>>6]&(1<<(n&63)) != 0 }

// any tells whether the sets have a word in common; the empty set has one with
// all.
func (b *bits) any(of bits) bool {
	return of == bits{} || b[0]&of[0]|b[1]&of[1]|b[2]&of[2]|b[3]&of[3] != 0
}

// A lexicon is the words that the filter and the families look for, and where to
// look: by a word's first two bytes.
type lexicon struct {
	words    []string
	by       [1 << 16]uint8 // number in lists, 0 for none
	lists    [][]uint8
	suspects bits
	needs    []bits // by family
	// Words that are suspects only in certain company.
	pass, bearer, sg, am, sk, akia, asia, dapi, url, bot bits
}

var known = sync.OnceValue(newLexicon)

func newLexicon() *lexicon {
	x := &lexicon{lists: [][]uint8{nil}}
	number := map[string]uint8{}
	word := func(w string) uint8 {
		n, ok := number[w]
		if !ok {
			n = uint8(len(x.words))
			number[w] = n
			x.words = append(x.words, w)
			at := &x.by[int(w[0])<<8|int(w[1])]
			if *at == 0 {
				*at = uint8(len(x.lists))
				x.lists = append(x.lists, nil)
			}
			x.lists[*at] = append(x.lists[*at], n)
		}
		return n
	}
	for _, w := range suspects {
		x.suspects.set(word(w))
	}
	x.needs = make([]bits, len(families))
	for i := range families {
		for _, w := range families[i].need {
			if len(w) > 1 { // one byte is too common to look for
				x.needs[i].set(word(w))
			}
		}
	}
	for _, p := range []struct {
		set  *bits
		word string
	}{
		{&x.pass, "pass="},
		{&x.bearer, "bearer"},
		{&x.sg, "sg."},
		{&x.am, "am_"},
		{&x.sk, "sk_"},
		{&x.akia, "akia"},
		{&x.asia, "asia"},
		{&x.dapi, "dapi"},
		{&x.url, "://"},
		{&x.bot, "bot"},
	} {
		p.set.set(word(p.word))
	}
	return x
}

var lowered = func() (t [256]uint8) {
	for i := range t {
		t[i] = lower(byte(i))
	}
	return t
}()

// triggers finds which of the words stand in s, in one pass.
func triggers(s string) (found bits) {
	if len(s) < 2 {
		return found
	}
	known, prev := known(), int(lowered[s[0]])
	for i := 1; i < len(s); i++ {
		c := int(lowered[s[i]])
		if l := known.by[prev<<8|c]; l != 0 {
			for _, n := range known.lists[l] {
				if !found.has(n) && hasFold(s, i-1, known.words[n]) {
					found.set(n)
				}
			}
		}
		prev = c
	}
	return found
}

// suspicious tells whether a text is worth looking at.
func suspicious(s string, found bits) bool {
	p := known()
	if found.any(p.suspects) {
		return true
	}
	return found.any(p.pass) && anyFold(s, "pass=", func(i int) bool { return edge(s, i) }) ||
		found.any(p.bearer) && anyFold(s, "bearer", func(i int) bool { return edge(s, i) && space(s, i+6) > 0 }) ||
		found.any(p.sg) && anyFold(s, "sg.", func(i int) bool { return edge(s, i) }) ||
		found.any(p.am) && anyFold(s, "am_", func(i int) bool { return i == 0 || !word(s[i-1]) }) ||
		found.any(p.sk) && anyFold(s, "sk_", func(i int) bool { return i == 0 || !word(s[i-1]) }) ||
		found.any(p.akia) && anyFold(s, "akia", func(i int) bool { return i+4 < len(s) && alnum.has(s, i+4) }) ||
		found.any(p.asia) && anyFold(s, "asia", func(i int) bool { return i+4 < len(s) && alnum.has(s, i+4) }) ||
		found.any(p.dapi) && anyFold(s, "dapi", func(i int) bool { return i+4 < len(s) && hex.has(s, i+4) }) ||
		found.any(p.url) && anyUserinfo(s) || found.any(p.bot) && anyBot(s) ||
		anyTelegram(s) || obfuscated(s)
}

func anyFold(s, lit string, ok func(i int) bool) bool {
	for i := indexFold(s, 0, lit); i >= 0; i = indexFold(s, i+1, lit) {
		if ok(i) {
			return true
		}
	}
	return false
}

func anyUserinfo(s string) bool {
	u, pw := run{class: urlUser}, run{class: userValue}
	return anyFold(s, "://", func(i int) bool {
		c := u.to(s, i+3)
		if at(s, c) != ':' {
			return false
		}
		end := pw.to(s, c+1)
		return end > c+1 && at(s, end) == '@'
	})
}

func anyBot(s string) bool {
	return anyFold(s, "bot", func(i int) bool {
		return edge(s, i) && at(s, upTo(s, i+3, digits, 6, len(s))) == ':'
	})
}

func anyTelegram(s string) bool {
	for i := 0; i < len(s); i++ {
		n := strings.IndexByte(s[i:], ':')
		if n < 0 {
			return false
		}
		i += n
		k := i
		for k > 0 && digits.has(s, k-1) {
			k--
		}
		if i-k >= 6 && (k == 0 || !word(s[k-1])) && upTo(s, i+1, dashed, 20, 20) >= 0 {
			return true
		}
	}
	return false
}

// obfuscated tells whether some name before an equals sign has percent escapes,
// plus signs or invisible characters in it.
func obfuscated(s string) bool {
	escape, state := false, 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '=':
			if escape || state == 2 {
				return true
			}
			state = 0
			i++
		case c == '%' || formName.has(s, i):
			if c == '%' && percent(s, i) {
				escape = true
			}
			if state == 1 {
				state = 2
			}
			i++
			continue
		default:
			w := invisible(s, i)
			if w > 0 {
				if state == 0 {
					state = 1
				}
				i += w
			} else {
				w, _ = char(s, i)
				state = 0
				i += w
			}
		}
		escape = false
	}
	return false
}
