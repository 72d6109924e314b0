package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"oc/maintenance"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// Session keys (field-reports.md S15; spec/file-store.md 3).
const (
	KeyAlias        Code = "key-alias"
	KeySuffix       Code = "key-repeated-suffix"
	KeyUnknownAgent Code = "key-unknown-agent"
	KeyOtherStore   Code = "key-other-store"
	KeyOdd          Code = "key-odd"
	KeyLegacy       Code = "key-legacy"
	SharedID        Code = "shared-id"
)

var keyFamily = Family{
	Name: "keys",
	Checks: []Check{
		{
			Code: KeyAlias, Severity: Warn, Remedy: ByHand,
			Says:    "one conversation is stored under several keys",
			Matters: "Messages go now to the one and now to the other, and each knows only its half.",
			Command: "see oc sessions show KEY for each; nothing is merged by itself",
		},
		{
			Code: KeySuffix, Severity: Warn, Remedy: ByHand,
			Says:    "a key ends in the same suffix more than once",
			Matters: "A key that grows at every tick makes a session each time.",
			Command: "oc sessions delete KEY, if nobody needs the row",
		},
		{
			Code: KeyUnknownAgent, Severity: Warn, Remedy: ByHand,
			Says:    "a key names an agent that is neither configured nor on disk",
			Matters: "No agent answers in this session; it may be a typing error.",
			Command: "correct the sender's configuration, or add the agent; oc sessions delete KEY takes the row out",
		},
		{
			Code: KeyOtherStore, Severity: Warn, Remedy: ByHand,
			Says:    "a key names an agent whose sessions are in another store",
			Matters: "OpenClaw looks for the session in that agent's store and does not find this row.",
			Command: "see oc sessions show KEY; the row may be left from a configuration that has changed",
		},
		{
			Code: KeyOdd, Severity: Info, Remedy: None,
			Says:    "a key holds characters that do not belong into one",
			Matters: "oc shows and finds it like any other; scripts and terminals may not.",
		},
		{
			Code: KeyLegacy, Severity: Info, Remedy: None,
			Says:    "a key has the form of old releases, without an agent",
			Matters: "The gateway renames it at its next start.",
		},
		{
			Code: SharedID, Severity: Warn, Remedy: ByHand,
			Says:    "several keys have the same session id",
			Matters: "They write into one transcript: what is said in one session shows in the other, and a reset of one ends both.",
			Command: "reset all but one of them: oc sessions reset KEY",
		},
	},
	store: (*exam).keys,
}

// A session is a row of a store of either era.
type session struct {
	*row.Entry
	id      string
	updated float64
}

// sessions are the rows that OpenClaw reads.
func (s *site) sessions() (out []session) {
	if s.database != nil {
		for i := range s.database.Rows {
			r := &s.database.Rows[i]
			out = append(out, session{&r.Entry, r.ID(), r.Updated})
		}
	} else if i := s.live(); i != nil {
		for k := range i.Rows {
			r := &i.Rows[k]
			out = append(out, session{&r.Entry, r.ID, r.Updated})
		}
	}
	return out
}

func (x *exam) keys(s *site) {
	all := s.sessions()
	alike, ids := map[string][]session{}, map[string][]session{}
	for _, r := range all {
		sign := x.sign(s, r.Key)
		alike[sign] = append(alike[sign], r)
		if r.id != "" {
			ids[r.id] = append(ids[r.id], r)
		}
	}
	for _, r := range all { // in the order of the store
		if g := alike[x.sign(s, r.Key)]; len(g) > 1 && g[0].Key == r.Key {
			f := Finding{Code: KeyAlias, Subject: s.row(newest(g).Key), Evidence: []string{
				fmt.Sprintf("%d keys mean the same: %s", len(g), strings.Join(keysOf(g), ", ")),
				"this one was used last",
			}}
			if !x.oneKey(s, g) { // OpenClaw itself does not take them for one
				f.Remedy, f.Command = ByHand, "see oc sessions show KEY for each; nothing is merged by itself"
			}
			x.find(f)
		}
		if g := distinct(ids[r.id]); len(g) > 1 && g[0].Key == r.Key {
			f := Finding{Code: SharedID, Subject: s.row(newest(g).Key), Evidence: []string{fmt.Sprintf("%d keys have it: %s", len(g), strings.Join(keysOf(g), ", "))}}
			f.ID = r.id
			x.find(f)
		}
		x.key(s, r)
	}
}

