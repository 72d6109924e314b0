package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/config"
)

// tree writes files below a new root; a name that ends in "/" is a directory. @ in contents and in env stands for the root.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@", root)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func options(root string, env map[string]string) config.Options {
	return config.Options{Cwd: filepath.Join(root, "cwd"), Env: func(name string) string { return strings.ReplaceAll(env[name], "@", root) }}
}

func TestLocate(t *testing.T) {
	type m = map[string]string
	for _, c := range []struct {
		name          string
		files         m
		env           m
		set           func(*config.Options)
		state, config string // with the root cut off
	}{
		{"nothing there", nil, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"legacy names", m{"h/.clawdbot/clawdbot.json": ""}, m{"HOME": "@/h"}, nil, "/h/.clawdbot", "/h/.clawdbot/clawdbot.json"},
		{"new before legacy", m{"h/.clawdbot/": "", "h/.openclaw/": ""}, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"config beside a new state in the legacy place", m{"h/.clawdbot/openclaw.json": "", "h/.openclaw/": ""}, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/.clawdbot/openclaw.json"},
		{"fast tests look at nothing", m{"h/.clawdbot/clawdbot.json": ""}, m{"HOME": "@/h", "OPENCLAW_TEST_FAST": "1"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"state variable", m{"h/.openclaw/openclaw.json": ""}, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": " ~/s "}, nil, "/h/s", "/h/s/openclaw.json"},
		{"state variable, old config name", m{"h/s/clawdbot.json": ""}, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "~/s/"}, nil, "/h/s", "/h/s/clawdbot.json"},
		{"relative state", nil, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "../s"}, nil, "/s", "/s/openclaw.json"},
		{"tilde of another user", nil, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "~joe"}, nil, "/cwd/~joe", "/cwd/~joe/openclaw.json"},
		{"config variable", m{"h/.openclaw/openclaw.json": ""}, m{"HOME": "@/h", "OPENCLAW_CONFIG_PATH": "~/c.json"}, nil, "/h/.openclaw", "/h/c.json"},
		{"own home", nil, m{"HOME": "@/h", "OPENCLAW_HOME": "~/alt"}, nil, "/h/alt/.openclaw", "/h/alt/.openclaw/openclaw.json"},
		{"careless words are no home", nil, m{"HOME": "@/h", "OPENCLAW_HOME": " undefined "}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"Windows's variable", nil, m{"USERPROFILE": "@/u", "HOME": "null"}, nil, "/u/.openclaw", "/u/.openclaw/openclaw.json"},
		{"Termux", nil, m{"PREFIX": "@/data/com.termux/files/usr", "ANDROID_DATA": "/data"}, nil, "/data/com.termux/files/home/.openclaw", "/data/com.termux/files/home/.openclaw/openclaw.json"},
		{"home of the system", nil, nil, func(o *config.Options) { o.Home = filepath.Join(o.Cwd, "../sys") }, "/sys/.openclaw", "/sys/.openclaw/openclaw.json"},
		{"no home at all", nil, nil, nil, "/cwd/.openclaw", "/cwd/.openclaw/openclaw.json"},
		{"profile", m{"h/.openclaw/openclaw.json": ""}, m{"HOME": "@/h"}, func(o *config.Options) { o.Profile = "Foo" }, "/h/.openclaw-Foo", "/h/.openclaw-Foo/openclaw.json"},
		{"profile default", nil, m{"HOME": "@/h"}, func(o *config.Options) { o.Profile = "DEFAULT" }, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"profile beside a state variable", nil, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "~/s"}, func(o *config.Options) { o.Profile = "x" }, "/h/s", "/h/s/openclaw.json"},
		{"profile in the environment moves nothing", nil, m{"HOME": "@/h", "OPENCLAW_PROFILE": "x"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"dev", nil, m{"HOME": "@/h"}, func(o *config.Options) { o.Dev = true }, "/h/.openclaw-dev", "/h/.openclaw-dev/openclaw.json"},
		{"flags win", nil, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "~/s", "OPENCLAW_CONFIG_PATH": "~/c"}, func(o *config.Options) { o.StateDir, o.ConfigFile = "~/t", "d.json" }, "/h/t", "/cwd/d.json"},
		{"the working directory's .env cannot move the state", m{"cwd/.env": "OPENCLAW_STATE_DIR=@/x"}, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
		{"the state's own .env can", m{"h/.openclaw/.env": "OPENCLAW_STATE_DIR=@/x"}, m{"HOME": "@/h"}, nil, "/x", "/x/openclaw.json"},
		{"but not a state that was named", m{"h/s/.env": "OPENCLAW_STATE_DIR=@/x"}, m{"HOME": "@/h", "OPENCLAW_STATE_DIR": "~/s"}, nil, "/h/s", "/h/s/openclaw.json"},
		{"it can name the configuration", m{"h/.openclaw/.env": "OPENCLAW_CONFIG_PATH=~/c.json"}, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/c.json"},
		{"it cannot move the home that is set", m{"h/.openclaw/.env": "HOME=@/x"}, m{"HOME": "@/h"}, nil, "/h/.openclaw", "/h/.openclaw/openclaw.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, c.files)
			o := options(root, c.env)
			if c.set != nil {
				c.set(&o)
			}
			l, err := config.Locate(o)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{strings.TrimPrefix(l.StateDir, root), strings.TrimPrefix(l.ConfigFile, root)}
			if d := cmp.Diff([]string{c.state, c.config}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProfileIsChecked(t *testing.T) {
	for _, c := range []struct {
		profile string
		dev, ok bool
	}{
		{"a", false, true},
		{"A_b-9", false, true},
		{strings.Repeat("a", 64), false, true},
		{"dev", true, true},
		{strings.Repeat("a", 65), false, false},
		{"a/b", false, false},
		{"-a", false, false},
		{"a b", false, false},
		{"é", false, false},
		{"x", true, false},
	} {
		_, err := config.Load(config.Options{Cwd: t.TempDir(), Profile: c.profile, Dev: c.dev})
		var usage *config.UsageError
		if errors.As(err, &usage) == c.ok {
			t.Errorf("profile %q, dev %v: got %v", c.profile, c.dev, err)
		}
	}
}

func TestGetenv(t *testing.T) {
	root := tree(t, map[string]string{
		"cwd/.env":                       "A=cwd\nB=cwd\nOPENCLAW_X=cwd\nC=cwd",
		"h/.openclaw-dev/.env":           "A=state\nD='state'\nE=state\nOPENCLAW_X=state",
		"h/.openclaw/.env":               "F=other",
		"h/.config/openclaw/gateway.env": "G=gateway\nA=gateway",
		"h/.openclaw-dev/openclaw.json":  `{env: {vars: {E: "config", H: "vars", I: "${A}", HOME: "/x", J: "vars"}, J: "env", K: 5, shellEnv: {enabled: true}}}`,
	})
	o := options(root, map[string]string{"HOME": "@/h", "B": "process"})
	o.Dev = true
	c, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "OPENCLAW_X", "OPENCLAW_PROFILE", "OPENCLAW_GATEWAY_PORT", "HOME"} {
		got[name] = c.Getenv(name)
	}
	want := map[string]string{
		"A": "cwd", "B": "process", "C": "cwd", "D": "state", "E": "state", "F": "", "G": "", "H": "vars", "I": "", "J": "env", "K": "",
		"OPENCLAW_X": "state", "OPENCLAW_PROFILE": "dev", "OPENCLAW_GATEWAY_PORT": "19001", "HOME": root + "/h",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The env of the configuration moves the state, but not the configuration that said so.
func TestConfiguredState(t *testing.T) {
	root := tree(t, map[string]string{"h/.openclaw/openclaw.json": "{env: {OPENCLAW_STATE_DIR: '~/x'}}"})
	c, err := config.Load(options(root, map[string]string{"HOME": "@/h"}))
	must(t, err)
	got := []string{c.StateDir, c.ConfigFile, c.StorePath("main")}
	want := []string{root + "/h/x", root + "/h/.openclaw/openclaw.json", root + "/h/x/agents/main/sessions/sessions.json"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNormalizeAgentID(t *testing.T) {
	for in, want := range map[string]string{
		"": "main", "  ": "main", "Work": "work", " Ops Team ": "ops-team", "--x--": "x", "a_b-C9": "a_b-c9", "_x": "_x", "日本": "main",
		"a//b": "a-b", "é1é": "1", strings.Repeat("A", 70): strings.Repeat("a", 64), "\u212A": "k", "İx": "i-x", "-": "main", "x-": "x-", "x!": "x",
	} {
		if got := config.NormalizeAgentID(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		once := config.NormalizeAgentID(rapid.String().Draw(t, "id"))
		if once == "" || len(once) > 64 || strings.Trim(once, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			t.Fatalf("not an id: %q", once)
		}
	})
}
