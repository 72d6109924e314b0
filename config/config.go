// Package config finds an OpenClaw installation on disk and tells what its openclaw.json says about sessions.
//
// Load never fails over what stands in a file: a configuration that is missing is empty, one that cannot be read or holds values that
// OpenClaw would refuse falls back to the defaults, with a Warning for each. Only a misuse of oc's own flags is an error, a UsageError.
//
// The rules are those of spec/file-store.md 1 and 6.3 (OpenClaw 2026.7.35), with the agents and the databases of spec/sqlite-store.md
// 1.4 (2026.9.6). The package reads files and writes none; the environment and the working directory come in through Options.
package config

import "fmt"

// Options is what a run of oc knows before it has read anything.
type Options struct {
	Env  func(string) string // the process's environment; nil is an empty one
	Cwd  string              // absolute; relative paths start here
	Home string              // the user's home as the system knows it, used when no variable names one; may be empty

	StateDir   string // --state-dir, acts like OPENCLAW_STATE_DIR
	ConfigFile string // --config, acts like OPENCLAW_CONFIG_PATH
	Profile    string // --profile
	Dev        bool   // --dev, the profile "dev"
}

// UsageError is a wrong use of a flag; Flag is its name with the dashes.
type UsageError struct{ Flag, Reason string }

func (e *UsageError) Error() string { return e.Flag + ": " + e.Reason }

// Config is where the state is and what the configuration says. It does not change after Load and may be used from several goroutines.
type Config struct {
	Location

	// Broken says that the file, or one that it includes, could not be read or parsed. The answers are then defaults, which is
	// enough for reading and never for removing.
	Broken bool
	// Warnings are in the order of their finding: files, then keys in the order of the file.
	Warnings []Warning

	root    *Node
	session Session
	agents  []Agent
	models  *models
}

// Load finds the state and reads its configuration. The error is a *UsageError.
func Load(o Options) (*Config, error) {
	where, err := Locate(o)
	if err != nil {
		return nil, err
	}
	c := &Config{Location: *where}
	c.root = c.read()
	c.place() // the env of the configuration may name another state, as observed of 2026.7.35
	c.check()
	c.session = c.readSession()
	c.agents = c.readAgents()
	c.models = newModels(c)
	return c, nil
}

// Value returns what the configuration says at a path of keys, after includes and substitution: Value("session", "maintenance").
// It is false where nothing is said, or where what is said was refused with a warning.
func (c *Config) Value(path ...string) (*Node, bool) {
	n := c.root.At(path...)
	return n, n != nil
}

// Sound reports that the configuration was read whole and that no warning concerns the key at the path, or anything below or above it:
// a change that destroys something may rely on what it says there.
func (c *Config) Sound(path ...string) bool {
	if c.Broken {
		return false
	}
	key := joinPath(path...)
	for _, w := range c.Warnings {
		if !w.harmless && (within(w.KeyPath, key) || within(key, w.KeyPath)) {
			return false
		}
	}
	return true
}

// Warning is something in a file that OpenClaw refuses or ignores.
type Warning struct {
	File      string
	KeyPath   string // as agents.list[1].id; empty for the file as a whole
	Line, Col int    // from 1; 0 if the place is not known
	Reason    string

	harmless bool // OpenClaw itself goes on
}

// String is the warning on one line.
func (w Warning) String() string {
	at := w.File
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Col)
	}
	if w.KeyPath == "" {
		return at + ": " + w.Reason
	}
	return at + ": " + w.KeyPath + ": " + w.Reason
}

func (c *Config) warn(w Warning) { c.Warnings = append(c.Warnings, w) }

// warnAt warns about a value.
func (c *Config) warnAt(n *Node, key, reason string) {
	file, line, col := n.Place()
	c.warn(Warning{File: file, KeyPath: key, Line: line, Col: col, Reason: reason})
}
