package row

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/config"
)

func entry(t *testing.T, key, raw string) *Entry {
	t.Helper()
	e, err := New(key, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

func TestIndexFindsEveryMember(t *testing.T) {
	e := entry(t, "k", `{"sessionId":"a","x\"y":{"deep":[1,2]},"label":"one","10":1,"2":2,"label":"two","updatedAt":5}`)
	var got []string
	for _, m := range e.Members() {
		got = append(got, m.Name+"="+string(m.Val))
	}
	if d := cmp.Diff([]string{"2=2", "10=1", `sessionId="a"`, `x"y={"deep":[1,2]}`, `label="two"`, "updatedAt=5"}, got); d != "" {
		t.Error(d)
	}
	if s, ok := e.Text(Label); !ok || s != "two" {
		t.Errorf("the last label counts: %q", s)
	}
	if _, err := New("k", []byte(`{"a":1}}`)); err == nil {
		t.Error("text behind the row is an error")
	}
	for _, f := range Fields() {
		if f.String() == "" || byName[f.String()] != f {
			t.Errorf("field %d has no name of its own: %q", f, f)
		}
	}
}

// What is not a time is never one; spec/file-store.md 2.3 step 3.
func TestUpdated(t *testing.T) {
	for raw, want := range map[string]struct {
		ms  float64
		has bool
	}{
		`{}`: {0, false}, `{"updatedAt":5}`: {5, true}, `{"updatedAt":-5}`: {0, true}, `{"updatedAt":"5"}`: {0, true},
		`{"updatedAt":null}`: {0, true}, `{"updatedAt":1e400}`: {0, true}, `{"updatedAt":0.5}`: {0.5, true}, `{"updatedAt":true}`: {0, true},
	} {
		ms, has := entry(t, "k", raw).Updated()
		if ms != want.ms || has != want.has {
			t.Errorf("%s: %v %v", raw, ms, has)
		}
	}
}

func TestID(t *testing.T) {
	for raw, want := range map[string][2]string{ // id, why it is dropped
		`{}`:                                    {"", ""},
		`{"sessionId":" a "}`:                   {"a", ""},
		`{"sessionId":"../e"}`:                  {"", "the session id is not safe as a file name"},
		`{"sessionId":null}`:                    {"", "the session id is no text"},
		`{"sessionId":""}`:                      {"", "the session id is not safe as a file name"},
		`{"sessionId":"a:b"}`:                   {"", ""},
		`{"sessionId":"a:b","sessionFile":"x"}`: {"a:b", ""},
		`{"sessionId":"a:b","sessionFile":" "}`: {"", ""},
		`[]`:                                    {"", "the row is no object"},
		`{"sessionId":"x.checkpoint.11111111-1111-4111-8111-111111111111"}`: {"", ""},
	} {
		e := entry(t, "k", raw)
		if got := [2]string{e.ID(), e.Check()}; got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// A name that is written with escapes is the name that it says.
func TestEscapedName(t *testing.T) {
	e := entry(t, "k", `{"session\u0049d":"x","\u006cabel":"y"}`)
	if label, _ := e.Text(Label); e.ID() != "x" || label != "y" {
		t.Errorf("id %q, label %q", e.ID(), label)
	}
}

func TestDelivery(t *testing.T) {
	for raw, want := range map[string]Delivery{
		`{}`: {},
		`{"lastChannel":" Telegram ","lastTo":" 5 ","lastAccountId":"Work Acct"}`:                                                              {Channel: "telegram", To: "5", Account: "work-acct"},
		`{"provider":"gchat","lastTo":"x"}`:                                                                                                    {Channel: "googlechat", To: "x"},
		`{"lastChannel":"webchat","deliveryContext":{"channel":"slack","to":"c1"}}`:                                                            {Channel: "slack", To: "c1"},
		`{"lastChannel":"telegram","deliveryContext":{"channel":"slack","to":"c1"}}`:                                                           {Channel: "telegram"},
		`{"route":{"channel":"discord","target":{"to":"9"},"thread":{"id":3.7}},"lastChannel":"telegram","lastTo":"1"}`:                        {Channel: "discord", To: "9", Thread: []byte("3")},
		`{"lastThreadId":" t ","lastChannel":"x"}`:                                                                                             {Channel: "x", Thread: []byte(`"t"`)},
		`{"delivery":{"kind":"external","route":{"channel":"telegram","target":{"to":"5"}},"context":{"channel":"telegram","accountId":"a"}}}`: {Channel: "telegram", To: "5", Account: "a"},
		`{"deliveryContext":"nonsense","route":[1]}`:                                                                                           {},
	} {
		if d := cmp.Diff(want, entry(t, "k", raw).Delivery()); d != "" {
			t.Errorf("%s: %s", raw, d)
		}
	}
}

func TestPolicyKey(t *testing.T) {
	direct := `"chatType":"direct","lastChannel":"telegram","lastTo":"telegram:42:topic:9"`
	links := []config.IdentityLink{{Name: "alice", Peers: []string{"telegram:42"}}}
	for _, c := range []struct {
		key, raw, want string
		links          []config.IdentityLink
	}{
		{"agent:main:main", `{` + direct + `}`, "agent:main:telegram:default:direct:42", nil},
		{"agent:work:main", `{` + direct + `}`, "agent:work:telegram:default:direct:42", nil},
		{"agent:main:main", `{` + direct + `}`, "agent:main:telegram:default:direct:alice", links},
		{"agent:main:telegram:direct:42", `{` + direct + `}`, "", nil},
		{"agent:main:main", `{"chatType":"group","lastChannel":"telegram","lastTo":"1"}`, "", nil},
		{"agent:main:main", `{"chatType":"dm","origin":{"provider":"webchat","to":"1"}}`, "", nil},
		{"agent:main:main", `{"origin":{"chatType":"direct","provider":"Signal","nativeDirectUserId":"U1","accountId":"B C"}}`, "agent:main:signal:b-c:direct:u1", nil},
		{"agent:main:main", `{"chatType":"direct","lastChannel":"telegram","lastTo":"telegram:"}`, "", nil},
		{"agent:main:x:thread: ", `{"chatType":"direct"}`, "agent:main:x:thread:", nil}, // a key with blanks around it counts as another one
	} {
		if got := entry(t, c.key, c.raw).PolicyKey(false, c.links); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.key, c.raw, got, c.want)
		}
	}
}

func TestProtection(t *testing.T) {
	for key, want := range map[string]string{
		"agent:main:main": "", "agent:main:telegram:direct:1": "", "agent:main:telegram:group:1": "external-chat", "slack:channel:x": "external-chat",
		"agent:main:main:thread:5": "thread", "agent:main:telegram:dm:4:topic:7": "thread", "agent:main:cron:j": "", "agent:main:telegram:group:1:heartbeat": "",
		"agent:main:subagent:x:thread:1": "", "agent:main:node-x": "", "group:1": "",
	} {
		if got := entry(t, key, `{}`).Protection(); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if got := entry(t, "agent:main:x", `{"origin":{"chatType":"Group"}}`).Protection(); got != "chat-type" {
		t.Errorf("by the origin's chat type: %q", got)
	}
}

func TestTruthy(t *testing.T) {
	for raw, want := range map[string]bool{`0`: false, `-0`: false, `1`: true, `""`: false, `"a"`: true, `null`: false, `false`: false, `true`: true, `{}`: true, `[]`: true, ``: false} {
		if Truthy([]byte(raw)) != want {
			t.Errorf("%s: %v", raw, !want)
		}
	}
}
