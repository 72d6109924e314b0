package commands

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"oc/maintenance/journal"
)

// The recorded cases of the real OpenClaw (fixtures/golden): what it answered must be in oc's answer with the same value; oc may say
// more. Where oc does better on purpose, divergences.json says what is expected instead.

const golden = "../fixtures/golden"

// oc runs a command line in this process.
type answer struct {
	exit        int
	out, errout string
}

func ocRun(t *testing.T, dir string, env map[string]string, args ...string) answer {
	t.Helper()
	return ocUnder(t, under{}, dir, env, args...)
}

// ocAlone is oc on a machine on which no gateway is, whoever else uses the real one.
func ocAlone(t *testing.T, dir string, env map[string]string, args ...string) answer {
	t.Helper()
	return ocUnder(t, under{journal.OS(), lonely{}, t.TempDir()}, dir, env, args...)
}

func ocUnder(t *testing.T, u under, dir string, env map[string]string, args ...string) answer {
	t.Helper()
	var out, errout bytes.Buffer
	environ := []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb"}
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	exit := Main(ctx, Process{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errout, Environ: environ, Dir: dir, Now: time.Now, under: u})
	return answer{exit, out.String(), errout.String()}
}

// failedWell is a clean failure: a status of the design and a word on standard error.
func (a answer) failedWell() bool {
	return (a.exit == ExitFailed || a.exit == ExitUsage || a.exit == ExitRefused) && strings.TrimSpace(a.errout) != ""
}

// differs names the first place where got lacks or changes something of want; "" where it has it all.
func differs(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: want an object, got %v", at, got)
		}
		for k, v := range w {
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("%s.%s: missing, want %v", at, k, v)
			}
			if d := differs(v, g[k], at+"."+k); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: want %d items, got %v", at, len(w), got)
		}
		for i := range w {
			if d := differs(w[i], g[i], at+"["+strconv.Itoa(i)+"]"); d != "" {
				return d
			}
		}
		return ""
	case float64:
		if g, ok := got.(float64); ok && math.Abs(w-g) <= 1e-9*math.Max(1, math.Abs(w)) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: want %v, got %v", at, want, got)
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// tree is the whole of a directory: path, type, mode, size, time and bytes of everything in it.
func tree(t *testing.T, root string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		line := fmt.Sprintf("%s %s %d %d", rel, info.Mode(), info.ModTime().UnixNano(), info.Size())
		switch {
		case info.Mode().IsRegular():
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			h := sha256.New()
			_, err = io.Copy(h, f)
			f.Close()
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", h.Sum(nil))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			line += " -> " + to
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

type goldenFile struct {
	Path, Text, Base64, Symlink, Mode string
	Dir                               bool
}

func lay(t *testing.T, root string, files []goldenFile) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		path := filepath.Join(root, f.Path)
		if f.Dir {
			check(os.MkdirAll(path, 0o755))
			continue
		}
		check(os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case f.Symlink != "":
			check(os.Symlink(strings.ReplaceAll(f.Symlink, "@ROOT@", root), path))
		case f.Base64 != "":
			data, err := base64.StdEncoding.DecodeString(f.Base64)
			check(err)
			check(os.WriteFile(path, data, 0o644))
		default:
			check(os.WriteFile(path, []byte(strings.ReplaceAll(f.Text, "@ROOT@", root)), 0o644))
		}
		if f.Mode != "" {
			mode, err := strconv.ParseUint(f.Mode, 8, 32)
			check(err)
			check(os.Chmod(path, fs.FileMode(mode)))
		}
	}
}

