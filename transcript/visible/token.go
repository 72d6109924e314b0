package visible

// left is what must stand before a token.
type left uint8

const (
	anywhere  left = iota
	atWord         // a word boundary
	afterName      // no letter, digit or underscore
	afterData      // no letter or digit, and not inside ;base64, data
)

// shape is a token that a vendor marks with a prefix. The prefixes are in
// lower case: OpenClaw matches all of them in any case. Follows
// spec/session-tools.md 2.6, family 17, in its order.
type shape struct {
	prefix string
	left   left
	// tail is where the token whose prefix ends at i ends, -1 if it is none.
	tail func() func(s string, i int) int
}

// some takes a run of at least min characters.
func some(c *class, min int) func() func(string, int) int {
	return func() func(string, int) int {
		r := run{class: c}
		return func(s string, i int) int {
			if end := r.to(s, i); end-i >= min {
				return end
			}
			return -1
		}
	}
}

// between takes at least min characters and at most max.
func between(c *class, min, max int) func() func(string, int) int {
	return func() func(string, int) int {
		return func(s string, i int) int { return upTo(s, i, c, min, max) }
	}
}

func upTo(s string, i int, c *class, min, max int) int {
	if i < 0 {
		return -1
	}
	j := i
	for j < len(s) && j-i < max && c.has(s, j) {
		j++
	}
	if j-i < min {
		return -1
	}
	return j
}

// bounded takes a run of at least min and gives back characters until a word
// boundary holds behind it.
func bounded(c *class, min int) func() func(string, int) int {
	return func() func(string, int) int {
		r := run{class: c}
		return func(s string, i int) int {
			end := r.to(s, i)
			for end-i >= min && !word(s[end-1]) {
				end--
			}
			if end-i < min {
				return -1
			}
			return end
		}
	}
}

// after wants one of the words and then what rest takes.
func after(words []string, rest func() func(string, int) int) func() func(string, int) int {
	return func() func(string, int) int {
		rest := rest()
		return func(s string, i int) int {
			for _, w := range words {
				if hasFold(s, i, w) {
					if end := rest(s, i+len(w)); end >= 0 {
						return end
					}
				}
			}
			return -1
		}
	}
}

// sealed takes a run that ends in '=' and n letters or digits.
func sealed(c *class, n int) func() func(string, int) int {
	return func() func(string, int) int {
		r, for0, last := run{class: c}, -1, -1
		return func(s string, i int) int {
			end := r.to(s, i)
			if end != for0 {
				for0, last = end, -1
				good := 0 // letters and digits behind the place looked at
				for j := end - 1; j > i; j-- {
					if s[j] == '=' && good >= n {
						last = j
						break
					}
					if alnum.has(s, j) {
						good++
					} else {
						good = 0
					}
				}
			}
			if last <= i {
				return -1
			}
			return last + 1 + n
		}
	}
}

// parts takes runs of at least min characters with dots between them.
func parts(c *class, min, count int) func() func(string, int) int {
	return func() func(string, int) int {
		rs := make([]run, count)
		for k := range rs {
			rs[k].class = c
		}
		return func(s string, i int) int {
			for k := range rs {
				end := rs[k].to(s, i)
				if end-i < min {
					return -1
				}
				if k == count-1 {
					return end
				}
				if end == len(s) || s[end] != '.' {
					return -1
				}
				i = end + 1
			}
			return -1
		}
	}
}

var (
	base64Pad = in("A-Za-z0-9+/=")
	atlassian = in("A-Za-z0-9+/=_-")
	oauth     = in("0-9A-Za-z_./+=-")
)

