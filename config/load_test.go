package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
)

// load reads a configuration that stands in s/openclaw.json, with other files beside it.
func load(t testing.TB, files map[string]string, env map[string]string) (*config.Config, string) {
	t.Helper()
	root := tree(t, files)
	all := map[string]string{"HOME": "@/h", "OPENCLAW_STATE_DIR": "@/s"}
	for k, v := range env {
		all[k] = v
	}
	c, err := config.Load(options(root, all))
	if err != nil {
		t.Fatal(err)
	}
	return c, root
}

func parse(t testing.TB, text string) *config.Config {
	c, _ := load(t, map[string]string{"s/openclaw.json": text}, nil)
	return c
}

func warnings(c *config.Config, root string) []string {
	var out []string
	for _, w := range c.Warnings {
		out = append(out, strings.ReplaceAll(w.String(), root, ""))
	}
	return out
}

func TestBadConfigDoesNotStopReading(t *testing.T) {
	for _, c := range []struct {
		name, text string
		broken     bool
		warnings   []string
	}{
		{"cut", "{ broken: ", true, []string{"/s/openclaw.json:1:11: is not JSON5: the input ends where a value should be (byte 10)"}},
		{"empty", "", true, []string{"/s/openclaw.json:1:1: is not JSON5: the input ends where a value should be (byte 0)"}},
		{"an array", " []", true, []string{"/s/openclaw.json:1:2: holds an array where an object should be"}},
		{"unknown at the top", "{\n a: 1, session: {store: 'x'}}", false, []string{"/s/openclaw.json:2:2: a: is not a key that OpenClaw knows; its gateway and commands refuse such a configuration"}},
		{"unknown in session", "{session: {\n \"mod\": 1}}", false, []string{"/s/openclaw.json:2:2: session.mod: is not a key that OpenClaw knows; its gateway and commands refuse such a configuration"}},
		{"unknown in maintenance", "{session: {maintenance: {maxentries: 1}}}", false, []string{"/s/openclaw.json:1:26: session.maintenance.maxentries: is not a key that OpenClaw knows; its gateway and commands refuse such a configuration"}},
		{"bad mode", "{session: {maintenance: {mode: 'on'}}}", false, []string{`/s/openclaw.json:1:32: session.maintenance.mode: should be one of "enforce", "warn", not a string of 2 characters; it is passed over`}},
		{"bad duration", "{session: {maintenance: {pruneAfter: '1w'}}}", false, []string{`/s/openclaw.json:1:38: session.maintenance.pruneAfter: should be a duration (as 30d, 12h, 90m; a bare number is days), not a string of 2 characters; it is passed over`}},
		{"bad section", "{session: 5, agents: []}", false, []string{"/s/openclaw.json:1:11: session: should be an object, not a number; it is passed over", "/s/openclaw.json:1:22: agents: should be an object, not an array; it is passed over"}},
		{"bad item", "{agents: {list: [{id: 5}, null, {id: 'x'}]}}", false, []string{"/s/openclaw.json:1:23: agents.list[0].id: should be a string, not a number; it is passed over", "/s/openclaw.json:1:27: agents.list[1]: should be an object, not null; it is passed over"}},
		{"main key", "{session: {mainKey: 'work'}}", false, []string{`/s/openclaw.json:1:21: session.mainKey: is ignored; the main session is always "main"`}},
		{"main key is main", "{session: {mainKey: ' main '}}", false, nil},
		{"twice", "{session: {store: 'a', store: 'b'}}", false, []string{"/s/openclaw.json:1:12: session.store: stands more than once; the last one counts"}},
		{"missing variable", "{session: {store: '${NOPE}/x'}, tools: {a: '${NOPE}'}}", false, []string{"/s/openclaw.json:1:19: session.store: the environment has no NOPE; ${NOPE} stays as it is written"}},
		{"two defaults", "{agents: {list: [{id: 'a', default: true}, {id: 'b', default: true}]}}", false, []string{"/s/openclaw.json:1:63: agents: marks more than one agent as the default; the first one counts"}},
		{"a key with a newline", "{session: {'a\\nb': 1}}", false, []string{`/s/openclaw.json:1:12: session["a\nb"]: is not a key that OpenClaw knows; its gateway and commands refuse such a configuration`}},
		{"all well", "// c\n{session: {maintenance: {resetArchiveRetention: false, maxDiskBytes: '1gb', pruneAfter: 0, pruneDays: 3}, writeLock: {staleMs: 5}}, cron: {sessionRetention: '7d'}, gateway: {port: 1, auth: {}}}", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, root := load(t, map[string]string{"s/openclaw.json": c.text}, nil)
			if got.Broken != c.broken {
				t.Errorf("broken %v", got.Broken)
			}
			if d := cmp.Diff(c.warnings, warnings(got, root)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnreadableConfig(t *testing.T) {
	c, root := load(t, map[string]string{"s/openclaw.json/": ""}, nil)
	if d := cmp.Diff([]string{"/s/openclaw.json: cannot be read: it is not a regular file"}, warnings(c, root)); d != "" || !c.Broken {
		t.Errorf("a directory: broken %v, %s", c.Broken, d)
	}
	if c.DefaultAgent() != "main" || c.StorePath("main") != root+"/s/agents/main/sessions/sessions.json" {
		t.Error("no defaults")
	}
	if c, _ := load(t, map[string]string{"s/": ""}, nil); c.Broken || len(c.Warnings) > 0 {
		t.Errorf("a missing file: broken %v, %v", c.Broken, c.Warnings)
	}
}

func TestSound(t *testing.T) {
	c := parse(t, "{session: {mainKey: 'x', maintenance: {maxEntries: 'x'}, scope: 'global', scope: 'global'}}")
	for path, want := range map[string]bool{
		"": false, "session": false, "session.maintenance": false, "session.maintenance.maxEntries": false,
		"session.maintenance.maxEntriesX": true, "session.scope": true, "session.mainKey": true, "cron": true,
	} {
		var keys []string
		if path != "" {
			keys = strings.Split(path, ".")
		}
		if got := c.Sound(keys...); got != want {
			t.Errorf("%q: got %v", path, got)
		}
	}
	if parse(t, "{").Sound("cron") {
		t.Error("a broken file is sound")
	}
}

func TestValue(t *testing.T) {
	c := parse(t, "\ufeff{session: {maintenance: {pruneAfter: 1.5, resetArchiveRetention: false, maxEntries: 0x10,},\n store: '~/x', scope: 'both'}}")
	maintenance, ok := c.Value("session", "maintenance")
	if !ok {
		t.Fatal("no maintenance")
	}
	prune, _ := maintenance.At("pruneAfter").Scalar()
	entries, _ := maintenance.At("maxEntries").Num()
	if prune != "1.5" || entries != 16 || !maintenance.At("resetArchiveRetention").False() || maintenance.At("mode").False() {
		t.Errorf("got %q %v", prune, entries)
	}
	store, _ := c.Value("session", "store")
	if _, line, col := store.Place(); line != 2 || col != 9 {
		t.Errorf("store stands at %d:%d", line, col)
	}
	if _, ok := c.Value("session", "scope"); ok {
		t.Error("a refused value is still there")
	}
	want := config.Session{Scope: "per-sender", DMScope: "main", Store: "~/x"}
	if d := cmp.Diff(want, c.Session()); d != "" {
		t.Error(d)
	}
	c = parse(t, "{session: {scope: 'global', dmScope: 'per-peer', identityLinks: {alice: ['telegram:1', 'discord:2'], bob: []}}}")
	want = config.Session{Scope: "global", DMScope: "per-peer", IdentityLinks: []config.IdentityLink{{Name: "alice", Peers: []string{"telegram:1", "discord:2"}}, {Name: "bob"}}}
	if d := cmp.Diff(want, c.Session()); d != "" {
		t.Error(d)
	}
}

func TestSubstitution(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "${A}": "1", "x${A}y${_B2}": "x1y2", "$${A}": "${A}", "$$${A}": "$${A}", "${a}": "${a}", "${}": "${}", "${A": "${A",
		"$A": "$A", "${2A}": "${2A}", "${EMPTY}": "${EMPTY}", "${A}${A}": "11", "$$": "$$", "$${a}": "$${a}", "é${A}": "é1", "${A}}": "1}",
	} {
		c, _ := load(t, map[string]string{"s/openclaw.json": fmt.Sprintf("{tools: {x: [%q]}}", in)}, map[string]string{"A": "1", "_B2": "2"})
		n, _ := c.Value("tools", "x")
		if got, _ := n.Items[0].Str(); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestIncludes(t *testing.T) {
	long := strings.Repeat("a", 4096)
	for _, c := range []struct {
		name     string
		files    map[string]string
		env      map[string]string
		store    string
		broken   bool
		warnings []string
	}{
		{name: "one", files: map[string]string{"s/openclaw.json": "{$include: './i/a.json5'}", "s/i/a.json5": "{session: {$include: 'b.json'}}", "s/i/b.json": "{store: 'b'}"}, store: "b"},
		{name: "siblings win", files: map[string]string{"s/openclaw.json": "{$include: 'a.json', session: {store: 'own'}}", "s/a.json": "{session: {store: 'a', scope: 'global'}}"}, store: "own"},
		{name: "list, later wins", files: map[string]string{"s/openclaw.json": "{$include: ['a.json', 'b.json']}", "s/a.json": "{session: {store: 'a'}}", "s/b.json": "{session: {store: 'b'}}"}, store: "b"},
		{name: "absolute", files: map[string]string{"s/openclaw.json": "{$include: '@/s/a.json'}", "s/a.json": "{session: {store: 'a'}}"}, store: "a"},
		{name: "missing", files: map[string]string{"s/openclaw.json": "{$include: 'a.json', session: {store: 'own'}}"}, store: "own", broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: cannot include /s/a.json: no such file or directory"}},
		{name: "escapes", files: map[string]string{"s/openclaw.json": "{$include: '../a.json'}", "a.json": "{session: {store: 'a'}}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: /a.json is outside of the configuration's directory and of OPENCLAW_INCLUDE_ROOTS"}},
		{name: "allowed root", files: map[string]string{"s/openclaw.json": "{$include: '../x/a.json'}", "x/a.json": "{session: {store: 'a'}}"}, env: map[string]string{"OPENCLAW_INCLUDE_ROOTS": " :@/y: @/x "}, store: "a"},
		{name: "link out", files: map[string]string{"s/openclaw.json": "{$include: 'link.json'}", "a.json": "{session: {store: 'a'}}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: /s/link.json is a link that leads outside of the configuration's directory and of OPENCLAW_INCLUDE_ROOTS"}},
		{name: "hard link", files: map[string]string{"s/openclaw.json": "{$include: 'hard.json'}", "a.json": "{session: {store: 'a'}}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: cannot include /s/hard.json: it has more than one hard link"}},
		{name: "itself", files: map[string]string{"s/openclaw.json": "{$include: 'openclaw.json'}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: includes itself: /s/openclaw.json -> /s/openclaw.json"}},
		{name: "broken file", files: map[string]string{"s/openclaw.json": "{$include: 'a.json', session: {store: 'own'}}", "s/a.json": "{\n]"}, store: "own", broken: true, warnings: []string{"/s/a.json:2:1: is not JSON5: unexpected ']' where a key should be (byte 2)"}},
		{name: "too large", files: map[string]string{"s/openclaw.json": "{$include: 'a.json'}", "s/a.json": "{}" + strings.Repeat(" ", 2<<20)}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: cannot include /s/a.json: it is larger than 2097152 bytes"}},
		{name: "directory", files: map[string]string{"s/openclaw.json": "{$include: 'a'}", "s/a/": ""}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: cannot include /s/a: it is not a regular file"}},
		{name: "long", files: map[string]string{"s/openclaw.json": "{$include: '" + long + "'}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: must be shorter than 4096 characters"}},
		{name: "number", files: map[string]string{"s/openclaw.json": "{$include: 5}"}, broken: true, warnings: []string{"/s/openclaw.json:1:12: $include: must be a path or a list of paths, not a number"}},
		{name: "list of numbers", files: map[string]string{"s/openclaw.json": "{$include: ['a.json', 5]}", "s/a.json": "{session: {store: 'a'}}"}, store: "a", broken: true, warnings: []string{"/s/openclaw.json:1:23: $include[1]: must be a path, not a number"}},
		{name: "siblings of a list", files: map[string]string{"s/openclaw.json": "{agents: {$include: 'a.json', x: 1}}", "s/a.json": "[]"}, broken: true, warnings: []string{"/s/openclaw.json:1:21: agents.$include: must name files that hold objects, for other keys stand beside it"}},
		{name: "bad value in an included file", files: map[string]string{"s/openclaw.json": "{session: {$include: 'a.json'}}", "s/a.json": "{\n scope: 1}"}, warnings: []string{`/s/a.json:2:9: session.scope: should be one of "per-sender", "global", not a number; it is passed over`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, c.files)
			switch c.name {
			case "link out":
				must(t, os.Symlink("../a.json", filepath.Join(root, "s/link.json")))
			case "hard link":
				must(t, os.Link(filepath.Join(root, "a.json"), filepath.Join(root, "s/hard.json")))
			}
			env := map[string]string{"HOME": "@/h", "OPENCLAW_STATE_DIR": "@/s"}
			for k, v := range c.env {
				env[k] = v
			}
			got, err := config.Load(options(root, env))
			if err != nil {
				t.Fatal(err)
			}
			if got.Session().Store != c.store || got.Broken != c.broken {
				t.Errorf("store %q, broken %v", got.Session().Store, got.Broken)
			}
			if d := cmp.Diff(c.warnings, warnings(got, root)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestIncludeDepthAndMerge(t *testing.T) {
	for depth, broken := range map[int]bool{10: false, 11: true} {
		files := map[string]string{"s/openclaw.json": "{$include: 'f1'}"}
		for i := 1; i < depth; i++ {
			files[fmt.Sprintf("s/f%d", i)] = fmt.Sprintf("{$include: 'f%d'}", i+1)
		}
		files[fmt.Sprintf("s/f%d", depth)] = "{session: {store: 'deep'}}"
		if c, _ := load(t, files, nil); c.Broken != broken || (c.Session().Store == "deep") == broken {
			t.Errorf("%d files: broken %v, store %q", depth, c.Broken, c.Session().Store)
		}
	}
	c, _ := load(t, map[string]string{
		"s/openclaw.json": "{$include: ['a', 'b'], agents: {list: [{id: 'own'}]}}",
		"s/a":             "{agents: {list: [{id: 'a'}], defaults: {model: 'a/x', contextTokens: 1}}}",
		"s/b":             "{agents: {list: [{id: 'b'}], defaults: {model: 'b/x'}}}",
	}, nil)
	if d := cmp.Diff([]string{"a", "b", "own"}, c.StoreAgents()); d != "" {
		t.Error(d)
	}
	if a := c.Model(config.ModelInput{}); a.Provider != "b" || a.ContextTokens != 1 {
		t.Errorf("got %+v", a)
	}
}

// Includes of includes are 30 to the power of their depth, and stop; the rest of the configuration counts, but not as sound.
func TestIncludeFanOut(t *testing.T) {
	thirty := func(name string) string {
		return "{$include: ['" + strings.Repeat(name+"','", 29) + name + "']}"
	}
	files := map[string]string{"s/openclaw.json": "{$include: ['f1', 'f1'], session: {store: 'own', scop: 1}}"}
	for i := 1; i < 10; i++ {
		files[fmt.Sprintf("s/f%d", i)] = thirty(fmt.Sprintf("f%d", i+1))
	}
	files["s/f10"] = "{session: {scope: 'no'}, session: {scope: 'sorely wrong'}}"
	began := time.Now()
	c, root := load(t, files, nil)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if d := cmp.Diff([]string{
		"/s/f10:1:2: session: stands more than once; the last one counts",
		"/s/f9:1:187: $include[29]: is one inclusion too many: all together are more than 1000, or hold more than 64 MiB or 1048576 values; this and later ones are left out",
		"/s/f10:1:43: session.scope: should be one of \"per-sender\", \"global\", not a string of 12 characters; it is passed over",
		"/s/openclaw.json:1:50: session.scop: is not a key that OpenClaw knows; its gateway and commands refuse such a configuration",
	}, warnings(c, root)); d != "" || !c.Broken || c.Session().Store != "own" || c.Sound("session", "store") {
		t.Errorf("broken %v, store %q\n%s", c.Broken, c.Session().Store, d)
	}

	// Few files, but large ones.
	c, root = load(t, map[string]string{"s/openclaw.json": thirty("a") + strings.Repeat(" ", 9), "s/a": "{$include: ['b','b','b']}", "s/b": "{}" + strings.Repeat(" ", 2<<20-2)}, nil)
	if w := warnings(c, root); len(w) != 1 || !strings.Contains(w[0], "one inclusion too many") || !c.Broken {
		t.Errorf("broken %v, %v", c.Broken, w)
	}
	// Small files, but many values.
	c, root = load(t, map[string]string{"s/openclaw.json": thirty("a"), "s/a": "{session: {resetTriggers: [" + strings.Repeat("0,", 40000) + "]}}"}, nil)
	if w := warnings(c, root); !strings.Contains(w[0], "$include[26]: is one inclusion too many") || len(w) != 201 {
		t.Errorf("%d warnings, %s", len(w), w[0])
	}
	if c, _ := load(t, map[string]string{"s/openclaw.json": thirty("a"), "s/a": thirty("b"), "s/b": "{}"}, nil); c.Broken || len(c.Warnings) > 0 {
		t.Errorf("930 inclusions: %v", c.Warnings)
	}
}

// A file that is included at several places warns once for each place in it, and every key that it spoils is unsound.
func TestIncludedTwice(t *testing.T) {
	c, root := load(t, map[string]string{
		"s/openclaw.json": "{session: {reset: {$include: 'a'}, resetByType: {dm: {$include: 'a'}}}, a: {$include: 'gone'}, b: {$include: 'gone'}}",
		"s/a":             "{mode: 'never'}",
	}, nil)
	if d := cmp.Diff(1, strings.Count(strings.Join(warnings(c, root), "\n"), "/s/a:1:8:")); d != "" {
		t.Error(d)
	}
	c.Broken = false // which the missing file says
	if c.Sound("session", "reset") || c.Sound("session", "resetByType", "dm", "mode") || !c.Sound("session", "store") {
		t.Errorf("%v", c.Warnings)
	}
}

func TestManyWarnings(t *testing.T) {
	var b strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&b, "k%d:0,", i)
	}
	began := time.Now()
	c := parse(t, "{session: {"+b.String()+"mod: 0}}")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := len(c.Warnings); n != 201 || c.Warnings[200].Reason != "there are more than 200 warnings; the others are not shown" {
		t.Errorf("%d warnings, %v", n, c.Warnings[n-1])
	}
	if c.Sound("session", "mod") || !c.Sound("agents") {
		t.Error("soundness is that of the warnings that are not shown, too")
	}
}

// What stands at a wrong place may be a secret: no warning tells it.
func TestWarningsTellNoValue(t *testing.T) {
	secret := strings.Join([]string{"sk", "ant", strings.Repeat("Zx9", 12)}, "-")
	for _, text := range []string{
		"{session: {scope: '@'}}", "{session: '@'}", "{agents: '@', cron: ['@']}", "{session: {maintenance: {mode: '@', pruneAfter: '@', maxDiskBytes: '@', maxEntries: '@'}}}",
		"{session: {reset: {mode: '@'}, store: ['@'], resetTriggers: '@', mainKey: '@'}}", "{gateway: {port: '@', mode: {a: '@'}}}",
		"{'@' '@'}", "{'a', '@'}", "{a: '@", "{a: @}", "{session: {store: '${NOPE}@'}}", "{session: {store: '@', store: '@'}}", "['@']", "'@'",
		"{agents: {list: ['@', {id: 7, default: '@'}]}}", "{$include: {a: '@'}}", "{$include: [['@']]}",
	} {
		c, root := load(t, map[string]string{"s/openclaw.json": strings.ReplaceAll(text, "@", secret)}, nil)
		all := strings.Join(warnings(c, root), "\n")
		if all == "" || strings.Contains(all, secret[:12]) {
			t.Errorf("%s: %q", text, all)
		}
	}
	if w := parse(t, "{session: {maintenance: {maxEntries: 31337.5}}}").Warnings; len(w) != 1 || strings.Contains(w[0].Reason, "31337") {
		t.Errorf("%v", w)
	}
}

// A configuration that somebody names has to be there; one that a profile names may be missing.
func TestNamedConfigIsMissing(t *testing.T) {
	root := tree(t, map[string]string{"s/openclaw.json": "{}", "h/": ""})
	want := []string{"/s/none.json: there is no such file; the defaults are used"}
	for name, c := range map[string]struct {
		o    config.Options
		env  map[string]string
		want []string
	}{
		"flag":            {o: config.Options{ConfigFile: root + "/s/none.json"}, want: want},
		"variable":        {env: map[string]string{"OPENCLAW_CONFIG_PATH": "@/s/none.json"}, want: want},
		"beside profile":  {o: config.Options{Profile: "p", ConfigFile: root + "/s/none.json"}, want: want},
		"profile":         {o: config.Options{Profile: "p"}},
		"dev":             {o: config.Options{Dev: true}},
		"neither":         {},
		"state directory": {o: config.Options{StateDir: root + "/gone"}},
		"there":           {o: config.Options{ConfigFile: root + "/s/openclaw.json"}},
	} {
		env := map[string]string{"HOME": "@/h"}
		for k, v := range c.env {
			env[k] = v
		}
		o := options(root, env)
		o.ConfigFile, o.Profile, o.Dev, o.StateDir = c.o.ConfigFile, c.o.Profile, c.o.Dev, c.o.StateDir
		got, err := config.Load(o)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, warnings(got, root)); d != "" || got.Broken || got.Sound("session", "maintenance") != (c.want == nil) {
			t.Errorf("%s: broken %v, %s", name, got.Broken, d)
		}
	}
}

// Whatever stands in the file, Load answers, and every warning is one line with a file.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "{session: {store: '${A}/{agentId}', maintenance: {pruneAfter: '1d'}}}", "{agents: {list: [{id: 'x', default: true}]}}",
		"{$include: ['openclaw.json', 5, '../x']}", "{a: {$include: {}}, __proto__: {session: 1}}", "{env: {vars: {X: 'y'}}}",
		"{models: {providers: {openai: {models: [{id: 'gpt-5.5', contextWindow: 1}, {}]}}}, plugins: {deny: ['google', 5]}}", "{2: 1, 1: 2, constructor: {}}",
		"{$include: 'a\\nb'}", "{$include: ['../a\\u2028b', '\\u001b[0m']}",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "openclaw.json")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := config.Load(config.Options{Cwd: dir, StateDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Warnings {
			if w.File == "" || w.Reason == "" || strings.Contains(w.Reason, "\n") {
				t.Fatalf("bad warning %q", w)
			}
		}
		if c.StorePath(c.DefaultAgent()) == "" || c.Model(config.ModelInput{Model: text}).RuntimeID == "" || len(c.StoreAgents()) == 0 {
			t.Fatal("no answer")
		}
	})
}
