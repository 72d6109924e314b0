package maintenance

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/config"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
)

var more = flag.String("cases", "", "a folder of further recorded cases, one JSON file each")

// A recorded case: what OpenClaw 2026.7.35 answered on a recipe.
type recorded struct {
	Name   string              `json:"name"`
	Now    int64               `json:"now"`
	Recipe recipe              `json:"recipe"`
	Args   map[string][]string `json:"args"`
	Expect map[string]struct {
		Exit   int                        `json:"exit"`
		JSON   json.RawMessage            `json:"json"`
		After  []string                   `json:"after"`
		Stores map[string]json.RawMessage `json:"stores"`
	} `json:"expect"`
}

func recordedCases(t *testing.T) (out []recorded) {
	t.Helper()
	add := func(text []byte) {
		var c recorded
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	f, err := os.Open("testdata/cleanup.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		add(lines.Bytes())
	}
	if lines.Err() != nil || len(out) < 50 {
		t.Fatal(len(out), lines.Err())
	}
	if *more == "" {
		return out
	}
	out = nil
	paths, _ := filepath.Glob(filepath.Join(*more, "*.json"))
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		add(text)
	}
	return out
}

// alive is a machine on which process 4242 runs, and oc, and no other.
type alive struct{}

func (alive) Process(pid int) lock.Process {
	if pid == 4242 || pid == os.Getpid() {
		return lock.Process{PID: pid, Life: lock.Alive, Start: 7}
	}
	return lock.Process{PID: pid, Life: lock.Gone}
}
func (alive) Boot() time.Time                 { return time.Time{} }
func (alive) Elsewhere(string) (string, bool) { return "", false }
func (alive) Nested(int, uint64) int          { return 0 }

// orders reads the arguments of a recorded case.
func orders(t *testing.T, args []string) (o Orders, pick store.Pick) {
	t.Helper()
	for i := 0; i < len(args); i++ {
		next := func() string { i++; return args[i] }
		switch args[i] {
		case "sessions", "cleanup", "--dry-run", "--json":
		case "--enforce":
			o.Enforce = true
		case "--fix-missing":
			o.FixMissing = true
		case "--fix-dm-scope":
			o.FixDMScope = true
		case "--active-key":
			o.ActiveKeys = append(o.ActiveKeys, next())
		case "--store":
			pick.Store = next()
			o.Named = true
		case "--agent":
			pick.Agent = next()
		case "--all-agents":
			pick.All = true
		default:
			t.Fatalf("argument %s", args[i])
		}
	}
	return o, pick
}

// planned makes the plans of a case in a directory of its own.
func planned(t *testing.T, c *recorded, mode string) (state string, plans []*Plan, snaps []*Snapshot, err error) {
	t.Helper()
	// As long as the folder that the cases were recorded in: paths are measured.
	root := filepath.Join(os.TempDir(), fmt.Sprintf("oc-golden-%08x", rand.Uint32()))
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	state = filepath.Join(root, ".openclaw")
	b := &builder{t, state, c.Now}
	b.build(&c.Recipe)
	if c.Name == "locked-transcript" {
		for name := range plain(t, state) {
			if strings.HasSuffix(name, ".lock") {
				b.write(filepath.Join(state, name), `{"pid":4242,"createdAt":"2026-11-30T00:00:00.000Z","starttime":7}`)
			}
		}
	}
	env := map[string]string{"HOME": root, "OPENCLAW_STATE_DIR": state}
	cfg, err := config.Load(config.Options{Env: func(k string) string { return env[k] }, Cwd: root, Home: root})
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(c.Args[mode])
	for i := range args {
		args[i] = b.sub(args[i])
	}
	o, pick := orders(t, args)
	if pick.Agent != "" && pick.All {
		return state, nil, nil, errors.New("both")
	}
	policy, _, err := ReadPolicy(cfg, o)
	if err != nil {
		return state, nil, nil, err
	}
	targets, err := store.Targets(cfg, pick)
	if err != nil {
		return state, nil, nil, err
	}
	now := time.UnixMilli(c.Now)
	for _, target := range targets {
		s, err := Take(context.Background(), cfg, target, policy, alive{}, now)
		if err != nil {
			return state, nil, nil, err
		}
		plans, snaps = append(plans, Make(policy, s, now)), append(snaps, s)
	}
	return state, plans, snaps, nil
}

