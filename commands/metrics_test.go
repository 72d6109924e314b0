package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/fixtures"
)

var (
	metricName  = regexp.MustCompile(`^oc_[a-z_]+$`)
	metricLine  = regexp.MustCompile(`^(oc_[a-z_]+)(?:\{(.*)\})? (\S+)$`)
	metricLabel = regexp.MustCompile(`^([a-z_]+)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)`)
)

// exposed reads OpenMetrics text as its grammar has it and gives back the samples by name and labels: each family whole and once, its
// type before its unit before its help before its samples, each label set once, numbers as numbers, the end at the end.
func exposed(text string) (samples map[string]float64, err error) {
	samples = map[string]float64{}
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || lines[len(lines)-1] != "" || lines[len(lines)-2] != "# EOF" {
		return nil, fmt.Errorf("the end is %.80q", text[max(0, len(text)-80):])
	}
	had := map[string]bool{}
	family, unit, stage := "", "", 0
	for i, line := range lines[:len(lines)-2] {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			word, rest, _ := strings.Cut(rest, " ")
			name, value, _ := strings.Cut(rest, " ")
			switch {
			case word == "TYPE" && !had[name] && metricName.MatchString(name) && value == "gauge":
				had[name], family, unit, stage = true, name, "", 1
			case word == "UNIT" && name == family && stage == 1 && strings.HasSuffix(name, "_"+value) && value != "":
				unit, stage = value, 2
			case word == "HELP" && name == family && stage < 3 && value != "" && !strings.ContainsAny(value, `"\`):
				stage = 3
			default:
				return nil, fmt.Errorf("line %d: %q", i+1, line)
			}
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		if m == nil || m[1] != family || stage < 3 {
			return nil, fmt.Errorf("line %d: %q", i+1, line)
		}
		if strings.HasSuffix(family, "_bytes") && unit != "bytes" || strings.HasSuffix(family, "_seconds") && unit != "seconds" {
			return nil, fmt.Errorf("%s has no unit", family)
		}
		names := map[string]bool{}
		for rest := m[2]; rest != ""; {
			l := metricLabel.FindStringSubmatch(rest)
			if l == nil || names[l[1]] {
				return nil, fmt.Errorf("line %d: labels %q", i+1, m[2])
			}
			names[l[1]], rest = true, rest[len(l[0]):]
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if _, twice := samples[m[1]+"{"+m[2]+"}"]; err != nil || twice {
			return nil, fmt.Errorf("line %d: %q", i+1, line)
		}
		samples[m[1]+"{"+m[2]+"}"] = value
	}
	return samples, nil
}

func TestMetrics(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	a := at(t, state, "metrics")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	got, err := exposed(a.out)
	if err != nil {
		t.Fatal(err)
	}
	// The same numbers as in the documents of the commands that they come from.
	want := map[string]float64{
		`oc_collected_timestamp_seconds{}`: float64(fixtures.Now) / 1000, `oc_config_readable{}`: 1,
		`oc_gateway_life{life="none"}`: 1, `oc_gateway_life{life="alive"}`: 0,
		`oc_running_sessions{agent="main",verdict="probably dead"}`: 2, `oc_running_sessions{agent="work",verdict="live"}`: 0,
		`oc_last_activity_timestamp_seconds{agent="main"}`: float64(fixtures.Now-2*60_000) / 1000,
	}
	status := at(t, state, "status", "--json").doc(t)
	for _, x := range status["agents"].([]any) {
		agent := x.(map[string]any)
		name := agent["agentId"].(string)
		rows := 0.0
		for labels, value := range got {
			if strings.HasPrefix(labels, `oc_sessions{agent="`+name+`"`) {
				rows += value
			}
		}
		if rows != agent["rows"] {
			t.Errorf("%s: %v sessions of all kinds, want %v", name, rows, agent["rows"])
		}
		for class, n := range agent["bytes"].(map[string]any) {
			if class == "total" {
				continue
			}
			class = strings.Replace(class, "importArchive", "import-archive", 1)
			want[fmt.Sprintf(`oc_size_bytes{agent=%q,class=%q}`, name, class)] = n.(float64)
		}
		for class, n := range agent["files"].(map[string]any) {
			want[fmt.Sprintf(`oc_files{agent=%q,class=%q}`, name, class)] = n.(float64)
		}
		want[fmt.Sprintf(`oc_sessions_limit{agent=%q}`, name)] = agent["limits"].(map[string]any)["maxEntries"].(float64)
		configured := 0.0
		if agent["configured"] == true {
			configured = 1
		}
		want[fmt.Sprintf(`oc_agent_configured{agent=%q}`, name)] = configured
	}
	doctor := at(t, state, "doctor", "--json").doc(t)
	for severity, n := range doctor["counts"].(map[string]any) {
		want[fmt.Sprintf(`oc_findings{severity=%q}`, severity)] = n.(float64)
	}
	for code, n := range doctor["codes"].(map[string]any) {
		sum := 0.0
		for labels, value := range got {
			if strings.HasPrefix(labels, "oc_check_findings{") && strings.Contains(labels, `code="`+code+`"`) {
				sum += value
			}
		}
		if sum != n {
			t.Errorf("%s: %v findings, want %v", code, sum, n)
		}
	}
	for labels, value := range want {
		if have, ok := got[labels]; !ok || have != value {
			t.Errorf("%s is %v (%t), want %v", labels, have, ok, value)
		}
	}

	// As a document, the same samples.
	n := 0
	for _, f := range at(t, state, "metrics", "--json").doc(t)["metrics"].([]any) {
		n += len(f.(map[string]any)["samples"].([]any))
	}
	if n != len(got) {
		t.Errorf("%d samples in the document, %d in the text", n, len(got))
	}
}

// What cannot be known has no sample, and the rest is told.
func TestMetricsOfADamagedStore(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(state, "agents/work/sessions/sessions.json"), `{"agent:work:main": {`)
	a := at(t, state, "metrics")
	got, err := exposed(a.out)
	if err != nil {
		t.Fatal(err)
	}
	if a.exit != ExitFailed || !strings.Contains(a.errout, "damaged") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	for labels, value := range got {
		switch {
		case strings.HasPrefix(labels, `oc_sessions{agent="work"`), strings.HasPrefix(labels, `oc_last_activity_timestamp_seconds{agent="work"`):
			t.Errorf("%s %v: it is not known", labels, value)
		}
	}
	if got[`oc_agent_readable{agent="work",era="file"}`] != 0 || got[`oc_agent_readable{agent="main",era="sqlite"}`] != 1 || got[`oc_findings{severity="error"}`] == 0 {
		t.Error(a.out)
	}
}

func TestMetricsFile(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "oc.prom")
	for range 2 { // the second takes the place of the first
		a := at(t, state, "metrics", "--output", file)
		text, err := os.ReadFile(file)
		if a.exit != ExitDone || a.out != "" || err != nil {
			t.Fatalf("exit %d: %s%s (%v)", a.exit, a.out, a.errout, err)
		}
		if _, err := exposed(string(text)); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	if all, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(all) > 0 {
		t.Errorf("left over: %v %v", all, err)
	}
	if doc := at(t, state, "metrics", "--output", file, "--json").doc(t); doc["path"] != file || doc["samples"].(float64) < 50 {
		t.Error(doc)
	}

	// Somebody else's file stays, and nothing is put into the state.
	other := filepath.Join(dir, "notes")
	write(t, other, "# my notes\n")
	link := filepath.Join(dir, "link.prom")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, link, filepath.Join(state, "oc.prom")} {
		if a := at(t, state, "metrics", "--output", path); a.exit != ExitRefused {
			t.Errorf("%s: exit %d: %s", path, a.exit, a.errout)
		}
	}
	if text, err := os.ReadFile(other); string(text) != "# my notes\n" {
		t.Errorf("%q %v", text, err)
	}
	if a := at(t, state, "metrics", "--output", filepath.Join(dir, "no", "oc.prom")); a.exit != ExitFailed {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	if a := at(t, state, "metrics", "--output", " "); a.exit != ExitUsage {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
}

// Whatever an agent is called, the text can be read, and no series stands twice.
func TestMetricsOfAnyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.String(), rapid.StringMatching(`[\\"\n,={}a]{0,6}`), rapid.Just("\xff\"")), 1, 6, rapid.ID).Draw(t, "names")
		var all families
		f := all.gauge("oc_things", "", "Things.")
		for _, n := range names {
			f.add(2, "agent", n)
			f.add(1, "agent", n)
		}
		got, err := exposed(string(all.sorted().exposition()))
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, value := range got {
			sum += value
		}
		if sum != 3*float64(len(names)) {
			t.Errorf("%v of %d names:\n%s", sum, len(names), all.exposition())
		}
	})
	if d := cmp.Diff("# EOF\n", string(families{}.exposition())); d != "" {
		t.Error(d)
	}
}