var shapes = []shape{
	{"sk-", atWord, bounded(dashed, 8)},
	{"ghp_", anywhere, some(alnum, 10)},
	{"github_pat_", anywhere, some(ident, 10)},
	{"gho_", anywhere, some(alnum, 10)},
	{"ghu_", anywhere, some(alnum, 10)},
	{"ghs_", anywhere, some(alnum, 10)},
	{"ghr_", anywhere, some(alnum, 10)},
	{"glpat-", anywhere, some(in("A-Za-z0-9._=-"), 20)},
	{"gloas-", anywhere, some(hex, 32)},
	{"xox", anywhere, after([]string{"b-", "a-", "p-", "r-", "s-"}, some(in("A-Za-z0-9-"), 10))},
	{"xapp-", anywhere, some(in("A-Za-z0-9-"), 10)},
	{"https://hooks.slack.com/", anywhere, slackHook},
	{"https://discord", anywhere, after([]string{"app.com/api/webhooks/", ".com/api/webhooks/"}, discordHook)},
	{"discord", anywhere, nil}, // found by discordBot
	{"gsk_", anywhere, some(dashed, 10)},
	{"aiza", anywhere, some(dashed, 20)},
	{"ya29.", anywhere, some(oauth, 10)},
	{"1//0", anywhere, some(oauth, 10)},
	{"eyj", anywhere, parts(dashed, 10, 3)},
	{"pplx-", anywhere, some(dashed, 10)},
	{"fal_", anywhere, some(dashed, 10)},
	{"fc-", anywhere, some(alnum, 10)},
	{"bb_live_", anywhere, some(dashed, 10)},
	{"gaaaa", afterData, some(in("A-Za-z0-9_=-"), 20)},
	{"sk_live_", anywhere, some(alnum, 10)},
	{"sk_test_", anywhere, some(alnum, 10)},
	{"rk_live_", anywhere, some(alnum, 10)},
	{"sg.", anywhere, parts(dashed, 10, 2)},
	{"npm_", anywhere, some(alnum, 10)},
	{"pypi-", anywhere, some(dashed, 10)},
	{"dop_v1_", anywhere, some(alnum, 10)},
	{"doo_v1_", anywhere, some(alnum, 10)},
	{"dor_v1_", anywhere, some(alnum, 10)},
	{"dp.", anywhere, after([]string{"ct.", "pt.", "sa.", "scim.", "audit."}, between(alnum, 40, 44))},
	{"dp.st.", anywhere, between(alnum, 40, 44)},
	{"dp.st.", anywhere, dopplerNamed},
	{"dckr_", anywhere, after([]string{"pat_", "oat_"}, between(dashed, 27, 32))},
	{"bkua_", anywhere, between(alnum, 40, 40)},
	{"ccipat_", anywhere, circle},
	{"sbp_", anywhere, between(alnum, 40, 40)},
	{"dapi", afterData, databricks},
	{"dd", anywhere, after([]string{"p_", "w_"}, between(alnum, 36, 36))},
	{"glsa_", anywhere, between(ident, 41, 41)},
	{"glc_eyj", anywhere, between(base64Pad, 60, 160)},
	{"nfp_", anywhere, between(ident, 36, 36)},
	{"cfpat-", anywhere, some(dashed, 40)},
	{"atctt3xffg", afterData, sealed(atlassian, 8)},
	{"atatt", afterData, sealed(atlassian, 8)},
	{"atbb", afterData, some(in("A-Za-z0-9_=.-"), 16)},
	{"bbdc-", anywhere, between(in("A-Za-z0-9+/@_-"), 40, 50)},
	{"hrku-aa", anywhere, some(dashed, 20)},
	{"pat-", anywhere, after([]string{"eu1-", "na1-"}, hubspot)},
	{"apify_api_", anywhere, some(in("A-Za-z0-9-"), 20)},
	{"flyv1 fm", anywhere, fly},
	{"fio-u-", anywhere, some(dashed, 40)},
	{"am_", afterName, some(dashed, 10)},
	{"sk_", afterName, some(ident, 10)},
	{"tvly-", anywhere, some(alnum, 10)},
	{"exa_", anywhere, some(alnum, 10)},
	{"syt_", anywhere, some(alnum, 10)},
	{"retaindb_", anywhere, some(alnum, 10)},
	{"hsk-", anywhere, some(alnum, 10)},
	{"mem0_", anywhere, some(alnum, 10)},
	{"brv_", anywhere, some(alnum, 10)},
	{"xai-", anywhere, some(alnum, 30)},
	{"fw-", afterName, some(alnum, 30)},
	{"fw_", afterName, some(alnum, 30)},
	{"fpk_", afterName, some(alnum, 30)},
	{"akia", afterData, between(alnum, 16, 16)},
	{"asia", afterData, between(alnum, 16, 16)},
	{"akid", anywhere, some(alnum, 10)},
	{"ltai", anywhere, some(alnum, 10)},
	{"hf_", anywhere, some(alnum, 10)},
	{"api_org_", anywhere, some(alnum, 20)},
	{"r8_", anywhere, some(alnum, 10)},
}

// find looks for the shape's tokens.
func (sh shape) find(s string) finder {
	tail := sh.tail()
	data := backRun{class: base64Pad}
	return func(from int) (match, bool) {
		for i := indexFold(s, from, sh.prefix); i >= 0; i = indexFold(s, i+1, sh.prefix) {
			start := i
			switch sh.left {
			case atWord:
				if !edge(s, i) {
					continue
				}
			case afterName, afterData:
				if i > 0 {
					start = i - before(s, i)
					c := s[i-1]
					if start < from || alnum.ascii[c&0x7f] && c < 0x80 || sh.left == afterName && c == '_' {
						continue
					}
				}
				if sh.left == afterData && hasFold(s, data.from(s, i)-len(";base64,"), ";base64,") {
					continue
				}
			}
			if end := tail(s, i+len(sh.prefix)); end >= 0 {
				return match{start, end, i, end}, true
			}
		}
		return match{}, false
	}
}

