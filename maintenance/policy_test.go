package maintenance

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oc/config"
)

func loadConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, ".openclaw")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{Cwd: root, Home: root})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPolicyOfAConfiguration(t *testing.T) {
	defaults := Policy{
		Mode: Enforce, PruneAfter: 30 * day, ModelRunAfter: day, ResetRetention: 30 * day, MaxEntries: 500, CronRetention: day, DirectToMain: true, DashboardAfter: 7 * day,
	}
	with := func(f func(*Policy)) Policy { p := defaults; f(&p); return p }
	for _, c := range []struct {
		name, config string
		want         Policy
		warned       []string // key paths
	}{
		{"nothing", ``, defaults, nil},
		{"empty", `{}`, defaults, nil},
		{"all keys", `{session:{dmScope:"per-peer",maintenance:{mode:"warn",pruneAfter:"1d12h",maxEntries:7,resetArchiveRetention:"90m",maxDiskBytes:"10kb",highWaterBytes:5000}},cron:{sessionRetention:"7d"}}`, Policy{
			Mode: Warn, PruneAfter: 1.5 * day, ModelRunAfter: day, ResetRetention: 90 * minute, MaxEntries: 7, MaxDiskBytes: 10240, HighWaterBytes: 5000, CronRetention: 7 * day, DashboardAfter: 7 * day, capSet: true, budgetSet: true,
		}, nil},
		{"bare numbers", `{session:{maintenance:{pruneAfter:5,resetArchiveRetention:2,maxDiskBytes:1000}},cron:{sessionRetention:"12"}}`, with(func(p *Policy) {
			p.PruneAfter, p.ResetRetention, p.MaxDiskBytes, p.HighWaterBytes, p.CronRetention = 5*day, 2*day, 1000, 800, 12*hour
		}), nil},
		{"pruneDays", `{session:{maintenance:{pruneDays:5}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = 5*day, 5*day }), nil},
		{"pruneAfter before pruneDays", `{session:{maintenance:{pruneDays:5,pruneAfter:"2h"}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = 2*hour, 2*hour }), nil},
		{"off", `{session:{maintenance:{resetArchiveRetention:false}},cron:{sessionRetention:false}}`, with(func(p *Policy) {
			p.ResetRetention, p.CronRetention, p.keepDeleted = Never, Never, true
		}), nil},
		{"high water above the budget", `{session:{maintenance:{maxDiskBytes:"10kb",highWaterBytes:"1gb"}}}`, with(func(p *Policy) { p.MaxDiskBytes, p.HighWaterBytes = 10240, 10240 }), nil},
		{"a budget of one byte", `{session:{maintenance:{maxDiskBytes:1}}}`, with(func(p *Policy) { p.MaxDiskBytes, p.HighWaterBytes = 1, 1 }), nil},

		{"pruneAfter 0", `{session:{maintenance:{pruneAfter:"0"}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = Never, Never }), []string{"session.maintenance.pruneAfter"}},
		{"pruneAfter in words", `{session:{maintenance:{pruneAfter:"a month"}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = Never, Never }), []string{"session.maintenance.pruneAfter"}},
		{"pruneAfter negative", `{session:{maintenance:{pruneAfter:-3}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = Never, Never }), []string{"session.maintenance.pruneAfter"}},
		{"pruneDays 0", `{session:{maintenance:{pruneDays:0}}}`, with(func(p *Policy) { p.PruneAfter, p.ResetRetention = Never, Never }), []string{"session.maintenance.pruneDays"}},
		{"maxEntries 0", `{session:{maintenance:{maxEntries:0}}}`, with(func(p *Policy) { p.MaxEntries = 0 }), []string{"session.maintenance.maxEntries"}},
		{"maxEntries -1", `{session:{maintenance:{maxEntries:-1}}}`, with(func(p *Policy) { p.MaxEntries = 0 }), []string{"session.maintenance.maxEntries"}},
		{"maxEntries in words", `{session:{maintenance:{maxEntries:"50"}}}`, with(func(p *Policy) { p.MaxEntries = 0 }), []string{"session.maintenance.maxEntries"}},
		{"maxDiskBytes 0", `{session:{maintenance:{maxDiskBytes:0}}}`, defaults, []string{"session.maintenance.maxDiskBytes"}},
		{`maxDiskBytes "0"`, `{session:{maintenance:{maxDiskBytes:"0"}}}`, defaults, []string{"session.maintenance.maxDiskBytes"}},
		{"maxDiskBytes false", `{session:{maintenance:{maxDiskBytes:false}}}`, defaults, []string{"session.maintenance.maxDiskBytes"}},
		{"maxDiskBytes -1", `{session:{maintenance:{maxDiskBytes:-1}}}`, defaults, []string{"session.maintenance.maxDiskBytes"}},
		{"maxDiskBytes with a blank", `{session:{maintenance:{maxDiskBytes:"10 mb"}}}`, defaults, []string{"session.maintenance.maxDiskBytes"}},
		{"highWaterBytes 0", `{session:{maintenance:{maxDiskBytes:1000,highWaterBytes:0}}}`, with(func(p *Policy) { p.MaxDiskBytes, p.HighWaterBytes = 1000, 800 }), []string{"session.maintenance.highWaterBytes"}},
		{"highWaterBytes in words", `{session:{maintenance:{maxDiskBytes:1000,highWaterBytes:"abc"}}}`, with(func(p *Policy) { p.MaxDiskBytes, p.HighWaterBytes = 1000, 800 }), []string{"session.maintenance.highWaterBytes"}},
		{"resetArchiveRetention 0", `{session:{maintenance:{resetArchiveRetention:0}}}`, with(func(p *Policy) { p.ResetRetention = 0 }), nil},
		{"resetArchiveRetention in words", `{session:{maintenance:{resetArchiveRetention:"never"}}}`, with(func(p *Policy) { p.ResetRetention, p.keepDeleted = Never, true }), []string{"session.maintenance.resetArchiveRetention"}},
		{"mode", `{session:{maintenance:{mode:"delete"}}}`, with(func(p *Policy) { p.Mode = Warn }), []string{"session.maintenance.mode"}},
		{"cron 0", `{cron:{sessionRetention:"0"}}`, with(func(p *Policy) { p.CronRetention = Never }), []string{"cron.sessionRetention"}},
		{"cron number", `{cron:{sessionRetention:24}}`, with(func(p *Policy) { p.CronRetention = Never }), []string{"cron.sessionRetention"}},
		{"maintenance is a list", `{session:{maintenance:[]}}`, Policy{
			Mode: Warn, PruneAfter: Never, ModelRunAfter: day, ResetRetention: Never, keepDeleted: true, CronRetention: day, DirectToMain: true, capSet: true, budgetSet: true,
		}, []string{"session.maintenance.mode", "session.maintenance.pruneAfter", "session.maintenance.maxEntries", "session.maintenance.resetArchiveRetention", "session.maintenance.maxDiskBytes", "session.maintenance.archiveDashboardAfter", "session.maintenance.preserveRecent"}},
		{"an unknown key elsewhere", `{session:{maintenance:{maxAge:3},bogus:1}}`, defaults, nil},
		{"dmScope", `{session:{dmScope:"everyone"}}`, with(func(p *Policy) { p.DirectToMain = false }), nil},

		{"in the wrong place", `{maintenance:{},maxEntries:3,session:{pruneAfter:"1d",maintenance:{sessionRetention:"1h"}},agents:{defaults:{session:{maintenance:{maxEntries:4}}},list:[{id:"a",maxDiskBytes:1}]},cron:{pruneAfter:"1d"}}`, defaults, []string{
			"maintenance", "maxEntries", "session.pruneAfter", "session.maintenance.sessionRetention", "agents.defaults.session.maintenance", "agents.list[0].maxDiskBytes", "cron.pruneAfter",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, warnings, err := ReadPolicy(loadConfig(t, c.config), Orders{})
			if err != nil {
				t.Fatal(err)
			}
			// Whether the key is there decides which release's default holds for a database.
			if !strings.Contains(c.name, "list") {
				c.want.capSet = strings.Contains(c.config, "maintenance:{") && strings.Contains(c.config, "maxEntries") && c.name != "in the wrong place"
				c.want.budgetSet = strings.Contains(c.config, "maxDiskBytes") && c.name != "in the wrong place"
			}
			if d := cmp.Diff(c.want, *p, cmp.AllowUnexported(Policy{}), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			var paths []string
			for _, w := range warnings {
				paths = append(paths, w.KeyPath)
				if w.Reason == "" || w.File == "" {
					t.Errorf("a warning without a reason or a file: %+v", w)
				}
			}
			if !slices.Equal(paths, c.warned) {
				t.Errorf("warned of %q, want %q", paths, c.warned)
			}
		})
	}
}

func TestEnforceBeatsTheMode(t *testing.T) {
	p, _, err := ReadPolicy(loadConfig(t, `{session:{maintenance:{mode:"warn"}}}`), Orders{Enforce: true})
	if err != nil || p.Mode != Enforce {
		t.Fatal(p, err)
	}
}

// A configuration that cannot be read is not enough for removing: its limits
// are unknown, not the defaults.
func TestBrokenConfiguration(t *testing.T) {
	c := loadConfig(t, `{session:{`)
	for _, o := range []Orders{{}, {Named: true}, {OlderThan: day}, {FixMissing: true, Named: true}} {
		_, _, err := ReadPolicy(c, o)
		var u *Unreadable
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.ConfigFile) || !strings.Contains(err.Error(), "--store") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	p, _, err := ReadPolicy(c, Orders{Named: true, OlderThan: day})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(p.PruneAfter, 1) || !math.IsInf(p.ResetRetention, 1) || p.MaxEntries != 0 || p.MaxDiskBytes != 0 || !math.IsInf(p.CronRetention, 1) || p.DirectToMain {
		t.Errorf("limits of a configuration that cannot be read: %+v", p)
	}
}
