package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var asked = Request{Instructions: "keep names", Previous: "before", Conversation: []Turn{{"user", "hi"}, {"assistant", "hello"}}, MaxTokens: 100}

// The test program itself is the command that is run: what it does stands in its argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "act" {
		act(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func act(how string) {
	switch how {
	case "echo":
		var r Request
		if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		fmt.Printf("%s|%s|%d turns|%s\n", r.Instructions, r.Previous, len(r.Conversation), r.Conversation[1].Text)
	case "fail":
		fmt.Println("half an answer")
		fmt.Fprintln(os.Stderr, "no model loaded\nat line 3")
		os.Exit(1)
	case "hang":
		time.Sleep(time.Hour)
	case "flood":
		block := bytes.Repeat([]byte("x"), 1<<20)
		for {
			if _, err := os.Stdout.Write(block); err != nil {
				return
			}
		}
	case "deaf": // it answers without reading what it was asked
		fmt.Println("anyway")
	case "silent":
	}
}

func command(how string) Exec {
	return Exec{Command: []string{os.Args[0], "act", how}, Timeout: 20 * time.Second}
}

func TestExec(t *testing.T) {
	for how, want := range map[string]string{"echo": "keep names|before|2 turns|hello", "deaf": "anyway", "silent": ""} {
		if got, err := command(how).Summarize(t.Context(), asked); err != nil || got != want {
			t.Errorf("%s: %q, %v", how, got, err)
		}
	}
	long := asked
	long.Conversation = []Turn{{"user", strings.Repeat("y", 4<<20)}}
	if got, err := command("deaf").Summarize(t.Context(), long); err != nil || got != "anyway" {
		t.Errorf("a command that does not read: %q, %v", got, err)
	}
}

func TestExecFails(t *testing.T) {
	if _, err := command("fail").Summarize(t.Context(), asked); err == nil || !strings.HasSuffix(err.Error(), "exit status 1: no model loaded") {
		t.Errorf("it failed: %v", err)
	}
	if _, err := command("flood").Summarize(t.Context(), asked); !errors.Is(err, ErrTooLong) {
		t.Errorf("it does not end: %v", err)
	}
	if _, err := (Exec{Command: []string{"/nonexistent/summarizer"}}).Summarize(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("it is not there: %v", err)
	}
	slow := command("hang")
	slow.Timeout = 50 * time.Millisecond
	if _, err := slow.Summarize(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "did not answer within 50ms") {
		t.Errorf("it hangs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := command("hang").Summarize(ctx, asked); !errors.Is(err, context.Canceled) {
		t.Errorf("the user gave up: %v", err)
	}
}

func serve(t *testing.T, f http.HandlerFunc) OpenAI {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return OpenAI{Base: s.URL + "/v1/", Model: "m", Key: "se" + "cret-key", Timeout: 20 * time.Second}
}

func TestOpenAI(t *testing.T) {
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model    string
			Messages []struct{ Role, Content string }
			Stream   bool
			Max      int `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer se"+"cret-key" ||
			body.Model != "m" || body.Stream || body.Max != 100 || len(body.Messages) != 2 || body.Messages[0].Content != "keep names" ||
			!strings.Contains(body.Messages[1].Content, "[User]: hi\n\n[Assistant]: hello") || !strings.Contains(body.Messages[1].Content, "<earlier-summary>\nbefore\n") {
			t.Errorf("asked %s %+v, %v", r.URL.Path, body, err)
		}
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":" a summary\n"}}]}`)
	})
	if got, err := o.Summarize(t.Context(), asked); err != nil || got != "a summary" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOpenAIFails(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, c := range map[string]struct {
		f    http.HandlerFunc
		want string
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"error":{"message":"bad key\nmore"}}`)
		}, "status 401: bad key"},
		"a text":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); fmt.Fprint(w, `not found`) }, "status 404"},
		"no JSON":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) }, "not the JSON of a chat completion"},
		"no choice": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, "nothing"},
		"another place": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "status 307"},
		"without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for block := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "longer than"},
	} {
		_, err := serve(t, c.f).Summarize(t.Context(), asked)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "cret-key") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if elsewhere != 0 {
		t.Error("the conversation was sent to another place")
	}
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client is gone
		<-r.Context().Done()
	})
	slow.Timeout = 50 * time.Millisecond
	if _, err := slow.Summarize(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("it hangs: %v", err)
	}
}

func TestChain(t *testing.T) {
	var failed []string
	c := Chain{Providers: []Provider{command("fail"), command("silent"), Extract{}}, Failed: func(_ Provider, err error) { failed = append(failed, err.Error()) }}
	got, by, err := c.Summarize(t.Context(), asked)
	if err != nil || by.Name() != "extract" || got == "" || len(failed) != 2 || !strings.Contains(failed[1], "answered nothing") {
		t.Errorf("%q by %v, %v; failed before: %q", got, by, err, failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if got, _, err := (Chain{Providers: []Provider{command("hang"), Extract{}}}).Summarize(ctx, asked); !errors.Is(err, context.Canceled) {
		t.Errorf("the user gave up, and %q was answered: %v", got, err)
	}
	if _, _, err := (Chain{Providers: []Provider{command("fail")}}).Summarize(t.Context(), asked); err == nil {
		t.Error("all failed, without an error")
	}
}

func TestExtract(t *testing.T) {
	got, err := Extract{}.Summarize(t.Context(), Request{Previous: "## Decisions\nOld.", Conversation: []Turn{
		{"user", "Please move the billing service to /srv/billing/new. You must never delete the old one!"},
		{"assistant", "We will use Postgres. The migration of host db1:5432 is still pending."},
		{"tool", "we decided nothing; id deadbeef01"},
		{"user", "And what about https://example.com/a?b=1, please?"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"## Decisions", "Old.", "The conversation began with: \"Please move the billing", "We will use Postgres.", "## Open TODOs", "still pending.", "## Constraints/Rules", "You must never delete",
		"## Pending user asks", "And what about", "## Exact identifiers", "/srv/billing/new", "db1:5432", "deadbeef01", "https://example.com/a?b=1",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("%s is not there, or not in its place:\n%s", want, got)
		}
		at += i
	}
	if strings.Contains(got, "we decided nothing") {
		t.Errorf("what a tool said became a decision:\n%s", got)
	}
}

// Whatever the conversation, all headings are there in their order, and the summary is short.
func TestExtractHasItsHeadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Request
		for range rapid.IntRange(0, 20).Draw(t, "turns") {
			r.Conversation = append(r.Conversation, Turn{rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"), rapid.StringN(0, 400, -1).Draw(t, "text")})
		}
		got, err := Extract{}.Summarize(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, h := range Headings {
			i := strings.Index("\n"+got[at:]+"\n", "\n"+h+"\n")
			if i < 0 {
				t.Fatalf("%s is not there:\n%s", h, got)
			}
			at += i
		}
		if len(got) > 40<<10 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