// backRun finds where the run of a class that ends at i begins, asked from left
// to right.
type backRun struct {
	*class
	start, end int
}

func (r *backRun) from(s string, i int) int {
	j := i
	for j > r.end && r.has(s, j-1) {
		j--
	}
	if j > r.end || j == i {
		r.start = j
	}
	r.end = i
	return r.start
}

func slackHook() func(string, int) int {
	return func(s string, i int) int {
		at := i
		switch {
		case hasFold(s, i, "services/t"):
			at = upTo(s, i+len("services/t"), alnum, 1, len(s))
			if !hasFold(s, at, "/b") {
				return -1
			}
			at = upTo(s, at+2, alnum, 1, len(s))
		case hasFold(s, i, "workflows/t"):
			at = upTo(s, i+len("workflows/t"), alnum, 1, len(s))
			if !hasFold(s, at, "/a") {
				return -1
			}
			at = upTo(s, at+2, alnum, 1, len(s))
			if !hasFold(s, at, "/") {
				return -1
			}
			at = upTo(s, at+1, digits, 17, 19)
		default:
			return -1
		}
		if !hasFold(s, at, "/") {
			return -1
		}
		return upTo(s, at+1, alnum, 20, len(s))
	}
}

func discordHook() func(string, int) int {
	return func(s string, i int) int {
		at := upTo(s, i, digits, 17, 20)
		if !hasFold(s, at, "/") {
			return -1
		}
		return upTo(s, at+1, dashed, 60, len(s))
	}
}

func dopplerNamed() func(string, int) int {
	return func(s string, i int) int {
		at := upTo(s, i, dashed, 2, 35)
		if !hasFold(s, at, ".") {
			return -1
		}
		return upTo(s, at+1, alnum, 40, 44)
	}
}

func circle() func(string, int) int {
	return func(s string, i int) int {
		at := upTo(s, i, alnum, 22, 22)
		if !hasFold(s, at, "_") {
			return -1
		}
		return upTo(s, at+1, hex, 40, 40)
	}
}

func databricks() func(string, int) int {
	return func(s string, i int) int {
		at := upTo(s, i, hex, 32, 32)
		if at >= 0 && at+1 < len(s) && s[at] == '-' && digits.has(s, at+1) {
			return at + 2
		}
		return at
	}
}

func hubspot() func(string, int) int {
	return func(s string, i int) int {
		for k, n := range []int{8, 4, 4, 4, 12} {
			if k > 0 {
				if !hasFold(s, i, "-") {
					return -1
				}
				i++
			}
			if i = upTo(s, i, alnum, n, n); i < 0 {
				return -1
			}
		}
		return i
	}
}

func fly() func(string, int) int {
	c := run{class: in("A-Za-z0-9+/=,_-")}
	return func(s string, i int) int {
		at := upTo(s, i, digits, 1, len(s))
		if !hasFold(s, at, "_") {
			return -1
		}
		if end := c.to(s, at+1); end-at-1 >= 100 {
			return end
		}
		return -1
	}
}

// discordBot finds a bot token within 40 units behind the word discord.
func discordBot(s string) finder {
	return func(from int) (match, bool) {
		for i := indexFold(s, from, "discord"); i >= 0; i = indexFold(s, i+1, "discord") {
			at := i + len("discord")
			for passed := 0; passed <= 40; {
				if edge(s, at) {
					end := upTo(s, at, dashed, 24, 24)
					for _, n := range []int{6, 27} {
						if !hasFold(s, end, ".") {
							end = -1
							break
						}
						end = upTo(s, end+1, dashed, n, n)
					}
					if end >= 0 && edge(s, end) {
						return match{i, end, at, end}, true
					}
				}
				if at == len(s) || hasFold(s, at, "\u2028") || hasFold(s, at, "\u2029") {
					break
				}
				w, u := char(s, at)
				at, passed = at+w, passed+u
			}
		}
		return match{}, false
	}
}

// telegram finds <digits>:<token>, with or without the word bot before it.
func telegram(prefix string) func(string) finder {
	return func(s string) finder {
		tail := bounded(dashed, 20)()
		return func(from int) (match, bool) {
			for i := from; i < len(s); i++ {
				if prefix == "" {
					if s[i] < '0' || s[i] > '9' {
						continue
					}
				} else if lower(s[i]) != prefix[0] || !hasFold(s, i, prefix) {
					continue
				}
				if !edge(s, i) {
					continue
				}
				lo := i + len(prefix)
				at := upTo(s, lo, digits, 6, len(s))
				if at < 0 {
					continue
				}
				if hasFold(s, at, ":") {
					if end := tail(s, at+1); end >= 0 {
						return match{i, end, lo, end}, true
					}
				}
				i = at - 1
			}
			return match{}, false
		}
	}
}
