package config

import (
	"os"
	"path/filepath"
	"strings"

	"oc/store/lazy"
	"oc/store/span"
)

// Names that OpenClaw gives to its state and its configuration, newest first.
var (
	stateNames  = []string{".openclaw", ".clawdbot"}
	configNames = []string{"openclaw.json", "clawdbot.json"}
)

// Location is where the state of an installation is. All paths are absolute.
type Location struct {
	Cwd        string
	Home       string
	StateDir   string
	ConfigFile string // the file that is read, or would be if it existed
	Profile    string // of the flags, or OPENCLAW_PROFILE, which by itself moves nothing; empty is the default one
	Explicit   bool   // the state directory was named by a flag, a profile or OPENCLAW_STATE_DIR

	named    bool // the configuration file was named by --config or OPENCLAW_CONFIG_PATH, not by a profile
	process  func(string) string
	profiled bool              // a profile named the configuration file
	system   string            // the home that the system knows
	flags    map[string]string // what flags put over the process's environment
	files    map[string]string // what .env files and the configuration put under it
}

// Getenv returns a variable as OpenClaw would see it: flags first, then the process, then .env files, then the env of the configuration
// (a configured value also replaces a blank one).
func (l *Location) Getenv(name string) string {
	if v, ok := l.flags[name]; ok {
		return v
	}
	if l.process != nil {
		if v := l.process(name); v != "" {
			return v
		}
	}
	return l.files[name]
}

var profileName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Locate finds the state directory and the configuration file without reading the latter (spec/file-store.md 1.1 to 1.4).
// The error is a *UsageError.
//
// Unlike that text, and as observed of `openclaw sessions` of 2026.7.35, the .env file of a state that nothing names explicitly may
// name another state, home or configuration file, which then counts.
func Locate(o Options) (*Location, error) {
	l := &Location{Cwd: o.Cwd, process: o.Env, system: o.Home, flags: map[string]string{}, files: map[string]string{}}
	l.Home = l.home()
	if err := l.applyFlags(o); err != nil {
		return nil, err
	}
	l.place()
	l.loadDotEnv()
	if before := l.StateDir; !l.Explicit {
		if l.place(); l.StateDir != before {
			l.loadDotEnv()
		}
	}
	l.ConfigFile = l.configFile()
	l.named = span.Trim(l.Getenv("OPENCLAW_CONFIG_PATH")) != "" && !l.profiled
	l.Profile = span.Trim(l.Getenv("OPENCLAW_PROFILE"))
	return l, nil
}

// place settles home and state by the variables that are known so far.
func (l *Location) place() {
	l.Home = l.home()
	l.StateDir, l.Explicit = l.stateDir()
}

// applyFlags turns flags into variables, as OpenClaw does with --profile and --dev.
func (l *Location) applyFlags(o Options) error {
	profile := o.Profile
	switch {
	case o.Dev && profile != "" && profile != "dev":
		return &UsageError{"--dev", "cannot stand beside --profile " + profile + "; --dev is the profile dev"}
	case o.Dev:
		profile = "dev"
	case profile != "" && !profileName().MatchString(profile):
		return &UsageError{"--profile", `takes 1 to 64 letters, digits, "_" and "-", and starts with a letter or digit`}
	}
	if o.StateDir != "" {
		l.flags["OPENCLAW_STATE_DIR"] = o.StateDir
	}
	if o.ConfigFile != "" {
		l.flags["OPENCLAW_CONFIG_PATH"] = o.ConfigFile
	}
	if profile == "" {
		return nil
	}
	l.flags["OPENCLAW_PROFILE"] = profile
	state := span.Trim(l.Getenv("OPENCLAW_STATE_DIR"))
	if state == "" {
		name := stateNames[0]
		if !strings.EqualFold(profile, "default") {
			name += "-" + profile
		}
		state = filepath.Join(l.Home, name)
		l.flags["OPENCLAW_STATE_DIR"] = state
	}
	if span.Trim(l.Getenv("OPENCLAW_CONFIG_PATH")) == "" {
		// OpenClaw joins before it expands a tilde; both ways name the same file.
		l.flags["OPENCLAW_CONFIG_PATH"] = filepath.Join(l.resolve(state), configNames[0])
		l.profiled = true
	}
	if profile == "dev" && span.Trim(l.Getenv("OPENCLAW_GATEWAY_PORT")) == "" {
		l.flags["OPENCLAW_GATEWAY_PORT"] = "19001"
	}
	return nil
}

func (l *Location) fast() bool { return l.Getenv("OPENCLAW_TEST_FAST") == "1" }

func (l *Location) stateDir() (dir string, explicit bool) {
	if named := span.Trim(l.Getenv("OPENCLAW_STATE_DIR")); named != "" {
		return l.resolve(named), true
	}
	canonical := filepath.Join(l.Home, stateNames[0])
	if l.fast() {
		return canonical, false
	}
	for _, name := range stateNames {
		if dir := filepath.Join(l.Home, name); exists(dir) {
			return dir, false
		}
	}
	return canonical, false
}

func (l *Location) configFile() string {
	if named := span.Trim(l.Getenv("OPENCLAW_CONFIG_PATH")); named != "" {
		return l.resolve(named)
	}
	canonical := filepath.Join(l.StateDir, configNames[0])
	if l.fast() {
		return canonical
	}
	dirs := []string{l.StateDir}
	if !l.Explicit {
		for _, name := range stateNames {
			dirs = append(dirs, filepath.Join(l.Home, name))
		}
	}
	for _, dir := range dirs {
		for _, name := range configNames {
			if file := filepath.Join(dir, name); exists(file) {
				return file
			}
		}
	}
	return canonical
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
