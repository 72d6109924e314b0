package config

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDotEnvSameAsNpm(t *testing.T) {
	data, err := os.ReadFile("testdata/dotenv.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text      string            `json:"text"`
		Variables map[string]string `json:"variables"`
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 40 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		got := map[string]string{}
		for _, v := range parseDotEnv(c.Text) {
			got[v.name] = v.value
		}
		if d := cmp.Diff(c.Variables, got); d != "" {
			t.Errorf("%q: %s", c.Text, d)
		}
	}
}

func TestBlockedVariables(t *testing.T) {
	for name, want := range map[string][2]bool{ // in the workspace, in the configuration
		"MY_ROOT":                  {false, false},
		"OPENCLAW_STATE_DIR":       {true, false},
		"OPENCLAW_INCLUDE_ROOTS":   {true, true},
		"OPENAI_API_KEY":           {true, false},
		"OPENAI_API_KEY_2":         {true, false},
		"X_BASE_URL":               {true, false},
		"PATH":                     {true, false},
		"HOME":                     {true, true},
		"LD_PRELOAD":               {true, true},
		"NODE_OPTIONS":             {true, true},
		"CARGO_TARGET_X86_RUNNER":  {true, true},
		"CARGO_TARGET_X86_PROFILE": {false, false},
	} {
		if got := [2]bool{blockedInWorkspace(name), blockedInConfig(name)}; got != want {
			t.Errorf("%s: blocked %v, want %v", name, got, want)
		}
	}
}
