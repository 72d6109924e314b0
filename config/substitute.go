package config

import (
	"strings"

	"oc/config/json5"
	"oc/store/span"
)

// applyEnv takes the variables of the configuration's own env object, under those that are set already.
func (c *Config) applyEnv(root *Node) {
	env := root.At("env")
	if env == nil || env.Kind != json5.Object {
		return
	}
	found := map[string]string{}
	take := func(n *Node, skip ...string) {
		if n == nil {
			return
		}
	members:
		for _, m := range n.Members {
			for _, key := range skip {
				if m.Key == key {
					continue members
				}
			}
			name, value := span.Trim(m.Key), m.Value
			if text, ok := value.Str(); ok && span.Trim(text) != "" && variableName().MatchString(name) && !blockedInConfig(strings.ToUpper(name)) && !refers(text) {
				found[name] = text
			}
		}
	}
	take(env.At("vars"))
	take(env, "vars", "shellEnv")
	for name, value := range found {
		if span.Trim(c.Getenv(name)) == "" {
			c.files[name] = value
		}
	}
}

// substitute replaces ${NAME} in every string. A variable that is not set stays as it is written, as it does in OpenClaw.
func (c *Config) substitute(n *Node, path string) {
	switch n.Kind {
	case json5.String:
		text, missing := expand(n.Text, c.Getenv)
		n.Text = text
		if missing != "" && (within(path, "session") || placesAgent(path)) {
			c.warnAt(n, path, "the environment has no "+missing+"; ${"+missing+"} stays as it is written", serious)
		}
	case json5.Array:
		for i, item := range n.Items {
			c.substitute(item, indexPath(path, i))
		}
	case json5.Object:
		for _, m := range n.Members {
			c.substitute(m.Value, keyPath(path, m.Key))
		}
	}
}

// expand substitutes in one string and names the last variable that was missing. $${NAME} is a literal ${NAME}.
func expand(text string, env func(string) string) (out, missing string) {
	if !strings.Contains(text, "${") {
		return text, ""
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if name, size := reference(text[i:]); size > 0 {
			value := env(name)
			if value == "" {
				missing = name
				value = text[i : i+size]
			}
			b.WriteString(value)
			i += size
			continue
		}
		if text[i] == '$' {
			if _, size := reference(text[i+1:]); size > 0 {
				b.WriteString(text[i+1 : i+1+size])
				i += 1 + size
				continue
			}
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String(), missing
}

// reference returns the name and the length of the ${NAME} that the text starts with; the length is 0 if it does not.
func reference(text string) (name string, size int) {
	rest, ok := strings.CutPrefix(text, "${")
	if !ok {
		return "", 0
	}
	end := strings.IndexByte(rest, '}')
	if end <= 0 {
		return "", 0
	}
	for i, c := range []byte(rest[:end]) {
		if c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return "", 0
		}
	}
	return rest[:end], end + 3
}

// refers reports a ${NAME} that would be substituted.
func refers(text string) bool {
	refers := false
	expand(text, func(string) string { refers = true; return "" })
	return refers
}

// placesAgent says whether a path of the configuration decides which agents there are and where they live.
func placesAgent(path string) bool {
	return within(path, "agents") && (strings.HasSuffix(path, ".id") || strings.HasSuffix(path, ".agentDir"))
}
