package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DiskAgent is the directory of an agent that was found on disk.
type DiskAgent struct {
	ID         string
	Dir        string // <agents>/<name>
	Store      string // the sessions.json in it that OpenClaw would discover; empty if there is none
	Sessions   string // its directory of transcripts; empty if there is none
	Database   string // its database; empty if there is none
	Configured bool   // StoreAgents has the id
}

// DiskAgents looks for agents in the agents directory of the state and in those that configured stores stand in
// (spec/file-store.md 1.8): real directories with sessions or a database in them, not links. What cannot be read is passed over.
func (c *Config) DiskAgents() []DiskAgent {
	configured := c.StoreAgents()
	var roots []string
	for _, agent := range configured {
		sessions := filepath.Dir(c.StorePath(agent))
		agents := filepath.Dir(filepath.Dir(sessions))
		if filepath.Base(c.StorePath(agent)) == StoreFile && filepath.Base(sessions) == "sessions" && filepath.Base(agents) == "agents" && !slices.Contains(roots, agents) {
			roots = append(roots, agents)
		}
	}
	if own := filepath.Join(c.StateDir, "agents"); !slices.Contains(roots, own) {
		roots = append(roots, own)
	}
	var found []DiskAgent
	for _, root := range roots {
		entries, _ := os.ReadDir(root)
		slices.SortFunc(entries, func(a, b os.DirEntry) int { return collate(a.Name(), b.Name()) })
		for _, entry := range entries {
			if !entry.IsDir() {
				continue
			}
			if a, ok := diskAgent(root, entry.Name()); ok {
				a.Configured = slices.Contains(configured, a.ID)
				found = append(found, a)
			}
		}
	}
	return found
}

func diskAgent(root, name string) (DiskAgent, bool) {
	a := DiskAgent{ID: NormalizeAgentID(name), Dir: filepath.Join(root, name)}
	if a.ID == MainAgent && !strings.EqualFold(name, MainAgent) {
		return a, false // a name with nothing usable in it is nobody's
	}
	if info, err := os.Stat(filepath.Join(a.Dir, "sessions")); err == nil && info.IsDir() {
		a.Sessions = filepath.Join(a.Dir, "sessions")
		if store := filepath.Join(a.Sessions, StoreFile); ownStore(root, store) {
			a.Store = store
		}
	}
	if info, err := os.Stat(filepath.Join(a.Dir, "agent", DatabaseFile)); err == nil && info.Mode().IsRegular() {
		a.Database = filepath.Join(a.Dir, "agent", DatabaseFile)
	}
	return a, a.Sessions != "" || a.Database != ""
}

// ownStore reports a regular file, not a link, that really stands below the root.
func ownStore(root, store string) bool {
	info, err := os.Lstat(store)
	return err == nil && info.Mode().IsRegular() && inside(realPath(root), realPath(store))
}

// collate orders the names of agents as a locale does: "_" and "-" before digits before letters, lower case before upper.
func collate(a, b string) int {
	weigh := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch r {
			case '_':
				return 1
			case '-':
				return 2
			}
			return r
		}, strings.ToLower(s))
	}
	if order := strings.Compare(weigh(a), weigh(b)); order != 0 {
		return order
	}
	return strings.Compare(b, a)
}