// oneKey tells whether OpenClaw stores some keys as the same one, in a file.
func (x *exam) oneKey(s *site, g []session) bool {
	return s.database == nil && !slices.ContainsFunc(g, func(r session) bool {
		return store.StoredKey(x.Config, s.Agent, r.Key) != store.StoredKey(x.Config, s.Agent, g[0].Key)
	})
}

// distinct leaves out the row of a cron job where its run has the same id, as
// OpenClaw makes them.
func distinct(g []session) []session {
	if len(g) < 2 {
		return g
	}
	runs := map[string]bool{}
	for _, r := range g {
		if row.ClassOf(r.Key) == row.ClassCronRun {
			if job, ok := row.CronJob(r.Key); ok {
				runs[job] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(g), func(r session) bool {
		job, ok := row.CronJob(r.Key)
		return ok && row.ClassOf(r.Key) == row.ClassCron && runs[job]
	})
}

func keysOf(g []session) (keys []string) {
	for _, r := range g {
		keys = append(keys, r.Key)
	}
	return keys
}

func newest(g []session) session {
	return slices.MaxFunc(g, func(a, b session) int {
		switch {
		case a.updated < b.updated:
			return -1
		case a.updated > b.updated:
			return 1
		}
		return 0
	})
}

// sign is the same for keys that mean one conversation: what OpenClaw's own
// look-up folds (spec/file-store.md 3.3), and one peer as a group and as a
// channel, or in the two spellings of a direct chat.
func (x *exam) sign(s *site, key string) string {
	k := store.StoredKey(x.Config, s.Agent, key)
	k = strings.Replace(k, ":channel:", ":group:", 1)
	return strings.Replace(k, ":dm:", ":direct:", 1)
}

func (x *exam) key(s *site, r session) {
	at := s.row(r.Key)
	agent, rest, scoped := row.Parse(r.Key)
	if strings.HasSuffix(rest, ":heartbeat:heartbeat") {
		x.find(Finding{Code: KeySuffix, Subject: at, Evidence: []string{fmt.Sprintf("it ends in :heartbeat %d times", strings.Count(rest, ":heartbeat"))}})
	}
	if why := odd(r.Key); why != "" {
		x.find(Finding{Code: KeyOdd, Subject: at, Evidence: []string{why}})
	}
	switch {
	case !scoped:
		if k := span.Lower(span.Trim(r.Key)); k != "global" && k != "unknown" && odd(r.Key) == "" {
			x.find(Finding{Code: KeyLegacy, Subject: at, Evidence: []string{"in its new form it is " + store.StoredKey(x.Config, s.Agent, r.Key)}})
		}
	case row.AgentID(agent) == row.AgentID(s.Agent) || s.Named:
	case x.Config.Broken: // nobody knows which agents there are
	case slices.Contains(x.Config.StoreAgents(), row.AgentID(agent)):
		if path := x.Config.StorePath(agent); !maintenance.SameStore(path, s.Index) {
			x.find(Finding{Code: KeyOtherStore, Subject: at, Evidence: []string{fmt.Sprintf("the sessions of %s are in %s", agent, path)}})
		}
	default:
		for _, d := range x.Config.DiskAgents() {
			if d.ID == row.AgentID(agent) {
				return
			}
		}
		x.find(Finding{Code: KeyUnknownAgent, Subject: at, Evidence: []string{fmt.Sprintf("there is no agent %s; configured are %s", agent, strings.Join(x.Config.StoreAgents(), ", "))}})
	}
}

// odd says what does not belong into a key; "" where all does.
func odd(key string) string {
	switch {
	case key == "":
		return "it is empty"
	case key == "__proto__" || key == "constructor" || key == "prototype":
		return "it is a name of JavaScript's own"
	}
	for _, c := range key {
		switch {
		case c == unicode.ReplacementChar:
			return "it is not UTF-8"
		case unicode.IsControl(c):
			return fmt.Sprintf("it holds the control character U+%04X", c)
		case unicode.Is(unicode.Cf, c):
			return fmt.Sprintf("it holds the invisible character U+%04X", c)
		}
	}
	return ""
}
