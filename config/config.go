// Package config finds an OpenClaw installation on disk and tells what its openclaw.json says about sessions.
//
// Load never fails over what stands in a file: a configuration that is missing is empty, one that cannot be read or holds values that
// OpenClaw would refuse falls back to the defaults, with a Warning for each. Only a misuse of oc's own flags is an error, a UsageError.
//
// The rules are those of spec/file-store.md 1 and 6.3 (OpenClaw 2026.7.35), with the agents and the databases of spec/sqlite-store.md
// 1.4 (2026.9.6). The package reads files and writes none; the environment and the working directory come in through Options.
package config

import (
	"fmt"

	"oc/config/json5"
)

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

	unsound []string // the key paths of what is wrong and not harmless
	said    map[Warning]bool
	unsaid  bool // there were more than maxWarnings

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
	if c.unsaid {
		c.Warnings = append(c.Warnings, Warning{File: c.ConfigFile, Reason: fmt.Sprintf("there are more than %d warnings; the others are not shown", maxWarnings)})
	}
	c.said = nil
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
	for _, at := range c.unsound {
		if within(at, key) || within(key, at) {
			return false
		}
	}
	return true
}

// Warning is something in a file that OpenClaw refuses or ignores. It never holds a value of the configuration, which
// may be a secret at a wrong place; of $include it holds the path.
type Warning struct {
	File      string
	KeyPath   string // as agents.list[1].id; empty for the file as a whole
	Line, Col int    // from 1; 0 if the place is not known
	Reason    string
	Unknown   bool // OpenClaw does not know the key, and refuses the configuration for it
	Harmless  bool // OpenClaw goes on all the same
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

const maxWarnings = 200

// weight says whether OpenClaw itself goes on in spite of what a warning is about.
type weight uint8

const (
	serious weight = iota
	harmless
	unknown // serious, and about the key itself
)

// warn adds a warning, once for one thing at one place: a file may be included many times.
func (c *Config) warn(w Warning) {
	c.unsound = append(c.unsound, w.KeyPath)
	c.say(w)
}

func (c *Config) say(w Warning) {
	same := w
	if w.Line > 0 {
		same.KeyPath = ""
	}
	switch {
	case c.said[same]:
	case len(c.Warnings) >= maxWarnings:
		c.unsaid = true
	default:
		if c.said == nil {
			c.said = map[Warning]bool{}
		}
		c.said[same] = true
		c.Warnings = append(c.Warnings, w)
	}
}

// warnAt warns about a value.
func (c *Config) warnAt(n *Node, key, reason string, how weight) {
	c.warnSpan(n.file, n.Span, key, reason, how)
}

// warnSpan warns about a key or a value. The place is only looked for if it will be shown: that costs a pass over the file.
func (c *Config) warnSpan(f *file, at json5.Span, key, reason string, how weight) {
	if how != harmless {
		c.unsound = append(c.unsound, key)
	}
	if len(c.Warnings) >= maxWarnings {
		c.unsaid = true
		return
	}
	w := Warning{KeyPath: key, Reason: reason, Harmless: how == harmless, Unknown: how == unknown}
	if f != nil {
		w.File = f.path
		w.Line, w.Col = json5.Position(f.data, at.Start)
	}
	c.say(w)
}
