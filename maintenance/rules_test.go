package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/fixtures"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
	"oc/store/sqlfile"
)

const (
	sessions = "agents/main/sessions/"
	now      = int64(1790000000000)
)

// lay builds a state from a recipe in JSON and plans a cleanup of it.
func lay(t *testing.T, text string, o Orders) (*Plan, *Snapshot) {
	t.Helper()
	root := t.TempDir()
	var r recipe
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	b := &builder{t, filepath.Join(root, ".openclaw"), now}
	b.build(&r)
	plan, s, err := look(t, root, o)
	if err != nil {
		t.Fatal(err)
	}
	return plan, s
}

func look(t *testing.T, root string, o Orders) (*Plan, *Snapshot, error) {
	t.Helper()
	c, err := config.Load(config.Options{Cwd: root, Home: root})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := ReadPolicy(c, o)
	if err != nil {
		return nil, nil, err
	}
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(now)
	s, err := Take(context.Background(), c, targets[0], p, alive{}, at)
	if err != nil {
		return nil, nil, err
	}
	return Make(p, s, at), s, nil
}

// told is a plan in short lines: what is done by which rule, what stays by
// which.
func told(p *Plan) (out []string) {
	for _, a := range p.Actions {
		what := a.Key
		if a.Target != "" {
			what = filepath.Base(a.Target)
		}
		line := fmt.Sprintf("%s %s %s", a.Kind, a.Rule, what)
		if !a.Applies {
			line += " (not applied)"
		}
		if a.Kind != Rewrite {
			out = append(out, line)
		}
	}
	for _, x := range p.Protected {
		out = append(out, fmt.Sprintf("stays %s %s%s", x.Rule, x.Key, strings.TrimPrefix(filepath.Base(x.Target), ".")))
	}
	slices.Sort(out)
	return out
}

func entry(key string, age int64, more string) string {
	return fmt.Sprintf(`{"key":%q,"ageMs":%d,"entry":{%s}}`, key, age, more)
}

func state(config string, entries []string, files ...string) string {
	if config == "" {
		config = "{}"
	}
	return fmt.Sprintf(`{"config":%s,"stores":[{"path":"%ssessions.json","entries":[%s]}],"files":[%s]}`, config, sessions, strings.Join(entries, ","), strings.Join(files, ","))
}

func talk(name string, age int64) string {
	return fmt.Sprintf(`{"path":"%s%s","ageMs":%d,"transcript":{"id":"x","messages":2}}`, sessions, name, age)
}

func sized(name string, age int64, size int) string {
	return fmt.Sprintf(`{"path":"%s%s","ageMs":%d,"size":%d}`, sessions, name, age, size)
}

const old, aDay, anHour = 3456000000, 86400000, 3600000

