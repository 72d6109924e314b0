package awareness

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGatewayAnswers: testdata/gateway is what a gateway of 2026.9.6 wrote while it ran, the log's tables only, and what
// it answered for them over HTTP.
func TestGatewayAnswers(t *testing.T) {
	path := Path(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/gateway/state.sqlite.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if other := os.Getenv("OC_TEST_STATE_DATABASE"); other != "" { // the whole of it, say
		if b, err = os.ReadFile(other); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/gateway/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var want recorded
	if err := json.Unmarshal(raw, &want); err != nil || len(want.Results) != 6 {
		t.Fatal(len(want.Results), err)
	}
	read(t, path, func(s *Snapshot) error {
		for _, r := range want.Results {
			after := int64(r.ChangesSince.(float64))
			got, err := s.Changes(r.SessionKey, r.AgentID, after, PageSize)
			if err != nil {
				return err
			}
			exp := Changes{
				SessionKey: r.SessionKey, AgentID: r.AgentID, Version: r.StateVersion, Events: []Event{},
				Truncated: r.Result.Truncated, Earliest: r.Result.EarliestAvailableSequence, Gap: r.Result.HistoryGap,
			}
			for _, e := range r.Result.Events {
				exp.Events = append(exp.Events, e.event())
			}
			for i := range got.Events { // a gateway does not repeat these in each event
				got.Events[i].SessionKey, got.Events[i].AgentID, got.Events[i].SessionID = "", "", ""
			}
			if d := cmp.Diff(exp, got); d != "" {
				t.Errorf("%s after %d: (-want +got)\n%s", r.SessionKey, after, d)
			}
		}
		return nil
	})
	w := watches(t, path, WatchFilter{Pending: true}, World{}, t0)
	if len(w) != 1 || w[0].State != Pending || w[0].Behind != 1 || w[0].Target != "agent:ops:main" {
		t.Fatalf("%+v", w)
	}
	n, _ := w[0].Notice()
	if want := `Session "agent:ops:main" changed (other actor). Reconcile before acting: session_status sessionKey "agent:ops:main" changesSince 0.`; n.Text() != want {
		t.Errorf("%s", n.Text())
	}
}
