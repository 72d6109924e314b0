package visible

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oc/store/span"
)

// Texts built to make a careless scanner look at every pair of characters.
func hostile(n int) map[string]string {
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	sk, pem := "sk"+"-", "-----BEGIN PRIVATE "+"KEY-----"
	list := map[string]string{"secret word, then nothing": "token " + rep("a")}
	for _, s := range []string{
		"<", "<<", "< ", "</", "<|", "<|｜", "[", "[[", "`", "` ", "``` \n", "\n```", "=", ":", "a=", "&a=", "a&", "?a=", ",a=b", " ", "\t", "\t\ta",
		"<think", "<think>", "</think>", "<final", "<final a=\"", "<tool_call", "<tool_call>", "<tool_call \"", "<tool_call \"\\\"", "<tool_call a='",
		"<function_calls>", "<function_response>", "<parameter>", "<parameter a=\"", "<b><parameter>", "<b \"", "<tool_call>{\"", "<tool_call a=b", "<tool_call a={",
		"<invoke>", "<invoke a", "minimax:tool_call<invoke>", "<relevant-memories", "<relevant-memories>",
		"[TOOL_CALL]", "[TOOL_CALL]tool=>", "[TOOL_RESULT]", "[Tool Call:", "[Tool Call: a]\nArguments: {", "[Tool Call: a]\nArguments: \"", "[Tool Result for ID", "[Tool Result for ID 1]",
		"[Historical context:", "[a]\n{", "[a]\n{\"", "[tool:a]{\"a\":1", "<function=a><parameter=b>", "<function=a>\n<parameter=b>x</parameter>\n", "commentary to=a code{", "[reply_to:", "[[reply_to:", "[[reply_to: ",
		"🛠️ (agent) ", "> ⚠️ 🛠️ (agent)", "tool call",
		"token=a,", "token=a, ", " token=\"", " token='", "token=a&b", ",token=a", "key:", "KEY=", "KEY=\"", "KEY=\\\"", "KEY= ", "--token ", "--token \"", "authorization:", "authorization: \"", "{authorization:'",
		"Bearer ", "Bearer a", "x-api-key: ", "\"token\":\"", "\"token\" : ", "https://a:", "https://", "redis://a:", "redis://a:b", "-----", "-----BEGIN A", pem, "discord", "discord a",
		"eyJ", "eyJa", "eyJaaaaaaaaaaaa.", "1//0", "ya29.", sk, "SG.", "SG.aaaaaaaaaaa.", "gAAAA", "+gAAAA", "AKIA", "+AKIA", ";base64,AKIA", "ATATT", "ATATT=", "ATATTa=aaaaaaa", "FlyV1 fm1", "bot1234567:", "1234567:", "1", "12345678:aaaaaaaaaaaaaaaaaaa ",
		"%61", "%61=", "%61,", "body=", "body: a", "form body", "token%61\u200b", "+a", "+", "a+=", "\u00a0", "NO_REPLY", "NO_REPLY ",
		contextBegin + "\n", contextEnd + "\n", contextHeads[1] + "\n" + contextNotice + "\n", untrusted + "\n", untrusted + "\n<active_memory_plugin>\n",
		metadataHeads[0] + "\n```json\n", sinceReply + "\n", "x (untrusted, chronological", "[message_id: 1]\n", forwardMark, ".", "\xed\xa0\x80", "\xff",
	} {
		list[s] = "token= <think> " + rep(s)
	}
	return list
}

// A look at every pair of characters of these texts would take a minute.
func TestLinearTime(t *testing.T) {
	const n = 1 << 18
	for name, s := range hostile(n) {
		for what, f := range map[string]func(string){
			"redact":   func(s string) { Redact(s) },
			"clean":    func(s string) { Clean(s, History) },
			"deliver":  func(s string) { Clean(s, Delivery) },
			"undirect": func(s string) { Undirect(s) },
			"user":     func(s string) { UserText(s) },
			"audit":    func(s string) { Audit(s, func(Secret) {}) },
			"silent":   func(s string) { Silent(s) },
		} {
			started := time.Now()
			f(s)
			if d := time.Since(started); d > 5*time.Second {
				t.Errorf("%s of %d bytes of %q took %v", what, len(s), name, d)
			}
		}
	}
}

func TestLargeText(t *testing.T) {
	s := strings.Repeat("<", 10<<20)
	started := time.Now()
	if Clean(s, History) != s || Redact(s) != s {
		t.Error("a text of brackets was changed")
	}
	if d := time.Since(started); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

func BenchmarkProse(b *testing.B) {
	s := strings.Repeat("The key to a good answer is to pass the test; see https://example.com/a?b=c and `code`.\n", 2000)
	for name, f := range map[string]func(string) string{"redact": Redact, "clean": func(s string) string { return Clean(s, History) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				f(s)
			}
		})
	}
}

func seeds(f *testing.F) {
	for _, name := range []string{"redact", "history", "delivery"} {
		for _, c := range stage(f, name) {
			f.Add(c.text(f, c.Input))
		}
	}
	for s := range hostile(64) {
		f.Add(s)
	}
}

func FuzzRedact(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		Redact(s)
		Undirect(s)
		Audit(s, func(Secret) {})
	})
}

func FuzzClean(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range []Profile{History, Delivery} {
			if got := Clean(s, p); len(got) > len(s)+len(s)/2+64 {
				t.Fatalf("%d bytes became %d", len(s), len(got))
			}
		}
		Silent(s)
		UserText(s)
		for _, v := range []View{{}, {Upstream: true}} {
			o := object{}
			o.setText("role", "assistant")
			o.setText("content", s)
			if p, shown := Project(o.append(nil), 100); shown {
				if out, _ := v.Show(p); span.Valid(out) != nil {
					t.Fatalf("not JSON: %q", out)
				}
			}
		}
	})
}

// A second pass does to a text what OpenClaw's second pass does: most masks
// stay, some are masked again.
func TestRedactTwice(t *testing.T) {
	for _, c := range load(t, "redact-twice.jsonl") {
		if got, want := Redact(c.text(t, c.Input)), c.text(t, c.Expected); got != want {
			t.Errorf("%s: %q, want %q (rot13)", c.Name, rot13(got), rot13(want))
		}
	}
}

// Texts made of the pieces that the rules look at, with OpenClaw's answers.
func TestMixed(t *testing.T) {
	for _, c := range load(t, "mixed.jsonl") {
		in, want := c.text(t, c.Input), c.text(t, c.Expected)
		got := ""
		switch c.Stage {
		case "redact":
			got = Redact(in)
		case "history":
			got = Clean(in, History)
		case "delivery":
			got = Clean(in, Delivery)
		}
		if got != want {
			t.Errorf("%s of %q: %q, want %q", c.Stage, c.Input, got, want)
		}
	}
}

func ExampleRedact() {
	fmt.Println(Redact("curl -H 'Authorization: Bearer " + strings.Repeat("ab12", 6) + "' and --password hunter2"))
	// Output: curl -H 'Authorization: Bearer ab12ab…ab12' and --password ***
}
