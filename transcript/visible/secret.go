package visible

import (
	"math"
	"slices"
	"strings"

	"oc/store/span"
)

// fieldKeys name members whose whole value is a secret, whatever it looks like.
// OpenClaw also counts key, session and signature among them; oc does not, as a
// pressed key and a short name are no secrets: their values must look like one.
var fieldKeys = keys("api.key api.token bearer.token token secret password passwd credential authorization private.key"+
	" access.token refresh.token id.token auth.token client.secret app.secret secret.value raw.secret secret.input"+
	" key.material jwt cookie set.cookie", paymentNames)

// secretName tells whether a member's value is a secret by its name.
func secretName(name string) bool {
	if fieldKeys.has(name) {
		return true
	}
	i := strings.LastIndexAny(name, "_-")
	if i <= 0 {
		return false
	}
	for _, end := range [...]string{"key", "token", "secret", "password", "passwd"} {
		if strings.EqualFold(name[i+1:], end) {
			return true
		}
	}
	return false
}

// value masks what looks like a credential anywhere in a raw value, and cuts
// long texts.
func (v View) value(name string, raw []byte, c *Changed, depth int) []byte {
	if depth > deepest {
		c.Truncated = true
		return []byte(`"[omitted: nested too deep]"`)
	}
	switch span.KindOf(raw) {
	case span.String:
		s, _ := span.Text(raw)
		if secretName(name) && s != "" && s != "***" && !strings.HasPrefix(s, "$") {
			c.Redacted = true
			return span.Quote(nil, mask(s))
		}
		return span.Quote(nil, v.text(s, false, c))
	case span.Number, span.Bool:
		if secretName(name) {
			c.Redacted = true
			return []byte(`"***"`)
		}
	case span.Array:
		list := items(raw)
		for i := range list {
			list[i] = v.value(name, list[i], c, depth+1)
		}
		return array(list)
	case span.Object:
		o := parseObject(raw)
		for i := range o {
			o[i].val = v.value(o[i].name, o[i].val, c, depth+1)
			o[i].name = v.name(o[i].name, c)
		}
		return o.append(nil)
	}
	return AppendJSON(nil, raw)
}

// name masks a short text that is no prose: the name of a member, a tool, a
// model, a sender.
func (v View) name(s string, c *Changed) string {
	r := v.Redactor
	if r == nil {
		r = new(Redactor)
	}
	t := r.Redact(s)
	c.Redacted = c.Redacted || t != s
	return t
}

// names masks the other members of a message or a block, those that nobody here
// knows among them: texts, what holds some, and their names. Of those that are shown already
// it masks what is neither a text nor, of these, a list or an object that has a
// form of its own.
func (v View) names(o *object, c *Changed, depth int, shown ...string) {
	if v.Upstream {
		return
	}
	for i := range *o {
		p := &(*o)[i]
		kind := span.KindOf(p.val)
		if slices.Contains(shown, p.name) && (kind == span.String || kind == span.Array && p.name == "content" || slices.Contains(formed[:], p.name)) {
			continue
		}
		switch {
		case kind == span.String && !secretName(p.name):
			s, _ := span.Text(p.val)
			if t := v.name(s, c); t != s {
				p.val = span.Quote(nil, t)
			}
		case kind == span.String || kind == span.Array || kind == span.Object:
			p.val = v.value(p.name, p.val, c, depth+1)
		}
		p.name = v.name(p.name, c)
	}
}

// formed are the members whose lists and objects are shown in a way of their own.
var formed = [...]string{"arguments", "input", "args", "details", marks}

// marks is the member with what OpenClaw knows of where a message stood.
const marks = "__openclaw"

// RedactValue masks what looks like a credential in a raw JSON value: in every
// text, and whole where the name of a member says that it is one. The result is
// compact JSON.
func RedactValue(raw []byte) []byte {
	var c Changed
	return View{Units: math.MaxInt}.value("", raw, &c, 0)
}

// Value is RedactValue with what else the owner knows to be secret. What holds
// no credential comes back byte for byte.
func (r *Redactor) Value(raw []byte) (out []byte, masked bool) {
	var c Changed
	out = View{Units: math.MaxInt, Redactor: r}.value("", raw, &c, 0)
	if !c.Redacted && !c.Truncated {
		return raw, false
	}
	return out, true
}
