package commands

import (
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// S20: clocks that went wrong. A future stamp is called one, an impossible one is unknown, and neither makes a row old or new.
func TestClocks(t *testing.T) {
	dir := t.TempDir()
	c := made[fixtures.Clocks](t)(fixtures.S20(dir, fixtures.Now))
	before := tree(t, dir)
	ages := map[string]string{
		c.Good: "1h", c.Future: "in 2d", c.Zero: "unknown", c.Negative: "unknown", c.Float: "59m", c.Text: "unknown", c.Null: "unknown", c.Missing: "unknown", c.Huge: "unknown",
	}

	text := at(t, dir, "sessions", "--wide")
	want(t, "exit", text.exit, ExitDone)
	for key, age := range ages {
		line := lineWith(text.out, key)
		if fields := strings.Fields(strings.TrimPrefix(line, "direct")); len(fields) < 2 || !strings.HasPrefix(strings.Join(fields[1:], " "), age+" ") {
			t.Errorf("%s: want the age %s in %q", key, age, line)
		}
	}
	for _, args := range readers(c.Future) {
		if slices.Contains(args, "--json") { // see below
			continue
		}
		for _, word := range strings.Fields(at(t, dir, args...).out) {
			if len(word) > 1 && word[0] == '-' && strings.Trim(word[1:], "0123456789") != "" && strings.Trim(word[1:len(word)-1], "0123456789") == "" {
				t.Errorf("oc %v shows a negative age: %s", args, word)
			}
		}
	}

	// The document keeps OpenClaw's numbers, and marks the row whose age cannot be one.
	rows := map[string]any{}
	doc := at(t, dir, "sessions", "--json").doc(t)
	for _, row := range doc["sessions"].([]any) {
		rows[dig(row, "key").(string)] = row
	}
	if len(rows) != 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for key, row := range rows {
		if key == c.Future {
			want(t, "future", dig(row, "future"), true)
			continue
		}
		if dig(row, "future") != nil {
			t.Errorf("%s is called a future row", key)
		}
		switch age := dig(row, "ageMs").(type) {
		case float64:
			if age < 0 {
				t.Errorf("%s is %v ms old", key, age)
			}
		case nil:
			if ages[key] != "unknown" {
				t.Errorf("%s has no age", key)
			}
		}
	}
	want(t, "age of the good row", dig(rows[c.Good], "ageMs"), float64(fixtures.Hour))
	want(t, "age with half a millisecond", dig(rows[c.Float], "ageMs"), float64(fixtures.Hour)-0.5)

	// An impossible stamp never makes a row new: --active takes only rows that are known to be. One of the future is not hidden.
	active := keysOf(at(t, dir, "sessions", "--active", "120", "--json").doc(t))
	for _, key := range active {
		if ages[key] == "unknown" {
			t.Errorf("%s has no known age and passes --active", key)
		}
	}

	// One row explained shows each stamp as it is written, an impossible one as such.
	for key, says := range map[string]string{
		c.Future: "in 2d", c.Negative: "impossible: -86400000", c.Text: `impossible: "1789996400000"`, c.Huge: "impossible: 1e400",
	} {
		a := at(t, dir, "sessions", "show", key)
		want(t, "exit of show "+key, a.exit, ExitDone)
		if !strings.Contains(lineWith(a.out, "updatedAt"), says) {
			t.Errorf("show %s: want %q in\n%s", key, says, a.out)
		}
	}
	want(t, "stamp as text", dig(at(t, dir, "sessions", "show", "--json", c.Text).doc(t), "stamps", "updatedAt"), "1789996400000")

	// Totals span the rows whose stamps are times, not those of 1970.
	total := at(t, dir, "sessions", "--summary", "--json").doc(t)
	want(t, "rows", dig(total, "total", "rows"), 10.0)
	want(t, "newest", dig(total, "total", "newestAt"), float64(fixtures.Now+2*fixtures.Day))
	if tree(t, dir) != before {
		t.Error("reading changed the tree")
	}
}

// The age of a row does not depend on the zone that oc runs in.
func TestAgesHaveNoZone(t *testing.T) {
	dir := t.TempDir()
	made[fixtures.Clocks](t)(fixtures.S20(dir, fixtures.Now))
	env := quiet(t, fixtures.Now)
	utc := ocRun(t, dir, env, "sessions", "--state-dir", dir)
	for _, zone := range []string{"Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"} {
		env["TZ"] = zone
		if a := ocRun(t, dir, env, "sessions", "--state-dir", dir); a != utc {
			t.Errorf("%s: %s", zone, a.out)
		}
	}
}

// lineWith is the first line of text that has a word.
func lineWith(text, word string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}
