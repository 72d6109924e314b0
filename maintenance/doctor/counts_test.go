package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/config"
	"oc/fixtures"
	"oc/maintenance"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/lock"
)

// cleanup is the plan of a cleanup with --fix-missing, as oc sessions cleanup makes it.
func cleanup(t testing.TB, state string) *maintenance.Plan {
	t.Helper()
	c, err := config.Load(config.Options{StateDir: state, Cwd: state, Home: state})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := maintenance.ReadPolicy(c, maintenance.Orders{FixMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := maintenance.Take(t.Context(), c, targets[0], p, lock.Local(), now)
	if err != nil {
		t.Fatal(err)
	}
	return maintenance.Make(p, s, now)
}

// A moved or misplaced transcript is found whatever retention says of its row, also where the session is in use, and is mended by its code before
// a cleanup takes the row out for its age.
func TestMovedAgainstRetention(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Dir(fixtures.Store(state, "main"))
	put(t, filepath.Join(state, "openclaw.json"), `{session: {maintenance: {mode: "enforce", pruneAfter: "30d", maxEntries: 3}}}`)
	var rows []string
	for i, days := range []int64{60, 1, 1, 1, 1, 0} {
		id := fixtures.IDOf(fmt.Sprint("moved ", i))
		at := fixtures.Now - days*fixtures.Day
		path := filepath.Join(dir, id+".jsonl")
		put(t, path, fixtures.Talk(id, at).User("Hello").Assistant("Hello!").String())
		if err := os.Chtimes(path, time.UnixMilli(at), time.UnixMilli(at)); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf(`"agent:main:explicit:%s": {"sessionId": %q, "updatedAt": %d, "sessionFile": "/old/home/agents/main/sessions/%s.jsonl"}`, id, id, at, id))
	}
	put(t, fixtures.Store(state, "main"), "{"+strings.Join(rows, ",\n")+"}")
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "paths") })
	if n := len(found(r, PathMoved)); n != 6 {
		t.Errorf("%d of 6 moved transcripts are found: %v", n, codes(r))
	}
	goes := 0
	for _, f := range found(r, PathMoved) {
		if strings.Contains(strings.Join(f.Evidence, " "), "a cleanup takes the row out by the rule ") {
			goes++
		}
	}
	if s := cleanup(t, state).Summary(true); goes == 0 || s.Repaired+goes != 5 { // the one of a moment ago is in use
		t.Errorf("%d rows go and %d are repaired by a cleanup", goes, s.Repaired)
	}
	o, w := ward(t, state, nil)
	all, err := Fix(t.Context(), o, []Code{PathMoved}, w, false)
	if err != nil || len(all) != 1 || all[0].Err != nil || len(all[0].Findings) != 5 || len(all[0].Left) != 1 {
		t.Fatalf("%v %+v", err, all)
	}
	for key, val := range rowsOf(t, fixtures.Store(state, "main")) {
		if moved := strings.Contains(val, "/old/home"); moved != (key == "agent:main:explicit:"+fixtures.IDOf("moved 5")) {
			t.Errorf("%s: %s", key, val)
		}
	}
}

