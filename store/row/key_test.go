package row

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/store/span"
)

// What OpenClaw 2026.7.35 made of 317 keys, recorded by testdata/keys.mjs.
func TestKeysAsOpenClaw(t *testing.T) {
	type answer struct {
		Key, Canonical, Agent, Rest, KeyAgent, Kind, Chat, Parent, Thread string
		Cron, CronRun, ACP, Subagent                                      bool
	}
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []answer
	if err := json.Unmarshal(data, &want); err != nil || len(want) < 300 {
		t.Fatal(len(want), err)
	}
	for _, w := range want {
		e, err := New(w.Key, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		got := answer{Key: w.Key, Canonical: Canonical(w.Key), KeyAgent: KeyAgent(w.Key), Kind: e.ListKind(), Chat: ChatType(w.Key), ACP: w.ACP, Subagent: w.Subagent}
		var scoped bool
		got.Agent, got.Rest, scoped = Parse(w.Key)
		got.Cron = scoped && strings.HasPrefix(span.Trim(got.Rest), "cron:")
		got.CronRun = scoped && cronRun().MatchString(got.Rest)
		got.Parent, got.Thread, _ = Thread(w.Key)
		if low := span.Lower(w.Key); strings.Contains(low, "telegram:group:") && strings.Contains(low, ":topic:") || strings.Contains(low, "telegram:channel:") && strings.Contains(low, ":topic:") {
			got.Parent, got.Thread = w.Parent, w.Thread // the recording ran without the telegram plugin
		}
		if d := cmp.Diff(w, got); d != "" {
			t.Errorf("%q (-OpenClaw +oc):\n%s", w.Key, d)
		}
	}
}

func TestThreadOfTelegramTopic(t *testing.T) {
	for key, want := range map[string][2]string{
		"agent:main:telegram:group:-1001:topic:7": {"agent:main:telegram:group:-1001", "7"},
		"telegram:group:-1:topic:9":               {"telegram:group:-1", "9"},
		"agent:main:telegram:group:-1001:topic:":  {"", ""},
		"agent:main:telegram:direct:5:topic:7":    {"", ""},
		"agent:main:discord:channel:1:thread:Ab":  {"agent:main:discord:channel:1", "Ab"},
		"agent:main:feishu:group:oc_1:topic:om_1": {"", ""},
		"agent:main:main:thread:1:thread:2":       {"agent:main:main:thread:1", "2"},
	} {
		parent, id, _ := Thread(key)
		if got := [2]string{parent, id}; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for key, want := range map[string]Class{
		"agent:main:main": ClassMain, "main": ClassMain, "GLOBAL": ClassGlobal, "unknown": ClassUnknown,
		"agent:main:direct:42": ClassDirect, "agent:main:telegram:dm:42": ClassDirect, "agent:main:telegram:acct:direct:42": ClassDirect,
		"agent:main:telegram:group:-1": ClassGroup, "agent:main:slack:channel:c1": ClassChannel, "123@g.us": ClassGroup,
		"agent:main:slack:channel:c1:thread:9": ClassThread, "agent:main:telegram:group:-1:topic:7": ClassThread,
		"agent:main:cron:j": ClassCron, "agent:main:cron:j:run:x": ClassCronRun, "agent:main:hook:gmail": ClassHook,
		"agent:main:node-abc": ClassNode, "node:mac": ClassNode, "agent:main:subagent:u": ClassSubagent, "agent:main:acp:u": ClassACP, "acp-bridge:x": ClassACP,
		"agent:main:explicit:model-run-11111111-1111-4111-8111-111111111111": ClassModelRun, "agent:main:explicit:x": ClassExplicit,
		"agent:main:main:heartbeat": ClassHeartbeat, "agent:main:main:heartbeat:heartbeat": ClassHeartbeat, "agent:main:recovered:u": ClassRecovered,
		"agent:main:dashboard:u": ClassOther, "": ClassOther, "agent:main:main:thread:4": ClassThread,
	} {
		if got := ClassOf(key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	if job, ok := CronJob("agent:main:cron:daily:run:9"); !ok || job != "daily" {
		t.Errorf("cron job: %q %v", job, ok)
	}
}

// A canonical key is canonical, and the agent of a key does not depend on its case.
func TestCanonicalIsStable(t *testing.T) {
	part := rapid.SampledFrom([]string{"agent", "Agent", "main", "Ops Team", "matrix", "Signal", "group", "channel", "!AbC:x", " ", "", "thread", "İ", "Σ", "telegram", "cron", "run", "é", "\u00a0"})
	rapid.Check(t, func(t *rapid.T) {
		key := strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), ":")
		once := Canonical(key)
		if twice := Canonical(once); twice != once {
			t.Fatalf("%q: %q, then %q", key, once, twice)
		}
	})
}

func FuzzKey(f *testing.F) {
	for _, k := range []string{"agent:main:main", "agent:a:matrix:group:!X:thread:Y", "signal:group:AbC", "a\x00b\n", "\xed\xa0\x80", "agent:\u202e:x"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		Canonical(key)
		ClassOf(key)
		Thread(key)
		e := Entry{Key: key, Val: []byte("{}")}
		if e.ListKind() == "" || KeyAgent(key) == "" || e.ToolKind() == "" {
			t.Fatalf("%q has no kind or agent", key)
		}
	})
}