// document is a summary under OpenClaw's names.
func document(s Summary) map[string]any {
	older := any(s.Artifacts.OlderThanMs)
	if math.IsInf(s.Artifacts.OlderThanMs, 1) {
		older = nil
	}
	doc := map[string]any{
		"agentId": s.AgentID, "storePath": s.StorePath, "mode": string(s.Mode), "dryRun": s.DryRun,
		"beforeCount": s.BeforeCount, "afterCount": s.AfterCount, "repaired": s.Repaired, "missing": s.Missing,
		"dmScopeRetired": s.DMScopeRetired, "modelRunPruned": s.ModelRunPruned, "pruned": s.Pruned, "capped": s.Capped,
		"unreferencedArtifacts": map[string]any{"scannedFiles": s.Artifacts.ScannedFiles, "removedFiles": s.Artifacts.RemovedFiles, "freedBytes": s.Artifacts.FreedBytes, "olderThanMs": older},
		"diskBudget":            nil, "wouldMutate": s.WouldMutate,
	}
	if b := s.DiskBudget; b != nil {
		doc["diskBudget"] = map[string]any{
			"totalBytesBefore": b.TotalBytesBefore, "totalBytesAfter": b.TotalBytesAfter, "removedFiles": b.RemovedFiles, "removedEntries": b.RemovedEntries,
			"freedBytes": b.FreedBytes, "maxBytes": b.MaxBytes, "highWaterBytes": b.HighWaterBytes, "overBudget": b.OverBudget,
		}
	}
	return doc
}

// differs is the first place where got lacks or changes something of want.
func differs(want, got any, at string) string {
	w, ok := want.(map[string]any)
	if !ok {
		if a, b := fmt.Sprint(want), fmt.Sprint(got); a != b {
			if f, ok := want.(float64); !ok || fmt.Sprint(got) != fmt.Sprintf("%.0f", f) {
				return fmt.Sprintf("%s: want %v, got %v", at, want, got)
			}
		}
		return ""
	}
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: want an object, got %v", at, got)
	}
	for k, v := range w {
		if k == "applied" || k == "appliedCount" {
			continue
		}
		if d := differs(v, g[k], at+"."+k); d != "" {
			return d
		}
	}
	return ""
}

type divergence struct {
	Dry, Real, Both any
	Tree            bool
	Ignore          []string
}

var afterLine = regexp.MustCompile(`^f (.*?) \d+ \d+ \S+$`)

