package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"oc/store/lazy"
	"oc/store/span"
)

// maxDotEnv is the largest .env file that OpenClaw reads, in bytes.
const maxDotEnv = 1 << 20

// loadDotEnv reads the .env files under the process's environment: that of the working directory, which may not say much
// (see blocked.go), that of the state, and the gateway's. What is set earlier stays.
func (l *Location) loadDotEnv() {
	l.loadEnvFile(filepath.Join(l.Cwd, ".env"), blockedInWorkspace)
	state := filepath.Join(l.StateDir, ".env")
	l.loadEnvFile(state, nil)
	if !l.Explicit || state == filepath.Join(l.Home, stateNames[0], ".env") {
		l.loadEnvFile(filepath.Join(l.Home, ".config", "openclaw", "gateway.env"), nil)
	}
}

func (l *Location) loadEnvFile(path string, blocked func(string) bool) {
	data, err := readRegular(path, maxDotEnv)
	if err != nil {
		return // as OpenClaw: a file that cannot be read says nothing
	}
	for _, v := range parseDotEnv(string(data)) {
		if !variableName().MatchString(v.name) || blocked != nil && blocked(strings.ToUpper(v.name)) {
			continue
		}
		if l.Getenv(v.name) == "" {
			l.files[v.name] = v.value
		}
	}
}

var variableName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

type variable struct{ name, value string }

// dotEnvLine is compiled when a .env file is met, which is rare. An assignment is a name, "=" or ": ", and a value in one of three
// quotes, over several lines if need be, or bare up to a "#".
var dotEnvLine = sync.OnceValue(func() *regexp.Regexp {
	const space = `[\s\x{0B}\x{A0}\x{FEFF}\p{Z}]`
	quoted := func(q string) string { return space + `*` + q + `(?:\\` + q + `|[^` + q + `])*` + q }
	return regexp.MustCompile(`(?m)^` + space + `*(?:export` + space + `+)?([0-9A-Za-z_.-]+)(?:` + space + `*=` + space + `*?|:` + space + `+?)(` +
		strings.Join([]string{quoted(`'`), quoted(`"`), quoted("`"), `[^#\n]+`}, "|") + `)?` + space + `*(?:#[^\n]*)?$`)
})

// parseDotEnv reads the variables of a .env file as the npm package dotenv does, which OpenClaw uses. Of repeated names the last counts.
func parseDotEnv(text string) []variable {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var out []variable
	place := map[string]int{}
	for _, m := range dotEnvLine().FindAllStringSubmatch(text, -1) {
		v := variable{m[1], span.Trim(m[2])}
		if n := len(v.value); n >= 2 && strings.IndexByte("'\"`", v.value[0]) >= 0 && v.value[n-1] == v.value[0] {
			double := v.value[0] == '"'
			v.value = v.value[1 : n-1]
			if double {
				v.value = strings.ReplaceAll(strings.ReplaceAll(v.value, `\n`, "\n"), `\r`, "\r")
			}
		}
		if at, again := place[v.name]; again {
			out[at] = v
			continue
		}
		place[v.name] = len(out)
		out = append(out, v)
	}
	return out
}

var errNotRegular = errors.New("it is not a regular file")

// readRegular reads a regular file of at most limit bytes. It never waits on a pipe or a device.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}
