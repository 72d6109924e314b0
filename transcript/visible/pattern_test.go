package visible

import (
	"regexp/syntax"
	"strings"
	"testing"
)

func TestRequired(t *testing.T) {
	for expr, want := range map[string]string{
		`ticket-(\d+)`: "ticket-", `(?i)Internal-[a-z]{8}`: "internal-", `a|b`: "", `(?i)key`: "ey", `(?i)kk`: "", `x*token?y`: "toke", `[0-9]+`: "",
		`(ab){2,}`: "ab", `(abc){0,2}d`: "d", `é-part`: "-part", `(?i)\bsecret`: "ecret",
	} {
		re, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := required(re.Simplify()); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// What a rule masks does not hang on the look for its word.
func TestRules(t *testing.T) {
	texts := []string{"ticket-12", "TICKET-12", "Internal-abcdefgh", "to\u212aen", "token", "nothing", "\u017fecret x", "tickettoken-1", ""}
	masked := 0
	for _, expr := range []string{`ticket-\d+`, `/ticket-\d+/`, `token|ticket`, `\bsecret`, `/internal-[a-z]+/i`, `t.k..`} {
		with, err := Pattern(expr)
		if err != nil {
			t.Fatal(err)
		}
		without := &Rule{re: with.re}
		for _, s := range texts {
			s = strings.Repeat(s+" and ", 3)
			got, want := (&Redactor{Patterns: []*Rule{with}}).Redact(s), (&Redactor{Patterns: []*Rule{without}}).Redact(s)
			if got != want {
				t.Errorf("%s on %q: %q, want %q", expr, s, got, want)
			}
			if want != s {
				masked++
			}
		}
	}
	if masked == 0 {
		t.Error("nothing was masked")
	}
}

// A pattern may be the secret itself: no error repeats it.
func TestPatternErrors(t *testing.T) {
	for _, bad := range []string{"(hunter2", "hunter2(?=x)", "hunter2[", "/hunter2**/"} {
		if _, err := Pattern(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