func TestRules(t *testing.T) {
	lock := `{"path":"` + sessions + `%s.lock","content":"{\"pid\":4242,\"starttime\":7}"}`
	for _, c := range []struct {
		name   string
		state  string
		orders Orders
		want   []string
	}{
		{
			"a lock and a fresh transcript protect",
			state("", []string{entry("agent:main:a", old, `"sessionId":"a"`), entry("agent:main:b", old, `"sessionId":"b"`), entry("agent:main:c", old, `"sessionId":"c"`)},
				talk("a.jsonl", anHour), fmt.Sprintf(lock, "a.jsonl"), talk("b.jsonl", 299999), talk("c.jsonl", 300000)),
			Orders{},
			[]string{"drop-row stale agent:main:c", "move stale c.jsonl", "stays locked agent:main:a", "stays recent-bytes agent:main:b"},
		},
		{
			"a lock that nobody holds does not",
			state("", []string{entry("agent:main:a", old, `"sessionId":"a"`)}, talk("a.jsonl", anHour),
				`{"path":"`+sessions+`a.jsonl.lock","ageMs":3600000,"content":"{\"pid\":99,\"starttime\":7,\"createdAt\":\"2020-01-01T00:00:00.000Z\"}"}`),
			Orders{},
			[]string{"drop-row stale agent:main:a", "move stale a.jsonl"},
		},
		{
			"a lock without a transcript protects the row that will have it",
			state("", []string{entry("agent:main:a", anHour, `"sessionId":"a"`)}, fmt.Sprintf(lock, "a.jsonl")),
			Orders{FixMissing: true},
			[]string{"stays locked agent:main:a"},
		},
		{
			"an impossible time is no age",
			state(`{"session":{"maintenance":{"maxEntries":1}}}`, []string{
				`{"key":"agent:main:text","entry":{"sessionId":"t","updatedAt":"1700000000000"}}`, `{"key":"agent:main:minus","entry":{"sessionId":"m","updatedAt":-5}}`,
				`{"key":"agent:main:null","entry":{"sessionId":"n","updatedAt":null}}`, `{"key":"agent:main:none","entry":{"sessionId":"o"}}`, entry("agent:main:new", 0, `"sessionId":"w"`),
			}),
			Orders{},
			[]string{"drop-row cap agent:main:new", "drop-row cap agent:main:none", "stays unknown-age agent:main:minus", "stays unknown-age agent:main:null", "stays unknown-age agent:main:text"},
		},
		{
			"unlinked history is archived, what holds no message goes",
			state("", []string{entry("agent:main:a", 0, `"sessionId":"a"`)}, talk("lost.jsonl", old), talk("young.jsonl", aDay),
				`{"path":"`+sessions+`header.jsonl","ageMs":3456000000,"content":"{\"type\":\"session\"}\n"}`, sized("zero.jsonl", old, 0), sized("x.trajectory.jsonl", old, 3)),
			Orders{},
			[]string{"move unlinked lost.jsonl", "remove unlinked header.jsonl", "remove unlinked x.trajectory.jsonl", "remove unlinked zero.jsonl"},
		},
		{
			"--keep-unlinked",
			state(`{"session":{"maintenance":{"maxDiskBytes":10}}}`, []string{entry("agent:main:discord:group:1", 0, `"sessionId":"a"`)}, talk("lost.jsonl", old), sized("header.jsonl", old, 0)),
			Orders{KeepUnlinked: true},
			[]string{"remove budget header.jsonl", "stays group agent:main:discord:group:1", "stays keep-unlinked lost.jsonl"},
		},
		{
			"the budget takes unlinked history, the oldest first, but none that is locked",
			state(`{"session":{"maintenance":{"maxDiskBytes":100}}}`, []string{entry("agent:main:discord:group:1", 0, `"sessionId":"a"`)}, talk("lost.jsonl", aDay), talk("now.jsonl", 1000), talk("held.jsonl", aDay), fmt.Sprintf(lock, "held.jsonl")),
			Orders{},
			[]string{"remove budget lost.jsonl", "remove budget now.jsonl", "stays group agent:main:discord:group:1", "stays locked held.jsonl"},
		},
		{
			"a retired direct chat without a session id leaves its transcript, as with OpenClaw; one that is stale does not",
			state(`{"session":{"dmScope":"main"}}`, []string{entry("agent:main:direct:1", anHour, `"sessionFile":"a.jsonl"`), entry("agent:main:direct:2", anHour, `"sessionId":"b"`), entry("agent:main:x", old, `"sessionFile":"c.jsonl"`)},
				talk("a.jsonl", anHour), talk("b.jsonl", anHour), talk("c.jsonl", anHour)),
			Orders{FixDMScope: true},
			[]string{"drop-row dm-scope agent:main:direct:1", "drop-row dm-scope agent:main:direct:2", "drop-row stale agent:main:x", "move dm-scope b.jsonl", "move stale c.jsonl"},
		},
		{
			"a file of two rows stays with the other",
			state("", []string{entry("agent:main:a", old, `"sessionId":"a","sessionFile":"both.jsonl"`), entry("agent:main:b", 0, `"sessionId":"b","sessionFile":"both.jsonl"`)}, talk("both.jsonl", anHour), talk("a.jsonl", anHour)),
			Orders{},
			[]string{"drop-row stale agent:main:a", "move stale a.jsonl", "stays shared-id both.jsonl"},
		},
		{
			"a link is not followed",
			state("", []string{entry("agent:main:a", old, `"sessionId":"a"`), entry("agent:main:b", 0, `"sessionId":"b"`)}, talk("b.jsonl", anHour), `{"path":"`+sessions+`a.jsonl","symlinkTo":"b.jsonl"}`),
			Orders{},
			[]string{"drop-row stale agent:main:a", "stays linked a.jsonl"},
		},
		{
			"by hand: exactly what was selected",
			state(`{"session":{"maintenance":{"maxEntries":1,"pruneAfter":"1d"}}}`, []string{
				entry("agent:main:cron:j:run:1", 2*aDay, `"sessionId":"r1"`), entry("agent:main:cron:j:run:2", anHour, `"sessionId":"r2"`), entry("agent:main:explicit:x", 2*aDay, `"sessionId":"x"`),
			}, talk("r1.jsonl", aDay), talk("lost.jsonl", old)),
			Orders{OlderThan: aDay, Kinds: []string{"cron"}},
			[]string{"drop-row by-hand agent:main:cron:j:run:1", "move by-hand r1.jsonl"},
		},
		{
			"by hand: protected rows ask for more",
			state("", []string{
				entry("agent:main:main", 2*aDay, `"sessionId":"m"`), entry("agent:main:discord:group:1", 2*aDay, `"sessionId":"g"`), entry("agent:main:explicit:p", 2*aDay, `"sessionId":"p","pinnedAt":5`),
				`{"key":"agent:main:explicit:n","entry":{"sessionId":"n","updatedAt":"x"}}`, entry("agent:main:explicit:x", 2*aDay, `"sessionId":"x"`),
			}),
			Orders{OlderThan: aDay},
			[]string{
				"drop-row by-hand agent:main:explicit:x", "stays group agent:main:discord:group:1", "stays main agent:main:main", "stays pinned agent:main:explicit:p", "stays unknown-age agent:main:explicit:n",
			},
		},
		{
			"by hand: --include-protected, but not what is in use",
			state("", []string{entry("agent:main:main", 2*aDay, `"sessionId":"m"`), entry("agent:main:discord:group:1", 2*aDay, `"sessionId":"g"`), entry("agent:main:explicit:x", 2*aDay, `"sessionId":"x"`)},
				talk("g.jsonl", 1000)),
			Orders{OlderThan: aDay, IncludeProtected: true, ActiveKeys: []string{"agent:main:explicit:X"}},
			[]string{"drop-row by-hand agent:main:main", "stays active-key agent:main:explicit:x", "stays recent-bytes agent:main:discord:group:1"},
		},
		{
			"by hand: empty rows, in warn mode too",
			state(`{"session":{"maintenance":{"mode":"warn"}}}`, []string{entry("agent:main:a", 0, `"sessionId":"a"`), entry("agent:main:b", 0, `"sessionId":"b"`), entry("agent:main:c", 0, `"sessionId":"c"`)},
				talk("a.jsonl", anHour), sized("b.jsonl", anHour, 0)),
			Orders{Empty: true},
			[]string{"drop-row by-hand agent:main:b", "drop-row by-hand agent:main:c", "move by-hand b.jsonl"},
		},
		{
			"fix-missing: S5",
			state("", []string{
				entry("agent:main:ok", anHour, `"sessionId":"ok"`), entry("agent:main:off", anHour, `"sessionId":"off","sessionFile":"nowhere.jsonl"`), entry("agent:main:gone", anHour, `"sessionId":"gone"`),
				entry("agent:main:torn", anHour, `"sessionId":"torn"`), entry("agent:main:slack:slash:u1", anHour, `"sessionId":"slash"`),
			}, talk("ok.jsonl", anHour), talk("off.jsonl", anHour), `{"path":"`+sessions+`torn.jsonl","ageMs":3600000,"content":"{\"type\":\"session\"}\n{\"type\":\"mess"}`),
			Orders{FixMissing: true},
			[]string{"drop-row fix-missing agent:main:gone", "put-row repair agent:main:off", "stays slash-route agent:main:slack:slash:u1"},
		},
		{
			"warn mode shows and does not apply",
			state(`{"session":{"maintenance":{"mode":"warn"}}}`, []string{entry("agent:main:a", old, `"sessionId":"a"`), entry("agent:main:gone", 0, `"sessionId":"g"`)}, talk("a.jsonl", anHour)),
			Orders{FixMissing: true},
			[]string{"drop-row fix-missing agent:main:gone", "drop-row stale agent:main:a (not applied)", "move stale a.jsonl (not applied)"},
		},
		{
			"the graveyard: S8",
			state(`{"session":{"maintenance":{"pruneAfter":"10d","resetArchiveRetention":"2d"}}}`, []string{entry("agent:main:a", 0, `"sessionId":"a"`)},
				sized("x.jsonl.deleted.{{TS-864000001}}", 0, 1), sized("y.jsonl.deleted.{{TS-864000000}}", old, 1), sized("x.jsonl.reset.{{TS-172800001}}", 0, 1), sized("y.jsonl.reset.{{TS-172800000}}", old, 1),
				sized("x.jsonl.bak.{{TS-3456000000}}", old, 1), sized("x.jsonl.deleted.{{TS-3456000000}}.zst", old, 1), sized("x.jsonl.bak-1-2", old, 1),
				sized("sessions.json.00000001-1111-4111-8111-111111111111.tmp", 2000, 1), sized("sessions.json.00000002-1111-4111-8111-111111111111.tmp", 300000, 1)),
			Orders{},
			[]string{
				"remove old-temp sessions.json.00000002-1111-4111-8111-111111111111.tmp", "remove retention x.jsonl.deleted.2026-09-11T14-13-19.999Z", "remove retention x.jsonl.reset.2026-09-19T14-13-19.999Z",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := lay(t, c.state, c.orders)
			if why := sums(p, s); why != "" && p.Mode == Enforce {
				t.Error(why)
			}
			if d := cmp.Diff(c.want, told(p)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A cap and a budget that only protected rows are above: explained, and
// nothing more is removed (field-reports.md S7).
func TestUnmetLimits(t *testing.T) {
	var entries, files []string
	for i := range 220 {
		key := fmt.Sprintf("agent:main:main:thread:%d", i)
		if i >= 200 {
			key = fmt.Sprintf("agent:main:explicit:%d", i)
		}
		entries = append(entries, entry(key, anHour, fmt.Sprintf(`"sessionId":"s%d"`, i)))
		files = append(files, sized(fmt.Sprintf("s%d.jsonl", i), aDay, 6000))
	}
	p, _ := lay(t, state(`{"session":{"maintenance":{"maxEntries":50,"maxDiskBytes":"1mb"}}}`, entries, files...), Orders{})
	if len(p.Unmet) != 2 || p.Unmet[0].Rule != Cap || p.Unmet[0].Left != 200 || p.Unmet[0].Protected != 200 || p.Unmet[0].ByRule[Thread] != 200 {
		t.Fatalf("%+v", p.Unmet)
	}
	if u := p.Unmet[1]; u.Rule != Budget || u.Left <= 1<<20 || u.Bytes < 200*6000 || !strings.Contains(u.Reason, "protected rows") {
		t.Fatalf("%+v", u)
	}
	if n := p.Summary(true).AfterCount; n != 200 {
		t.Fatal(n)
	}
}

func TestCronRetention(t *testing.T) {
	entries := []string{
		entry("agent:main:cron:j1:run:old", aDay+1, `"sessionId":"a"`), entry("agent:main:cron:j1:run:edge", aDay, `"sessionId":"b"`), entry("agent:main:cron:j1:run:more:x", 2*aDay, `"sessionId":"c"`),
		entry("agent:main:cron:j1", 2*aDay, `"sessionId":"d"`), entry("agent:main:cron:j2", 2*aDay, `"sessionId":"e"`), entry("agent:main:explicit:x", 2*aDay, `"sessionId":"f"`),
		entry("cron:j3:run:bare", 2*aDay, `"sessionId":"g"`), `{"key":"agent:main:cron:j1:run:odd","entry":{"sessionId":"h","updatedAt":null}}`, entry("agent:main:cron:j2:failure-alert", 2*aDay, `"sessionId":"i"`),
	}
	runs := []string{"drop-row cron-retention agent:main:cron:j1:run:more:x", "drop-row cron-retention agent:main:cron:j1:run:old"}
	p, s := lay(t, state("", entries), Orders{Cron: true})
	if d := cmp.Diff(append(slices.Clone(runs), "stays jobs-unknown agent:main:cron:j1", "stays jobs-unknown agent:main:cron:j2", "stays unknown-age agent:main:cron:j1:run:odd"), told(p)); d != "" {
		t.Error(d)
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "cron jobs are unknown") {
		t.Errorf("%q", s.Problems)
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(s.Dir))))
	path := store.StateDatabase(filepath.Join(root, ".openclaw"))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for _, q := range []string{"CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT)", "INSERT INTO cron_jobs VALUES ('s', 'j1')"} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err = look(t, root, Orders{Cron: true})
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(runs), "drop-row cron-retention agent:main:cron:j2", "stays job-exists agent:main:cron:j1", "stays unknown-age agent:main:cron:j1:run:odd")
	slices.Sort(want)
	if d := cmp.Diff(want, told(p)); d != "" {
		t.Error(d)
	}
	if p, _, _ = look(t, root, Orders{}); len(p.Actions) != 0 {
		t.Errorf("without --cron: %q", told(p))
	}
}

// Files are unlinked only where no store in the directory names them.
func TestNeighbours(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "all")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(now - old)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("main.json", `{"agent:main:main":{"sessionId":"m"}}`)
	write("work.json", `{"agent:work:main":{"sessionId":"w"}}`)
	for _, name := range []string{"m.jsonl", "w.jsonl", "nobody.jsonl"} {
		write(name, conversationText("x", 1, 1))
	}
	if err := os.MkdirAll(filepath.Join(root, ".openclaw"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".openclaw", "openclaw.json"), []byte(`{session:{store:"`+dir+`/{agentId}.json"},agents:{list:[{id:"main"},{id:"work"}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, err := look(t, root, Orders{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"move unlinked nobody.jsonl", "stays shared-id w.jsonl"}, told(p)); d != "" {
		t.Error(d)
	}
	write("work.json", `{"agent:work:`)
	if p, _, err = look(t, root, Orders{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"stays neighbour nobody.jsonl", "stays neighbour w.jsonl"}, told(p)); d != "" {
		t.Error(d)
	}
}

func TestTakeRefusesWhatIsNoStore(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut": `{"a":{"sessionId":"a"`, "list": "[]", "null": "null"} {
		root := t.TempDir()
		b := &builder{t, filepath.Join(root, ".openclaw"), now}
		b.write(b.path(sessions+"sessions.json"), text)
		b.write(b.path(sessions+"a.jsonl"), "x")
		var damage *row.Damage
		if _, _, err := look(t, root, Orders{}); !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, rest := range []string{"a.jsonl", "a.jsonl.deleted.2026-01-01T00-00-00.000Z", "sessions.json.00000001-1111-4111-8111-111111111111.tmp", "sessions.json.bak.1"} {
		root := t.TempDir()
		b := &builder{t, filepath.Join(root, ".openclaw"), now}
		b.write(b.path(sessions+rest), "x")
		var missing *Missing
		if _, _, err := look(t, root, Orders{}); !errors.As(err, &missing) || missing.Files != 1 {
			t.Errorf("%s: %v", rest, err)
		}
	}
	p, s, err := look(t, t.TempDir(), Orders{})
	if err != nil || !s.Absent || len(p.Actions) != 0 || p.Summary(true).WouldMutate || len(NewStore(s, p)) != 0 {
		t.Errorf("nothing at all: %v %+v", err, p)
	}
}

// A row without sense, a checkpoint without sense: the rest goes on, and the
// bytes of all of them stay.
func TestOddRowsStay(t *testing.T) {
	p, s := lay(t, state("", []string{
		`{"key":"bad","entry":null}`, `{"key":"worse","entry":{"sessionId":"../x"}}`, entry("agent:main:old", old, `"sessionId":"o"`),
		entry("agent:main:main", 0, `"sessionId":"m","compactionCheckpoints":[null,{"preCompaction":{"sessionFile":"m.checkpoint.00000001-1111-4111-8111-111111111111.jsonl"}}]`),
	}, sized("m.checkpoint.00000001-1111-4111-8111-111111111111.jsonl", old, 5), sized("m.checkpoint.00000002-1111-4111-8111-111111111111.jsonl", old, 5)), Orders{})
	if d := cmp.Diff([]string{"drop-row stale agent:main:old", "remove unlinked m.checkpoint.00000002-1111-4111-8111-111111111111.jsonl"}, told(p)); d != "" {
		t.Error(d)
	}
	if len(p.Problems) != 3 || !strings.Contains(p.Problems[0], "row bad") || !strings.Contains(p.Problems[2], "agent:main:main") {
		t.Errorf("%q", p.Problems)
	}
	text := string(NewStore(s, p))
	for _, want := range []string{`"bad": null`, `"../x"`, `[
      null,`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is gone from %s", want, text)
		}
	}
	if strings.Contains(text, "agent:main:old") || strings.HasSuffix(text, "\n") {
		t.Error(text)
	}
}

func TestNewStore(t *testing.T) {
	s := &Snapshot{Text: []byte("{\"7\":{ \"a\" : 1e400},\n\"k\\u0041\":{\"x\":\"\\ud800\"},\t\"d\":{},\"d\":{\"y\":2}}\n")}
	drop := func(key string) Action { return Action{Kind: DropRow, Key: key, Applies: true} }
	put := func(key, val string) Action { return Action{Kind: PutRow, Key: key, Value: []byte(val), Applies: true} }
	for want, actions := range map[string][]Action{
		string(s.Text): {{Kind: DropRow, Key: "7"}},
		"{\n  \"k\\u0041\": {\"x\":\"\\ud800\"},\n  \"d\": {},\n  \"d\": {\"y\":2}\n}":               {drop("7")},
		"{\n  \"7\": { \"a\" : 1e400},\n  \"d\": {},\n  \"d\": {\"y\":2}\n}":                         {drop("kA")},
		"{\n  \"7\": { \"a\" : 1e400},\n  \"k\\u0041\": {\"x\":\"\\ud800\"},\n  \"d\": {\"z\":3}\n}": {put("d", `{"z":3}`)},
		"{\n  \"7\": { \"a\" : 1e400},\n  \"k\\u0041\": {\"x\":\"\\ud800\"},\n  \"n\\n\": {}\n}":     {drop("d"), put("n\n", `{}`)},
		"{}": {drop("7"), drop("kA"), drop("d")},
	} {
		p := &Plan{Actions: actions}
		if got := string(NewStore(s, p)); got != want {
			t.Errorf("want %q\ngot  %q", want, got)
		}
		if n := newSize(s, p); n != len(want) && want != "{}" {
			t.Errorf("size %d, want %d", n, len(want))
		}
	}
}

// What a plan would touch is told together with what it was.
func TestActionsKnowTheirFiles(t *testing.T) {
	p, s := lay(t, state("", []string{entry("agent:main:a", old, `"sessionId":"a"`)}, talk("a.jsonl", anHour), sized("b.trajectory.jsonl", old, 3)), Orders{})
	seen := 0
	for _, a := range p.Actions {
		f := a.File(s)
		if (f == nil) != (a.Kind == DropRow || a.Kind == Rewrite) {
			t.Errorf("%s %s: %v", a.Kind, a.Key, f)
		}
		if f == nil {
			continue
		}
		seen++
		info, err := os.Lstat(a.Target)
		if err != nil || !journal.StampOf(info).Same(journal.StampOf(f.Info)) || a.Bytes != info.Size() {
			t.Errorf("%s: %v", a.Target, err)
		}
	}
	if info, err := os.Stat(s.Store); seen != 2 || err != nil || !os.SameFile(info, s.Info) || s.Linked {
		t.Error(seen, err)
	}
}

// A runaway store: no running or locked row goes, and what is planned is what
// was asked for (field-reports.md S1).
func TestRunawayStore(t *testing.T) {
	root := t.TempDir()
	r, err := fixtures.S1(filepath.Join(root, ".openclaw"), now, fixtures.Process{PID: 4242, Start: 7})
	if err != nil {
		t.Fatal(err)
	}
	dropped := func(o Orders) map[string]bool {
		p, _, err := look(t, root, o)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, a := range p.Actions {
			if a.Kind == DropRow {
				keys[a.Key] = true
			}
		}
		return keys
	}
	jobs := dropped(Orders{Kinds: []string{"cron"}})
	if len(jobs) != len(r.Runs)+len(r.Unmarked) || !jobs[r.Unmarked[0]] || !jobs[r.Runs[0]] || jobs[r.Main] || jobs[r.Direct] {
		t.Errorf("%d rows of cron jobs go", len(jobs))
	}
	helpers := dropped(Orders{Kinds: []string{"subagent"}})
	if len(helpers) != len(r.Done)+len(r.Failed) {
		t.Errorf("%d sub-agents go", len(helpers))
	}
	for _, key := range r.Running {
		if helpers[key] {
			t.Errorf("%s runs and goes", key)
		}
	}
}

// A pointer leads to nothing but the row's own trajectory.
func TestPointers(t *testing.T) {
	pointer := func(id, target string) string {
		return `{"path":"` + sessions + id + `.trajectory-path.json","ageMs":3600000,"content":"{\"traceSchema\":\"openclaw-trajectory-pointer\",\"schemaVersion\":1,\"sessionId\":\"` + id + `\",\"runtimeFile\":\"` + target + `\"}"}`
	}
	trace := func(path, id string) string {
		return `{"path":"` + path + `","ageMs":3600000,"content":"\n{\"traceSchema\":\"openclaw-trajectory\",\"schemaVersion\":1,\"source\":\"runtime\",\"sessionId\":\"` + id + `\"}\n"}`
	}
	var entries []string
	for _, id := range []string{"own", "other", "inside", "live", "linked", "rel"} {
		entries = append(entries, entry("agent:main:"+id, old, `"sessionId":"`+id+`"`))
	}
	entries = append(entries, entry("agent:main:main", 0, `"sessionId":"m"`))
	p, _ := lay(t, state("", entries,
		pointer("own", "{{STATE}}/traj/own.jsonl"), trace("traj/own.jsonl", "own"),
		pointer("other", "{{STATE}}/traj/other.jsonl"), trace("traj/other.jsonl", "somebody"),
		pointer("inside", "{{STATE}}/"+sessions+"inside.jsonl.lock"), pointer("live", "{{STATE}}/"+sessions+"m.jsonl"), talk("m.jsonl", anHour),
		pointer("linked", "{{STATE}}/traj/linked.jsonl"), trace("secret/linked.jsonl", "linked"), `{"path":"traj/linked.jsonl","symlinkTo":"../secret/linked.jsonl"}`,
		pointer("rel", "traj/rel.jsonl"),
	), Orders{})
	var removed []string
	for _, a := range p.Actions {
		if a.Kind == Remove && !strings.HasSuffix(a.Target, "-path.json") {
			removed = append(removed, filepath.Base(a.Target))
		}
	}
	if d := cmp.Diff([]string{"own.jsonl"}, removed); d != "" {
		t.Error(d)
	}
}

func FuzzContent(f *testing.F) {
	for _, s := range []string{"", "\n", "{\"type\":\"session\"}\n", "{\"type\":\"message\"}", "{\"role\":\"user\"}", "{\"message\":{\"role\":\"tool\"}}", "{\"type\":null,\"role\":\"user\"}", "[]\n5\nnull", "torn", "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "t.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got := content(path, int64(len(text)))
		if got != Empty && got != Messages {
			t.Fatal(got)
		}
		if got == Empty && (len(text) > smallTranscript || strings.Contains(string(text), `{"type":"message"}`)) {
			t.Fatalf("messages are overlooked in %q", text)
		}
	})
}