func TestListAsOpenClaw(t *testing.T) {
	var divergences struct{ List map[string]string }
	readJSON(t, golden+"/divergences.json", &divergences)
	paths, err := filepath.Glob(golden + "/list/*.json")
	if err != nil || len(paths) < 70 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		var c struct {
			Name   string
			Now    json.Number
			Env    map[string]string
			Args   []string
			Files  []goldenFile
			Expect struct {
				Exit int
				JSON json.RawMessage
			}
		}
		readJSON(t, path, &c)
		t.Run(c.Name, func(t *testing.T) {
			root := t.TempDir()
			sub := func(s string) string { return strings.ReplaceAll(s, "@ROOT@", root) }
			lay(t, root, append([]goldenFile{{Path: "cwd", Dir: true}}, c.Files...))
			env := map[string]string{"OC_NOW": c.Now.String()}
			for k, v := range c.Env {
				env[k] = sub(v)
			}
			var args []string
			for _, a := range c.Args {
				args = append(args, sub(a))
			}
			before := tree(t, root)
			a := ocRun(t, filepath.Join(root, "cwd"), env, args...)
			if tree(t, root) != before {
				t.Fatal("a command that reads changed the tree")
			}
			switch div := divergences.List[c.Name]; {
			case div == "free":
				if a.exit != 0 && !a.failedWell() || a.out+a.errout == "" {
					t.Errorf("exit %d: %s", a.exit, a.errout)
				}
			case div == "corrupt":
				if !a.failedWell() || !strings.Contains(a.errout, "store") || !strings.Contains(a.errout, root) {
					t.Errorf("want a failure that names the store, got exit %d: %s", a.exit, a.errout)
				}
			case div == "error" || c.Expect.Exit != 0:
				if !a.failedWell() {
					t.Errorf("want a failure with a reason, got exit %d: %s", a.exit, a.errout)
				}
			case a.exit != 0:
				t.Errorf("exit %d: %s", a.exit, a.errout)
			case c.Expect.JSON == nil:
				if strings.TrimSpace(a.out) == "" {
					t.Error("no output")
				}
			default:
				var want, got any
				if err := json.Unmarshal([]byte(sub(string(c.Expect.JSON))), &want); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(a.out), &got); err != nil {
					t.Fatalf("standard output is not one document: %v", err)
				}
				if d := differs(want, got, "$"); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// unpack lays out a recorded state directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]time.Time{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
					err = os.WriteFile(path, data, h.FileInfo().Mode().Perm())
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		times[path] = h.ModTime
	}
	for path, at := range times {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// What 2026.8.2 and 2026.9.6 printed for databases that they had made. Models that their code supplies are not in the data.
func TestListOfDatabasesAsOpenClaw(t *testing.T) {
	for _, name := range []string{"2026.8.2-migrated", "2026.9.6-migrated", "2026.9.6-both-present"} {
		t.Run(name, func(t *testing.T) {
			var c struct {
				Runs []struct {
					Args []string
					Now  json.Number
					JSON json.RawMessage
				}
			}
			readJSON(t, golden+"/sqlite/"+name+".json", &c)
			lists := 0
			for _, r := range c.Runs {
				if strings.Contains(strings.Join(r.Args, " "), "cleanup") {
					continue
				}
				lists++
				root := t.TempDir()
				state := filepath.Join(root, ".openclaw")
				unpack(t, golden+"/sqlite/"+name+".tar.gz", state)
				before := tree(t, state)
				a := ocRun(t, root, map[string]string{"HOME": root, "OC_NOW": r.Now.String()}, r.Args...)
				if tree(t, state) != before {
					t.Fatal("a command that reads changed the tree")
				}
				if a.exit != 0 {
					t.Fatalf("exit %d: %s", a.exit, a.errout)
				}
				var want, got map[string]any
				if err := json.Unmarshal([]byte(strings.ReplaceAll(string(r.JSON), "@STATE@", state)), &want); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(a.out), &got); err != nil {
					t.Fatal(err)
				}
				for _, row := range want["sessions"].([]any) {
					delete(row.(map[string]any), "ageMs") // the clock went on while OpenClaw ran
				}
				if d := differs(want, got, "$"); d != "" {
					t.Error(d)
				}
			}
			if lists == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// States that real gateways left behind, and one that was never migrated: every session of them is listed.
func TestRecordedStatesAreListedWhole(t *testing.T) {
	for _, c := range []struct {
		archive string
		want    map[string]int // rows by agent
	}{
		{"gateway/state-2026.7.35.tar.gz", map[string]int{"main": 8, "ops": 1}},
		{"gateway/state-2026.9.6.tar.gz", map[string]int{"main": 10, "ops": 1}},
		{"sqlite/2026.9.6-unmigrated.tar.gz", map[string]int{"main": 11, "work": 11}},
	} {
		t.Run(c.archive, func(t *testing.T) {
			root := t.TempDir()
			unpack(t, filepath.Join(golden, c.archive), root)
			before := tree(t, root)
			a := ocRun(t, root, map[string]string{"HOME": root}, "sessions", "--all-agents", "--limit", "all", "--json", "--state-dir", root)
			if a.exit != 0 {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			var got struct {
				Sessions []struct{ AgentID string }
			}
			if err := json.Unmarshal([]byte(a.out), &got); err != nil {
				t.Fatal(err)
			}
			have := map[string]int{}
			for _, s := range got.Sessions {
				have[s.AgentID]++
			}
			for agent, n := range c.want {
				if have[agent] != n {
					t.Errorf("agent %s: %d rows, want %d", agent, have[agent], n)
				}
			}
			if tree(t, root) != before {
				t.Error("reading changed the tree")
			}
		})
	}
}
