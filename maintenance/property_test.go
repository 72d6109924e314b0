package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/config"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/span"
)

const propertyNow = 1790000000000

// ages around every limit, in milliseconds.
var ages = []float64{0, 1000, 299999, 300000, 3600000, 86399999, 86400000, 86400001, 2592000000 - 1, 2592000000, 2592000001, 3456000000, -3600000}

// drawState lays out a random state and gives back its configuration.
func drawState(t *rapid.T, tt *testing.T, root string) (*config.Config, *builder) {
	b := &builder{tt, filepath.Join(root, ".openclaw"), propertyNow}
	dir := "agents/main/sessions/"
	uuid := func(n int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", n) }
	n := rapid.IntRange(0, 14).Draw(t, "rows")
	var r recipe
	var entries []json.RawMessage
	for i := range n {
		rest := rapid.SampledFrom([]string{
			"explicit:%d", "main", "telegram:direct:%d", "discord:group:%d", "direct:%d", "main:thread:%d", "cron:j%d", "cron:j1:run:%d", "subagent:%d",
			"explicit:model-run-0000000%d-1111-4111-8111-111111111111", "slack:slash:%d",
		}).Draw(t, "key")
		key := "agent:main:" + rest
		if rest != "main" {
			key = fmt.Sprintf(key, i%10)
		}
		id := rapid.SampledFrom([]string{fmt.Sprintf("s%d", i), "shared", uuid(i), ""}).Draw(t, "id")
		entry := map[string]any{}
		if id != "" {
			entry["sessionId"] = id
		}
		if file := rapid.SampledFrom([]string{"", "", "", uuid(i+1) + ".jsonl", "custom.jsonl", "../out.jsonl", "{{STATE}}/" + dir + "s1.jsonl"}).Draw(t, "file"); file != "" {
			entry["sessionFile"] = file
		}
		switch rapid.IntRange(0, 9).Draw(t, "stamp") {
		case 0:
		case 1:
			entry["updatedAt"] = rapid.SampledFrom([]any{"1790000000000", -1, nil, true, []int{}}).Draw(t, "odd")
		default:
			entry["updatedAt"] = propertyNow - rapid.SampledFrom(ages).Draw(t, "age")
		}
		if rapid.IntRange(0, 5).Draw(t, "more") == 0 {
			entry["chatType"] = "group"
			entry["pinnedAt"] = 5
		}
		raw, _ := json.Marshal(map[string]any{"key": key, "entry": entry})
		entries = append(entries, raw)
	}
	names := []string{"custom.jsonl", "shared.jsonl", "old.trajectory.jsonl", "s1.trajectory.jsonl", "s2.trajectory-path.json", "notes.txt", "sessions.json." + uuid(7) + ".tmp", "gone.jsonl", "s3.checkpoint." + uuid(5) + ".jsonl"}
	for i := range 8 {
		names = append(names, fmt.Sprintf("s%d.jsonl", i), uuid(i)+".jsonl")
		names = append(names, fmt.Sprintf("a%d.jsonl.%s.{{TS-%.0f}}", i, rapid.SampledFrom([]string{"deleted", "reset", "bak"}).Draw(t, "reason"), rapid.SampledFrom(ages).Draw(t, "archived")))
	}
	for _, name := range names {
		if rapid.Bool().Draw(t, "absent") {
			continue
		}
		f := map[string]any{"path": dir + name, "ageMs": rapid.SampledFrom(ages).Draw(t, "fileAge")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			f["transcript"] = map[string]any{"id": "x", "messages": rapid.IntRange(0, 2).Draw(t, "messages")}
		case 1:
			f["size"] = rapid.SampledFrom([]int{0, 1, 900, 5000}).Draw(t, "size")
		case 2:
			f["content"] = rapid.SampledFrom([]string{"", "\n", "{\"type\":\"session\"}\n", "torn"}).Draw(t, "content")
		case 3:
			if rapid.IntRange(0, 3).Draw(t, "link") == 0 {
				f["symlinkTo"] = "s1.jsonl"
			}
		}
		raw, _ := json.Marshal(f)
		r.Files = append(r.Files, raw)
	}
	if rapid.IntRange(0, 4).Draw(t, "lock") == 0 {
		r.Files = append(r.Files, json.RawMessage(`{"path":"`+dir+`s1.jsonl.lock","content":"{\"pid\":4242,\"starttime\":7}"}`))
	}
	m := map[string]any{}
	if rapid.Bool().Draw(t, "cap") {
		m["maxEntries"] = rapid.IntRange(1, 8).Draw(t, "maxEntries")
	}
	if rapid.Bool().Draw(t, "budget") {
		m["maxDiskBytes"] = rapid.IntRange(1, 20000).Draw(t, "maxDiskBytes")
	}
	if rapid.Bool().Draw(t, "age rule") {
		m["pruneAfter"] = rapid.SampledFrom([]any{"1d", "30d", 1, "5m"}).Draw(t, "pruneAfter")
	}
	if rapid.Bool().Draw(t, "reset") {
		m["resetArchiveRetention"] = rapid.SampledFrom([]any{false, "1d", 0}).Draw(t, "resetArchiveRetention")
	}
	if rapid.IntRange(0, 4).Draw(t, "warn") == 0 {
		m["mode"] = "warn"
	}
	r.Config, _ = json.Marshal(map[string]any{"session": map[string]any{"maintenance": m}})
	text := `{"stores":[{"path":"` + dir + `sessions.json","format":"` + rapid.SampledFrom([]string{"", "compact", "newline"}).Draw(t, "format") + `"}]}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		tt.Fatal(err)
	}
	r.Stores[0].Entries = entries
	b.build(&r)
	c, err := config.Load(config.Options{Cwd: root, Home: root})
	if err != nil {
		tt.Fatal(err)
	}
	return c, b
}

func drawOrders(t *rapid.T) (o Orders) {
	o.Enforce = rapid.Bool().Draw(t, "enforce")
	o.FixMissing = rapid.IntRange(0, 3).Draw(t, "fixMissing") == 0
	o.FixDMScope = rapid.IntRange(0, 3).Draw(t, "fixDMScope") == 0
	o.Cron = rapid.IntRange(0, 3).Draw(t, "cron") == 0
	o.KeepUnlinked = rapid.IntRange(0, 3).Draw(t, "keepUnlinked") == 0
	o.IncludeProtected = rapid.IntRange(0, 3).Draw(t, "includeProtected") == 0
	if rapid.IntRange(0, 3).Draw(t, "active") == 0 {
		o.ActiveKeys = []string{rapid.SampledFrom([]string{"agent:main:main", "AGENT:main:explicit:1", "agent:main:direct:2"}).Draw(t, "activeKey")}
	}
	if rapid.IntRange(0, 3).Draw(t, "by hand") == 0 {
		o.OlderThan = rapid.SampledFrom([]float64{0, 1000, 86400000}).Draw(t, "olderThan")
		o.Empty = rapid.Bool().Draw(t, "empty")
		if rapid.Bool().Draw(t, "kinds") {
			o.Kinds = []string{rapid.SampledFrom([]string{"cron", "direct", "group", "explicit"}).Draw(t, "kind")}
		}
	}
	return o
}

// carryOut does what a plan says, in its order.
func carryOut(t *testing.T, p *Plan, s *Snapshot) {
	t.Helper()
	for _, a := range p.Actions {
		var err error
		switch {
		case !a.Applies:
		case a.Kind == Rewrite:
			err = os.WriteFile(a.Target, NewStore(s, p), 0o600)
		case a.Kind == Move:
			if _, there := os.Lstat(a.To); there == nil {
				t.Fatalf("%s is there already", a.To)
			}
			err = os.Rename(a.Target, a.To)
		case a.Kind == Remove:
			err = os.Remove(a.Target)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlansOfRandomStates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		c, _ := drawState(rt, t, root)
		o := drawOrders(rt)
		now := time.UnixMilli(propertyNow)
		look := func() (*Plan, *Snapshot) {
			p, _, err := ReadPolicy(c, o)
			if err != nil {
				t.Fatal(err)
			}
			targets, err := store.Targets(c, store.Pick{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Take(context.Background(), c, targets[0], p, alive{}, now)
			if err != nil {
				t.Fatal(err)
			}
			plan := Make(p, s, now)
			if d := cmp.Diff(plan, Make(p, s, now), cmp.AllowUnexported(Plan{}, Action{}, Protected{})); d != "" {
				rt.Fatalf("the same question has two answers: %s", d)
			}
			return plan, s
		}
		plan, s := look()
		holds(rt, plan, s, &o)
		before := bytesIn(t, s.Dir)
		carryOut(t, plan, s)
		removed := int64(0)
		for _, a := range plan.Actions {
			switch {
			case !a.Applies:
			case a.Kind == Remove:
				removed += a.Bytes
			case a.Kind == Rewrite:
				removed += int64(len(s.Text)) - a.Bytes
			}
		}
		if after := bytesIn(t, s.Dir); before-after != removed {
			rt.Fatalf("%d bytes went, the plan says %d", before-after, removed)
		}
		total := int64(0)
		for _, a := range plan.After {
			total += a.Bytes
		}
		if after := bytesIn(t, s.Dir); after != total {
			rt.Fatalf("%d bytes are left, the plan says %d", after, total)
		}
		again, s2 := look()
		for _, a := range again.Actions {
			if a.Applies {
				rt.Fatalf("planned again: %s %s %s %s (%s)", a.Kind, a.Rule, a.Key, a.Target, a.Reason)
			}
		}
		if len(s2.Rows) != plan.Summary(false).AfterCount {
			rt.Fatalf("%d rows are left, the plan says %d", len(s2.Rows), plan.Summary(false).AfterCount)
		}
	})
}

// holds checks what must be true of every plan.
func holds(rt *rapid.T, p *Plan, s *Snapshot, o *Orders) {
	if why := sums(p, s); why != "" && p.Mode == Enforce {
		rt.Fatal(why)
	}
	gone := map[string]Rule{}
	for _, a := range p.Actions {
		if a.Kind != DropRow {
			continue
		}
		gone[a.Key] = a.Rule
		r, _ := s.Row(a.Key)
		limit := a.Rule == Stale || a.Rule == Cap || a.Rule == Budget || a.Rule == ModelRun || a.Rule == CronRetention || a.Rule == ByHand && !o.IncludeProtected
		if limit && r.Odd {
			rt.Fatalf("%s: an impossible time made it old (%s)", a.Key, a.Rule)
		}
		if limit && a.Rule != ModelRun && conversation(&r.Entry) != "" {
			rt.Fatalf("%s is a conversation and goes (%s)", a.Key, a.Rule)
		}
		if r.Held != "" || r.Written > propertyNow-recently {
			rt.Fatalf("%s is in use and goes (%s)", a.Key, a.Rule)
		}
		for _, k := range o.ActiveKeys {
			if a.Key == lower(k) && a.Rule != FixMissing {
				rt.Fatalf("%s is active and goes (%s)", a.Key, a.Rule)
			}
		}
	}
	for _, x := range p.Protected {
		if x.Key != "" && gone[x.Key] != "" && x.Asked != Repair {
			rt.Fatalf("%s is protected (%s) and goes (%s)", x.Key, x.Rule, gone[x.Key])
		}
		if x.Rule == "" || x.Asked == "" || x.Reason == "" {
			rt.Fatalf("protected without a reason: %+v", x)
		}
	}
	// No file of a row that stays is touched.
	stays, put := map[string]bool{}, map[string]bool{}
	for _, a := range p.Actions {
		put[a.Key] = put[a.Key] || a.Applies && a.Kind == PutRow
	}
	for i := range s.Rows {
		if r := &s.Rows[i]; gone[r.Key] == "" {
			if put[r.Key] {
				r = r.mended
			}
			for _, f := range r.names {
				stays[s.Files[f].Path] = true
			}
		}
	}
	for _, a := range p.Actions {
		if (a.Kind == Move || a.Kind == Remove) && stays[a.Target] {
			rt.Fatalf("%s is named by a row that stays", a.Target)
		}
		if a.Kind != DropRow && a.Kind != PutRow && a.Target == "" || a.Reason == "" || a.Rule == "" {
			rt.Fatalf("incomplete: %+v", a)
		}
	}
	// The new store has the rows that stay, byte for byte.
	applied := map[string]bool{}
	for _, a := range p.Actions {
		applied[a.Key] = applied[a.Key] || a.Applies && a.Kind == DropRow
	}
	text := NewStore(s, p)
	if err := span.Valid(text); err != nil {
		rt.Fatalf("the new store does not parse: %v", err)
	}
	rows := span.Members(text)
	at := 0
	for i := range s.Rows {
		r := &s.Rows[i]
		if applied[r.Key] {
			continue
		}
		if at >= len(rows) || rows[at].Name != r.Key || !put[r.Key] && string(rows[at].Val) != string(r.Val) {
			rt.Fatalf("row %s is missing or has other bytes", r.Key)
		}
		at++
	}
	if at != len(rows) {
		rt.Fatalf("%d rows too many", len(rows)-at)
	}
}

// bytesIn adds up what OpenClaw scans in a directory.
func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	items, problems := jsonfile.List(dir, config.StoreFile)
	if problems != nil {
		t.Fatal(problems)
	}
	for _, it := range items {
		if !it.Link {
			n += it.Size
		}
	}
	return n
}
