package config

import (
	"strings"

	"oc/config/json5"
)

// Without is the text of a file of the configuration without the first of some keys that stands in it, named by paths as
// "session.maintenance.rotateBytes", and which one that was; found is false where none does. All else keeps its bytes, comments
// included. In a file that is included the place of a key says less than its name and that of the section above it, so these two
// decide. The error is that of a text that is no JSON5.
func Without(text []byte, paths []string) (out []byte, key string, found bool, err error) {
	doc, err := json5.Parse(text)
	if err != nil {
		return nil, "", false, err
	}
	var walk func(n *json5.Node, above string)
	walk = func(n *json5.Node, above string) {
		for _, m := range n.Members {
			for _, path := range paths {
				parts := strings.Split(path, ".")
				if !found && m.Key == parts[len(parts)-1] && (above == "" || above == parts[len(parts)-2]) {
					out, key, found = json5.Without(text, doc, n, m.Key), path, true
				}
			}
			if m.Value.Kind == json5.Object && !found {
				walk(m.Value, m.Key)
			}
		}
	}
	walk(doc.Root, "")
	return out, key, found, nil
}
