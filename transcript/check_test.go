package transcript

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What OpenClaw repairs in a file is what a scan finds in it: as many lines that
// are dropped, texts that are filled in, images that are taken out.
func TestFindingsAsRepair(t *testing.T) {
	type counts struct {
		DroppedLines                int
		RewrittenAssistantMessages  int
		RewrittenUserMessages       int
		RemovedCorruptedImageBlocks int
	}
	for _, c := range golden[struct {
		Name     string
		Lines    []string
		Expected struct{ Result counts }
	}](t, "file-repair.jsonl") {
		var got counts
		s := Scanner{Tree: &Tree{}, Report: func(f Finding) {
			switch f.Code {
			case NotJSON, NotObject, TornTail, NoMessage, BadRole:
				got.DroppedLines++
			case EmptyFailure:
				got.RewrittenAssistantMessages++
			case BlankUser:
				got.RewrittenUserMessages++
			case BadImage:
				got.RemovedCorruptedImageBlocks++
			}
		}}
		if err := s.Read(strings.NewReader(strings.Join(c.Lines, "\n")), func(*Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got != c.Expected.Result {
			t.Errorf("%s: %+v, want %+v", c.Name, got, c.Expected.Result)
		}
	}
}

func TestBadImages(t *testing.T) {
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"
	for _, c := range []struct{ name, data, want string }{
		{"whole", png + "CA==", ""},
		{"white space", png + `\nCAAA`, ""},
		{"no image", "QUJDREVGR0hJSktM", "the data is no image"},
		{"cut", png + "A", "the data is cut"},
		{"padding inside", png + "=AAA", "there is data behind the padding"},
		{"not ASCII", png + "é", "the data is not base64"},
		{"empty", "", "the data is cut"},
	} {
		if got := badImage([]byte(`{"type":"image","mimeType":"image/png","data":"` + c.data + `"}`)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// The same behind what is looked at byte by byte, wherever it stands.
	long := png + strings.Repeat("A", 200-len(png))
	for at := 120; at < len(long)-1; at++ {
		for data, want := range map[string]string{
			long[:at] + `\n` + long[at:]:   "",
			long[:at] + "-" + long[at+1:]:  "the data is not base64",
			long[:at] + "=" + long[at+1:]:  "there is data behind the padding",
			long[:at] + long[at+1:] + "AA": "the data is cut",
		} {
			if got := badImage([]byte(`{"data":"` + data + `","media_type":"image/png","type":"image"}`)); got != want {
				t.Errorf("%s: %q, want %q", data, got, want)
			}
		}
	}
	if got := badImage([]byte(`{"type":"image","data":"x"}`)); got != "" {
		t.Errorf("an image of no type: %q", got)
	}
}

// S12 of field-reports.md.
func TestPairs(t *testing.T) {
	call := func(id, args string) string {
		return `{"role":"assistant","content":[{"type":"toolCall","id":"` + id + `","name":"x"` + args + `}]}`
	}
	result := func(id string) string { return `{"role":"toolResult","toolCallId":"` + id + `","content":[]}` }
	args := `,"arguments":{}`
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"pair", []string{call("1", args), result("1")}, nil},
		{"call at the end", []string{call("1", args)}, []string{"open-call 1"}},
		{"call that was passed over", []string{call("1", args), `{"role":"assistant","content":[]}`}, []string{"lost-result 1"}},
		{"result without call", []string{result("1")}, []string{"orphan-result 1"}},
		{"result before its call", []string{result("1"), call("1", args)}, []string{"early-result 1"}},
		{"two results", []string{call("1", args), result("1"), result("1")}, []string{"second-result 3"}},
		{"empty id", []string{call("", args)}, []string{"no-call-id 1"}},
		{"no arguments", []string{call("1", ""), result("1")}, []string{"no-arguments 1"}},
		{"one of two missing", []string{
			`{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"x","arguments":{}},{"type":"tool_use","id":"2","name":"y","input":{}}]}`,
			result("2"), `{"role":"user","content":"x"}`, call("3", args), result("3"),
		}, []string{"lost-result 1"}},
	} {
		var got []string
		p := Pairs{Report: func(f Finding) { got = append(got, string(f.Code)+" "+string(rune('0'+f.At.Line))) }}
		for i, m := range c.rows {
			p.Add(&Entry{Kind: Message, Message: json.RawMessage(m)}, Place{Line: i + 1})
		}
		p.Check()
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