// check holds the plans of one case against what was recorded; "" when all is
// the same.
func (c *recorded) check(t *testing.T, mode string, div divergence) string {
	t.Helper()
	state, plans, snaps, err := planned(t, c, mode)
	want := c.Expect[mode]
	rule := map[string]any{"dry": div.Dry, "real": div.Real}[mode]
	if rule == nil {
		rule = div.Both
	}
	if rule == "refuse" {
		var damage *row.Damage
		var missing *Missing
		if !errors.As(err, &damage) && !errors.As(err, &missing) {
			return fmt.Sprintf("%s: must refuse, got %v", mode, err)
		}
		return ""
	}
	if want.Exit != 0 && rule != "ok" {
		if err == nil {
			return mode + ": must fail"
		}
		return ""
	}
	if err != nil {
		if rule == "free" {
			return ""
		}
		return fmt.Sprintf("%s: %v", mode, err)
	}
	have := plain(t, state)
	before := plain(t, state)
	for i, p := range plans {
		if why := sums(p, snaps[i]); why != "" {
			return mode + ": " + why
		}
		for _, a := range p.Actions {
			if !a.Applies || a.Kind != Remove && a.Kind != Move {
				continue
			}
			rel, _ := filepath.Rel(state, a.Target)
			if !have[rel] {
				return fmt.Sprintf("%s: %s is not there to %s", mode, rel, a.Kind)
			}
			delete(have, rel)
			if a.Kind == Move {
				to, _ := filepath.Rel(state, a.To)
				have[to] = true
			}
		}
	}
	if keeps, ok := rule.(map[string]any); ok {
		for _, k := range keeps["keeps"].([]any) {
			if !have[k.(string)] {
				return fmt.Sprintf("%s: %s must survive", mode, k)
			}
		}
		return ""
	}
	if rule == "free" {
		return ""
	}
	if len(want.JSON) > 0 && rule != "ok" {
		for i, w := range documents(t, want.JSON, state) {
			if mode == "real" {
				dry := documents(t, c.Expect["dry"].JSON, state)[i]
				for _, k := range []string{"beforeCount", "unreferencedArtifacts", "diskBudget"} {
					if differs(dry[k], w[k], "") != "" {
						delete(w, k)
					}
				}
			}
			for _, k := range div.Ignore {
				delete(w, k)
			}
			if d := differs(w, document(plans[i].Summary(mode == "dry")), mode); d != "" {
				return d
			}
		}
	}
	if mode != "real" || div.Tree {
		return ""
	}
	listed := map[string]bool{}
	for _, l := range want.After {
		if m := afterLine.FindStringSubmatch(l); m != nil {
			listed[m[1]] = true
		}
	}
	archived := true
	for n := range have {
		if i := strings.Index(n, ".deleted."); i >= 0 && strings.Contains(n, ".jsonl.deleted.") && !listed[n] {
			archived = archived && before[n[:i]] && !listed[n[:i]]
		}
	}
	for n := range have {
		if strings.Contains(n, ".jsonl.deleted.") && !listed[n] && archived || n == "openclaw.json" {
			delete(have, n)
		}
	}
	if strings.Join(sorted(listed), "\n") != strings.Join(sorted(have), "\n") {
		var missing, extra []string
		for n := range listed {
			if !have[n] {
				missing = append(missing, n)
			}
		}
		for n := range have {
			if !listed[n] {
				extra = append(extra, n)
			}
		}
		return fmt.Sprintf("files differ: missing %v, unexpected %v", missing, extra)
	}
	return ""
}

func documents(t *testing.T, raw json.RawMessage, state string) []map[string]any {
	t.Helper()
	text := strings.ReplaceAll(string(raw), "{{STATE}}", state)
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if all, ok := doc["stores"].([]any); ok {
		var out []map[string]any
		for _, d := range all {
			out = append(out, d.(map[string]any))
		}
		return out
	}
	return []map[string]any{doc}
}

func TestRecordedCleanups(t *testing.T) {
	text, err := os.ReadFile("testdata/divergences.json")
	if err != nil {
		t.Fatal(err)
	}
	divs := map[string]divergence{}
	if err := json.Unmarshal(text, &divs); err != nil {
		t.Fatal(err)
	}
	for _, c := range recordedCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			for _, mode := range []string{"dry", "real"} {
				if why := c.check(t, mode, divs[c.Name]); why != "" {
					t.Error(why)
					if *more != "" {
						_, plans, _, _ := planned(t, &c, mode)
						for _, p := range plans {
							for _, a := range p.Actions {
								t.Logf("%s %s %s %s %s (%s) %t", a.Kind, a.Rule, a.Key, filepath.Base(a.Target), filepath.Base(a.To), a.Reason, a.Applies)
							}
							for _, x := range p.Protected {
								t.Logf("stays %s/%s %s %s (%s)", x.Rule, x.Asked, x.Key, filepath.Base(x.Target), x.Reason)
							}
						}
					}
				}
			}
		})
	}
}

// sums tells where the numbers of a plan do not agree with each other.
func sums(p *Plan, s *Snapshot) string {
	rows, files := 0, map[string]bool{}
	for _, a := range p.Actions {
		switch a.Kind {
		case DropRow:
			rows++
		case Remove, Move:
			if files[a.Target] {
				return "two actions for " + a.Target
			}
			files[a.Target] = true
		}
	}
	m := p.preview
	if got := m.BeforeCount - m.AfterCount; rows != got {
		return fmt.Sprintf("%d rows are dropped, the summary says %d", rows, got)
	}
	evicted := 0
	if m.DiskBudget != nil {
		evicted = m.DiskBudget.RemovedEntries
	}
	if n := m.Missing + m.DMScopeRetired + m.ModelRunPruned + m.Pruned + m.Capped + m.CronPruned + m.ByHand + evicted; n != rows {
		return fmt.Sprintf("%d rows are dropped, by rule there are %d", rows, n)
	}
	return ""
}
