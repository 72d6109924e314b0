package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"oc/config"
	"oc/maintenance"
)

// What openclaw.json says about sessions (spec/file-store.md 1.4,
// spec/maintenance.md 1, spec/transcript.md 3 and 6.1; field-reports.md S7).
const (
	ConfigUnreadable  Code = "config-unreadable"
	ConfigRetiredKey  Code = "config-retired-key"
	ConfigUnknownKey  Code = "config-unknown-key"
	ConfigBadValue    Code = "config-bad-value"
	ConfigMisplaced   Code = "config-misplaced-limit"
	ConfigLimitOff    Code = "config-limit-off"
	ConfigLimitUnmet  Code = "config-limit-unmet"
	ConfigResetNever  Code = "config-reset-never"
	ConfigResetAlways Code = "config-reset-always"
	ConfigReserve     Code = "config-compaction-reserve"
	ConfigNote        Code = "config-note"
)

var configFamily = Family{
	Name: "config",
	Checks: []Check{
		{
			Code: ConfigUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "the configuration, or a file that it includes, cannot be read",
			Matters: "OpenClaw does not start on it, and oc goes by defaults: it reads, and removes nothing.",
			Command: "mend the file at the place that is named",
		},
		{
			Code: ConfigRetiredKey, Severity: Warn, Remedy: ByHand,
			Says:    "the configuration has a key that OpenClaw has given up",
			Matters: "It does nothing any more; later releases refuse a configuration that has it.",
			Command: "take the key out of the file",
		},
		{
			Code: ConfigUnknownKey, Severity: Error, Remedy: ByHand,
			Says:    "the configuration has a key that OpenClaw does not know",
			Matters: "OpenClaw's gateway and most of its commands refuse such a configuration.",
			Command: "take the key out, or correct its spelling",
		},
		{
			Code: ConfigBadValue, Severity: Error, Remedy: ByHand,
			Says:    "the configuration has a value that OpenClaw does not take",
			Matters: "OpenClaw's gateway and most of its commands refuse such a configuration; oc goes by the default.",
			Command: "correct the value",
		},
		{
			Code: ConfigMisplaced, Severity: Warn, Remedy: ByHand,
			Says:    "a retention limit stands where OpenClaw does not look for it",
			Matters: "The limit has no effect, and the store grows.",
			Command: "move the key to the place that is named",
		},
		{
			Code: ConfigLimitOff, Severity: Warn, Remedy: ByHand,
			Says:    "a retention limit has a value that cannot be one",
			Matters: "oc takes the limit as off. OpenClaw may take 0 by its word and remove everything.",
			Command: "correct the value, or take the key out",
		},
		{
			Code: ConfigLimitUnmet, Severity: Warn, Remedy: ByHand,
			Says:    "a limit cannot be met, because of what is protected",
			Matters: "The store stays above the limit, and OpenClaw removes what is not protected at every write.",
			Command: "raise the limit, or take out rows by name: oc sessions cleanup --dry-run shows them",
		},
		{
			Code: ConfigResetNever, Severity: Warn, Remedy: ByHand,
			Says:    "a reset policy never fires",
			Matters: "Sessions of that type go on forever, and their transcripts only grow.",
			Command: "set idleMinutes beside mode idle, or choose mode daily",
		},
		{
			Code: ConfigResetAlways, Severity: Warn, Remedy: ByHand,
			Says:    "a reset policy fires between any two messages",
			Matters: "Almost every message begins a new session, which knows nothing of the one before.",
			Command: "raise idleMinutes",
		},
		{
			Code: ConfigReserve, Severity: Warn, Remedy: ByHand,
			Says:    "the compaction reserve is too large for the model's window",
			Matters: "A session is compacted at every turn, or its memory is never saved before.",
			Command: "lower agents.defaults.compaction.reserveTokens and reserveTokensFloor, or set a larger contextTokens",
		},
		{
			Code: ConfigNote, Severity: Info, Remedy: None,
			Says:    "something in the configuration is passed over",
			Matters: "OpenClaw goes on all the same.",
		},
	},
	store: (*exam).limits,
	state: (*exam).config,
}

