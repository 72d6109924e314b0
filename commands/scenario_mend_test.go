package commands

import (
	"path/filepath"
	"strings"
	"testing"
)

// While a gateway lives nothing is mended, and it is asked for nothing; what would be mended is shown all the same.
func TestScenarioMendBesideAGateway(t *testing.T) {
	for _, args := range [][]string{
		{"doctor", "--fix"},
		{"doctor", "--fix", "key-alias", "--yes"},
		{"repair", "transcript", "agent:work:telegram:direct:5550137"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			state, sessions, env := lived(t)
			calm(t, filepath.Join(state, "agents", "main", "sessions"))
			f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
			before := tree(t, state)
			a := ocRun(t, state, f.env(env), append([]string{"--state-dir", state}, args...)...)
			if a.exit != ExitRefused || !strings.Contains(a.errout, "stop it first") {
				t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			a = ocRun(t, state, f.env(env), append([]string{"--state-dir", state, "--json"}, append(args, "--dry-run")...)...)
			if a.exit != ExitFindings && a.exit != ExitDone || !strings.Contains(a.out, `"dryRun": true`) {
				t.Errorf("dry run: exit %d: %s", a.exit, a.errout)
			}
			if tree(t, state) != before {
				t.Errorf("something in %s has changed", sessions)
			}
		})
	}
}
