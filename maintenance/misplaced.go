package maintenance

import (
	"fmt"
	"slices"
	"strings"

	"oc/config"
)

// Where the keys of limits belong. People put them where OpenClaw never looks
// (field-reports.md S7).
var belongs = map[string]string{
	"maintenance":           "session.maintenance",
	"pruneAfter":            "session.maintenance.pruneAfter",
	"pruneDays":             "session.maintenance.pruneDays",
	"maxEntries":            "session.maintenance.maxEntries",
	"resetArchiveRetention": "session.maintenance.resetArchiveRetention",
	"maxDiskBytes":          "session.maintenance.maxDiskBytes",
	"highWaterBytes":        "session.maintenance.highWaterBytes",
	"sessionRetention":      "cron.sessionRetention",
}

// misplaced warns about limits in the wrong place: at the top, or among what
// is said of sessions, agents and cron jobs.
func misplaced(c *config.Config) (out []config.Warning) {
	var walk func(n *config.Node, path []string, deep int)
	walk = func(n *config.Node, path []string, deep int) {
		if n == nil || deep < 0 {
			return
		}
		for i, item := range n.Items {
			at := slices.Clone(path)
			at[len(at)-1] += fmt.Sprintf("[%d]", i)
			walk(item, at, deep-1)
		}
		for _, m := range n.Members {
			at := append(slices.Clone(path), m.Key)
			right, limit := belongs[m.Key]
			if !limit || right == strings.Join(at, ".") {
				walk(m.Value, at, deep-1)
				continue
			}
			file, line, col := m.Value.Place()
			out = append(out, config.Warning{File: file, KeyPath: strings.Join(at, "."), Line: line, Col: col, Reason: "OpenClaw does not look here for it; it belongs to " + right})
		}
	}
	root, _ := c.Value()
	walk(root, nil, 0)
	for _, section := range []string{"session", "agents", "cron"} {
		n, _ := c.Value(section)
		walk(n, []string{section}, 4)
	}
	return out
}