// retired are the keys that OpenClaw's own doctor takes out
// (spec/maintenance.md 4.4).
var retired = []string{"session.maintenance.rotateBytes", "session.parentForkMaxTokens"}

// limitKeys are where retention limits belong.
var limitKeys = []string{
	"session.maintenance.mode", "session.maintenance.pruneAfter", "session.maintenance.pruneDays", "session.maintenance.maxEntries",
	"session.maintenance.resetArchiveRetention", "session.maintenance.maxDiskBytes", "session.maintenance.highWaterBytes",
	"cron.sessionRetention", "session.dmScope",
}

func (x *exam) config() {
	c := x.Config
	var limits []config.Warning
	if _, all, err := maintenance.ReadPolicy(c, maintenance.Orders{}); err == nil {
		limits = all
	}
	also := func(key string) (evidence []string, code Code) {
		for _, w := range limits {
			if w.KeyPath == key {
				evidence = append(evidence, key+" "+w.Reason)
				if code = ConfigMisplaced; slices.Contains(limitKeys, key) {
					code = ConfigLimitOff
				}
			}
		}
		return evidence, code
	}
	told := map[string]bool{}
	for _, w := range c.Warnings {
		f := Finding{Subject: x.place(w), Evidence: []string{strings.TrimSpace(w.KeyPath + " " + w.Reason)}}
		more, code := also(w.KeyPath)
		f.Evidence = append(f.Evidence, more...)
		switch {
		case slices.Contains(retired, w.KeyPath):
			f.Code = ConfigRetiredKey
			if w.Unknown {
				f.Severity = Error
			}
		case w.Unknown:
			f.Code = ConfigUnknownKey
		case w.KeyPath == "" && c.Broken:
			f.Code = ConfigUnreadable
		case w.Harmless:
			f.Code = ConfigNote
		case code == ConfigLimitOff:
			f.Code, f.Severity = ConfigLimitOff, Error
		default:
			f.Code = ConfigBadValue
		}
		told[w.KeyPath] = true
		x.find(f)
	}
	for _, w := range limits {
		if told[w.KeyPath] {
			continue
		}
		told[w.KeyPath] = true
		more, code := also(w.KeyPath)
		x.find(Finding{Code: code, Subject: x.place(w), Evidence: more})
	}
	for _, key := range retired {
		if n, ok := c.Value(strings.Split(key, ".")...); ok && !told[key] {
			x.find(Finding{Code: ConfigRetiredKey, Subject: x.node(n), Evidence: []string{key + " is read by no release that oc knows"}})
		}
	}
	x.resets()
	x.reserve()
}

// place is where a warning points.
func (x *exam) place(w config.Warning) Subject {
	return Subject{File: w.File, Line: w.Line, Byte: -1}
}

// node is where a value of the configuration stands.
func (x *exam) node(n *config.Node) Subject {
	file, line, _ := n.Place()
	return Subject{File: file, Line: line, Byte: -1}
}

// resets looks for reset policies that never fire, or always do
// (spec/transcript.md 6.1).
func (x *exam) resets() {
	session, _ := x.Config.Value("session")
	legacy, hasLegacy := session.At("idleMinutes").Num()
	base := session.At("reset")
	judge := func(name string, n *config.Node, channel bool) {
		mode, said := n.At("mode").Str()
		if !said {
			if mode, said = base.At("mode").Str(); !said {
				mode = "daily"
			}
		}
		idle, hasIdle := n.At("idleMinutes").Num()
		if !hasIdle {
			idle, hasIdle = base.At("idleMinutes").Num()
		}
		if !hasIdle && hasLegacy && !channel {
			idle, hasIdle = legacy, true
		}
		x.judgeReset(name, n, mode, idle, hasIdle)
	}
	switch {
	case base != nil:
		judge("session.reset", base, false)
	case hasLegacy:
		x.judgeReset("session.idleMinutes", session.At("idleMinutes"), "idle", legacy, true)
	}
	for _, section := range []string{"resetByType", "resetByChannel"} {
		if n := session.At(section); n != nil {
			for _, m := range n.Members {
				judge("session."+section+"."+m.Key, m.Value, section == "resetByChannel")
			}
		}
	}
}

