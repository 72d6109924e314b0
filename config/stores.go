package config

import (
	"os"
	"path/filepath"
	"strings"

	"oc/store/span"
)

// File names of the two eras.
const (
	StoreFile    = "sessions.json"
	DatabaseFile = "openclaw-agent.sqlite"
)

// TrajectoryDir is the folder that runs write what they do to, one file for each session; "" for beside the transcripts
// (OPENCLAW_TRAJECTORY_DIR, spec/file-store.md 4.5).
func (c *Config) TrajectoryDir() string {
	dir := span.Trim(c.Getenv("OPENCLAW_TRAJECTORY_DIR"))
	if dir == "" {
		return ""
	}
	return c.resolve(dir)
}

// StorePath returns where the sessions.json of an agent is, or would be (spec/file-store.md 1.6). Without a {agentId} in session.store
// all agents share one file.
func (c *Config) StorePath(agent string) string { return c.StorePathFor(c.session.Store, agent) }

// StorePathFor does the same for another template, as --store gives it; an empty one is the default.
func (c *Config) StorePathFor(template, agent string) string {
	agent = NormalizeAgentID(agent)
	if template == "" {
		return filepath.Join(c.StateDir, "agents", agent, "sessions", StoreFile)
	}
	return c.resolve(strings.ReplaceAll(template, "{agentId}", agent))
}

// DatabasePath returns the database that OpenClaw 2026.9.6 keeps in place of a store (spec/sqlite-store.md 1.4). A store that is not an
// agent's own may also be parted into siblings <base>.<agent>.sqlite, which only their contents tell apart.
func DatabasePath(store string) string {
	dir, base := filepath.Split(filepath.Clean(store))
	dir = filepath.Clean(dir)
	switch {
	case strings.HasSuffix(base, ".sqlite"):
		return filepath.Join(dir, base)
	case base != StoreFile:
		name := strings.TrimSuffix(base, filepath.Ext(base))
		if name == "" { // a name like .json has no extension in Node's eyes
			name = base
		}
		return filepath.Join(dir, name+".sqlite")
	}
	if agent := filepath.Dir(dir); filepath.Base(dir) == "sessions" && filepath.Base(filepath.Dir(agent)) == "agents" {
		return filepath.Join(agent, "agent", DatabaseFile)
	}
	return filepath.Join(dir, DatabaseFile)
}

// DatabaseCandidates returns the database of a store first, whether it is there or not, and then those beside it that a shared store may
// be parted into: <base>.<name>.sqlite, as far as they exist, by name. Which agents they belong to is for their contents to say.
func DatabaseCandidates(store string) []string {
	first := DatabasePath(store)
	paths := []string{first}
	dir, base := filepath.Split(first)
	if strings.HasSuffix(store, ".sqlite") || filepath.Base(filepath.Clean(dir)) == "agent" && base == DatabaseFile {
		return paths
	}
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, strings.TrimSuffix(base, "sqlite")) && strings.HasSuffix(name, ".sqlite") && name != base && entry.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// DatabasePaths returns where the database of an agent may be: that of its store first, then that of a configured agentDir.
func (c *Config) DatabasePaths(agent string) []string {
	paths := []string{DatabasePath(c.StorePath(agent))}
	if dir := filepath.Join(c.AgentDir(agent), DatabaseFile); dir != paths[0] && c.agentDirGiven(agent) {
		paths = append(paths, dir)
	}
	return paths
}

func (c *Config) agentDirGiven(agent string) bool {
	a, _ := c.Agent(agent)
	dir, _ := a.Entry.At("agentDir").Str()
	return span.Trim(dir) != ""
}

// AgentDir returns an agent's own directory, where credentials and in the SQLite era the database are.
func (c *Config) AgentDir(agent string) string {
	a, _ := c.Agent(agent)
	if dir, _ := a.Entry.At("agentDir").Str(); span.Trim(dir) != "" {
		return c.resolve(span.Trim(dir))
	}
	return filepath.Join(c.StateDir, "agents", NormalizeAgentID(agent), "agent")
}

// ArtifactDir returns where the transcripts and archives of a store or a database are: beside it, except that the database in a
// directory named agent has them in the directory sessions next to that.
func ArtifactDir(path string) string {
	dir := filepath.Dir(path)
	if strings.HasSuffix(path, ".sqlite") && filepath.Base(dir) == "agent" {
		return filepath.Join(filepath.Dir(dir), "sessions")
	}
	return dir
}