// Over random states doctor and cleanup say the same: which transcripts are missing, which rows are to be repaired, which temporary files are stale,
// how much of what is left over can go.
func TestSameCounts(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		state := filepath.Join(t.TempDir(), "state")
		dir := filepath.Dir(fixtures.Store(state, "main"))
		ages := rapid.SampledFrom([]int64{0, 30_000, 7 * 60_000, fixtures.Hour, 29 * fixtures.Day, 31 * fixtures.Day})
		write := func(name, text string) {
			path := filepath.Join(dir, name)
			put(t, path, text)
			at := time.UnixMilli(fixtures.Now - ages.Draw(rt, "age of "+name))
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(state, "openclaw.json"), fmt.Sprintf(`{session: {maintenance: {mode: %q, maxEntries: %d, pruneAfter: "30d", resetArchiveRetention: %s, maxDiskBytes: %s}}}`,
			rapid.SampledFrom([]string{"warn", "enforce"}).Draw(rt, "mode"), rapid.SampledFrom([]int{3, 500}).Draw(rt, "cap"),
			rapid.SampledFrom([]string{"false", `"7d"`}).Draw(rt, "resets"), rapid.SampledFrom([]string{"null", "2000"}).Draw(rt, "budget")))
		var rows []string
		for i := range rapid.IntRange(0, 8).Draw(rt, "rows") {
			id := fixtures.IDOf(fmt.Sprint("row ", i))
			file := rapid.SampledFrom([]string{"", id + ".jsonl", fixtures.IDOf("row 1") + ".jsonl", "/old/agents/main/sessions/" + id + ".jsonl", "named.jsonl", "/etc/hosts"}).Draw(rt, "file")
			key := rapid.SampledFrom([]string{"agent:main:explicit:", "agent:main:telegram:slash:", "agent:main:cron:j:run:", "agent:main:telegram:direct:"}).Draw(rt, "key") + fmt.Sprint(i)
			val := fmt.Sprintf(`{"sessionId": %q, "updatedAt": %d, "sessionFile": %q}`, id, fixtures.Now-ages.Draw(rt, "updated"), file)
			if file == "" {
				val = fmt.Sprintf(`{"sessionId": %q, "updatedAt": %d}`, id, fixtures.Now-ages.Draw(rt, "updated"))
			}
			rows = append(rows, fmt.Sprintf("%q: %s", key, val))
			switch rapid.IntRange(0, 3).Draw(rt, "transcript") {
			case 1:
				write(id+".jsonl", fixtures.Talk(id, fixtures.Now-fixtures.Day).User("Hello").String())
			case 2:
				write(id+".jsonl", fixtures.Talk(id, fixtures.Now-fixtures.Day).String())
			case 3:
				write(id+".jsonl", fixtures.Talk(id, fixtures.Now-fixtures.Day).User("Hello").String()+"{torn")
			}
		}
		put(t, fixtures.Store(state, "main"), "{"+strings.Join(rows, ",")+"}")
		for i := range rapid.IntRange(0, 3).Draw(rt, "remains") {
			write(fmt.Sprintf("sessions.json.4711.0a1b2c3d-0000-4000-8000-00000000000%d.tmp", i), "{")
			write(fixtures.Gone(fmt.Sprintf("gone%d.jsonl", i), rapid.SampledFrom([]string{"deleted", "reset"}).Draw(rt, "reason"), fixtures.Now-ages.Draw(rt, "archived")), "x")
			write(fmt.Sprintf("history%d.jsonl", i), fixtures.Talk("h", fixtures.Now-fixtures.Day).User("Hello").String())
		}

		plan := cleanup(t, state)
		r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "paths,files") })
		want, got := map[string][]string{}, map[string][]string{}
		archives := 0
		for _, a := range plan.Actions {
			switch {
			case a.Kind == maintenance.DropRow && a.Rule == maintenance.FixMissing:
				want["missing"] = append(want["missing"], a.Key)
			case a.Rule == maintenance.Repair:
				want["repaired"] = append(want["repaired"], a.Key)
			case a.Rule == maintenance.OldTemp:
				want["temp"] = append(want["temp"], a.Target)
			case a.Kind == maintenance.Remove && a.Class == jsonfile.Archive:
				archives++
			}
		}
		for _, p := range plan.Protected {
			if p.Asked == maintenance.Repair {
				want["in use"] = append(want["in use"], p.Key)
			}
		}
		canGo, files := 0, 0
		for _, f := range r.Findings {
			evidence := strings.Join(f.Evidence, "; ")
			switch f.Code {
			case TranscriptMissing, TranscriptEmpty:
				got["missing"] = append(got["missing"], f.Key)
			case PathMoved, TranscriptMisplaced:
				switch kind := "repaired"; {
				case strings.Contains(evidence, "a cleanup takes the row out"):
					met["goes"]++
				default:
					for _, p := range plan.Protected {
						if p.Asked == maintenance.Repair && p.Key == f.Key {
							kind = "in use"
						}
					}
					got[kind] = append(got[kind], f.Key)
				}
			case StaleTemp:
				if !strings.Contains(f.Evidence[0], "written") { // the younger ones are doctor's own
					got["temp"] = append(got["temp"], f.File)
				}
			case Archives:
				n, err := strconv.Atoi(strings.Fields(f.Evidence[0])[0])
				if err != nil {
					rt.Fatal(err)
				}
				files += n
				switch {
				case strings.HasPrefix(f.Evidence[1], "all"):
					canGo += n
				case !strings.HasPrefix(f.Evidence[1], "nothing"):
					k, err := strconv.Atoi(strings.Fields(f.Evidence[1])[0])
					if err != nil {
						rt.Fatal(err)
					}
					canGo += k
				}
			}
		}
		for name := range want {
			met[name]++
		}
		sorted := cmp.Transformer("sorted", func(s []string) map[string]int {
			m := map[string]int{}
			for _, x := range s {
				m[x]++
			}
			return m
		})
		if d := cmp.Diff(want, got, sorted); d != "" {
			rt.Errorf("cleanup and doctor: %s", d)
		}
		if canGo != archives {
			rt.Errorf("%d archives can go, cleanup removes %d", canGo, archives)
		}
		if canGo > 0 {
			met["archives"]++
		}
	})
	for _, name := range []string{"missing", "repaired", "temp", "in use", "archives", "goes"} {
		if met[name] == 0 {
			t.Errorf("%s was never met: the test proves nothing of it", name)
		}
	}
}