// soon is an idle time, in minutes, that passes between two messages of most
// chats.
const soon = 3

func (x *exam) judgeReset(name string, n *config.Node, mode string, idle float64, hasIdle bool) {
	switch {
	case mode == "none":
		x.find(Finding{Code: ConfigResetNever, Severity: Info, Subject: x.node(n), Evidence: []string{name + " has mode none"}})
	case mode == "idle" && (!hasIdle || math.Floor(idle) <= 0):
		x.find(Finding{Code: ConfigResetNever, Subject: x.node(n), Evidence: []string{name + " has mode idle and no idleMinutes: OpenClaw takes them as 0, which never passes"}})
	case hasIdle && idle > 0 && idle < soon:
		x.find(Finding{Code: ConfigResetAlways, Subject: x.node(n), Evidence: []string{fmt.Sprintf("%s resets after %g idle minutes", name, idle)}})
	}
}

// OpenClaw's defaults, in tokens (spec/transcript.md 3.3 and 4, release
// 2026.7.35).
const (
	reserveFloor = 20_000
	softReserve  = 4_000
	leastPrompt  = 8_000
)

// reserve looks for a compaction reserve that leaves no room for a prompt. The
// window is that of the default model, as far as the configuration tells.
func (x *exam) reserve() {
	compaction, _ := x.Config.Value("agents", "defaults", "compaction")
	number := func(other float64, path ...string) float64 {
		if n, ok := compaction.At(path...).Num(); ok && n >= 0 {
			return n
		}
		return other
	}
	floor := number(reserveFloor, "reserveTokensFloor")
	soft := number(softReserve, "memoryFlush", "softThresholdTokens")
	reserve := max(number(0, "reserveTokens"), floor)
	subject := Subject{File: x.Config.ConfigFile, Byte: -1}
	if compaction != nil {
		subject = x.node(compaction)
	}
	seen := map[string]bool{}
	for _, a := range x.Config.Agents() {
		m := x.Config.Model(config.ModelInput{Agent: a.ID, KeyAgent: a.RawID})
		window := m.ContextTokens
		said := fmt.Sprintf("%s/%s has a window of %.0f tokens, the reserve is %.0f", m.Provider, m.Model, window, reserve)
		if seen[said] || window <= 0 {
			continue
		}
		seen[said] = true
		most := window - min(leastPrompt, max(1, math.Floor(window/2)))
		switch {
		case window <= floor+soft:
			x.find(Finding{Code: ConfigReserve, Subject: subject, Evidence: []string{
				said,
				fmt.Sprintf("what is left before a compaction, %.0f - %.0f - %.0f, is nothing: one is due at every turn", window, floor, soft),
			}})
		case reserve > most:
			x.find(Finding{Code: ConfigReserve, Subject: subject, Evidence: []string{said, fmt.Sprintf("OpenClaw cuts it to %.0f", most)}})
		}
	}
}

// limits tells which limits of a store cannot be met.
func (x *exam) limits(s *site) {
	if s.plan == nil || s.live() == nil || x.Config.Broken {
		return
	}
	for _, u := range s.plan.Unmet {
		f := Finding{Code: ConfigLimitUnmet, Subject: s.at(""), Evidence: []string{u.Reason}}
		for _, rule := range sortedRules(u.ByRule) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%d by the rule %s", u.ByRule[rule], rule))
		}
		x.find(f)
	}
}

func sortedRules(m map[maintenance.Rule]int) (rules []maintenance.Rule) {
	for r := range m {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b maintenance.Rule) int { return strings.Compare(string(a), string(b)) })
	return rules
}
