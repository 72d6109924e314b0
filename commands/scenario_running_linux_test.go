package commands

import (
	"os"
	"strings"
	"testing"

	"oc/fixtures"
	"oc/store/lock"
)

// S14: rows that say they run. Each verdict rests on evidence that is shown; silence alone kills nobody.
func TestRunningSinceLastMonth(t *testing.T) {
	me := lock.Local().Process(os.Getpid())
	boot := lock.Local().Boot().UnixMilli()
	now := boot + 2*fixtures.Day
	dir := t.TempDir()
	r := made[fixtures.Running](t)(fixtures.S14(dir, now, fixtures.Process{PID: os.Getpid(), Start: int64(me.Start)}, boot))
	before := tree(t, dir)
	run := func(args ...string) answer {
		return ocRun(t, dir, quiet(t, now), append([]string{"--state-dir", dir}, args...)...)
	}

	verdicts := map[string]struct {
		word     string
		evidence []string
	}{
		r.Live:      {"live", []string{"transcript grew", "lock is held"}},
		r.Quiet:     {"live", []string{"quiet for 5h", "lock is"}},
		r.Silent:    {"probably dead", []string{"quiet for 3d", "not locked", "nobody owns the state"}},
		r.Ended:     {"contradictory", []string{"it has an end"}},
		r.Archived:  {"contradictory", []string{"archived"}},
		r.Recovered: {"unknown", []string{"taken up again"}},
		r.Rebooted:  {"probably dead", []string{"before the last boot"}},
	}

	status := run("status", "--json")
	want(t, "exit", status.exit, ExitDone)
	got := map[string]string{}
	for _, row := range status.doc(t)["running"].([]any) {
		key := dig(row, "key").(string)
		got[key] = dig(row, "verdict").(string)
		v := verdicts[key]
		want(t, key, dig(row, "verdict"), v.word)
		var says []string
		for _, e := range dig(row, "evidence").([]any) {
			says = append(says, e.(string))
		}
		for _, e := range v.evidence {
			if !strings.Contains(strings.Join(says, "\n"), e) {
				t.Errorf("%s, %s: %q is not in the evidence %q", key, v.word, e, says)
			}
		}
	}
	if len(got) != len(verdicts) {
		t.Errorf("verdicts on %d rows, want %d", len(got), len(verdicts))
	}

	// People read the same.
	text := run("status").out
	for key, v := range verdicts {
		_, rest, _ := strings.Cut(text, v.word+"  "+key+"\n")
		for _, e := range v.evidence {
			found := false
			for line := range strings.SplitSeq(rest, "\n") {
				if !strings.HasPrefix(line, "    ") {
					break
				}
				found = found || strings.Contains(line, e)
			}
			if !found {
				t.Errorf("status does not say %q below %s %s\n%s", e, v.word, key, text)
			}
		}
	}

	// --stuck lists those that do not seem live, and never a live one, however quiet.
	stuck := run("sessions", "--stuck", "--json")
	want(t, "exit", stuck.exit, ExitDone)
	same(t, "stuck", keysOf(stuck.doc(t)), sorted(r.Silent, r.Ended, r.Archived, r.Recovered, r.Rebooted))
	want(t, "hidden", dig(stuck.doc(t), "hiddenCount"), 2.0)
	if table := run("sessions", "--stuck", "--wide").out; strings.Contains(table, r.Quiet) || strings.Contains(table, r.Live) || !strings.Contains(table, r.Silent) {
		t.Errorf("stuck:\n%s", table)
	}

	// One row explained, and the bare oc.
	for key, v := range verdicts {
		a := run("sessions", "show", key, "--json")
		want(t, "verdict of show "+key, dig(a.doc(t), "run", "verdict"), v.word)
		if text := run("sessions", "show", key).out; !strings.Contains(text, "running ("+v.word+")") || !strings.Contains(text, v.evidence[0]) {
			t.Errorf("show %s: want %s because of %q\n%s", key, v.word, v.evidence[0], text)
		}
	}
	if glance := run().out; !strings.Contains(glance, "7, of which 5 do not seem to be") {
		t.Errorf("the bare oc:\n%s", glance)
	}
	if tree(t, dir) != before {
		t.Error("a verdict changed the tree")
	}
}

// A process with the same id that started at another time is not the one that holds the lock.
func TestARecycledIDIsNotTheHolder(t *testing.T) {
	me := lock.Local().Process(os.Getpid())
	boot := lock.Local().Boot().UnixMilli()
	now := boot + 2*fixtures.Day
	dir := t.TempDir()
	r := made[fixtures.Running](t)(fixtures.S14(dir, now, fixtures.Process{PID: os.Getpid(), Start: int64(me.Start) + 4711}, boot))
	doc := ocRun(t, dir, quiet(t, now), "status", "--json", "--state-dir", dir).doc(t)
	for _, row := range doc["running"].([]any) {
		if dig(row, "key") == r.Quiet {
			want(t, "verdict", dig(row, "verdict"), "probably dead")
			return
		}
	}
	t.Error("the row is not there")
}
