package lifecycle

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oc/config"
)

// section is a configuration whose session section is the given JSON.
func section(t *testing.T, text string) *config.Node {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), []byte(`{"session":`+text+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: dir, Home: dir, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := c.Value("session")
	return n
}

func lines(t *testing.T, name string, f func([]byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for s := bufio.NewScanner(file); s.Scan(); n++ {
		f(s.Bytes())
	}
	if n == 0 {
		t.Fatalf("%s is empty", name)
	}
}

// stamp is a time as the recordings have it: a text, a number or nothing.
func stamp(t *testing.T, v any) float64 {
	switch v := v.(type) {
	case string:
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			t.Fatal(err)
		}
		return float64(at.UnixMilli())
	case float64:
		return v
	}
	return Unsaid
}

// Hours that OpenClaw's own check of the configuration refuses before its policy could bend them: oc takes the default for them,
// as for every value that is refused.
var refused = map[string]bool{"atHour-23-clamped-from-99": true, "atHour-negative-clamped": true, "atHour-fraction-floored": true}

// What OpenClaw 2026.7.35 said of policies and sessions in five time zones.
func TestAsOpenClaw(t *testing.T) {
	lines(t, "reset-freshness.jsonl", func(line []byte) {
		var c struct {
			Name, TZ, ResetType, Channel                   string
			NowMs                                          int64
			SessionCfg                                     json.RawMessage
			SessionStartedAt, LastInteractionAt, UpdatedAt any
			Expected                                       struct {
				Policy struct {
					Mode        Mode
					AtHour      int
					IdleMinutes *float64
					Configured  bool
				}
				Freshness struct {
					Fresh                       bool
					DailyResetAt, IdleExpiresAt *float64
					StaleReason                 Mode
				}
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.TZ+"/"+c.Name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.TZ)
			if err != nil {
				t.Fatal(err)
			}
			p := Resolve(section(t, string(c.SessionCfg)), Type(c.ResetType), c.Channel, config.Release735)
			if refused[c.Name] {
				if p.Hour != 4 || p.HourFrom != "" {
					t.Errorf("policy %+v, want the default hour", p)
				}
				return
			}
			want := c.Expected.Policy
			if p.Mode != want.Mode || p.Hour != want.AtHour || p.Configured != want.Configured || p.HasIdle != (want.IdleMinutes != nil) || p.HasIdle && p.Idle != *want.IdleMinutes {
				t.Errorf("policy %+v, want %+v", p, want)
			}
			s := p.At(time.UnixMilli(c.NowMs).In(zone), Times{stamp(t, c.SessionStartedAt), stamp(t, c.LastInteractionAt), stamp(t, c.UpdatedAt)}, config.Release735)
			f := c.Expected.Freshness
			same := func(got float64, want *float64) bool {
				return want == nil && math.IsNaN(got) || want != nil && got == *want
			}
			if s.Fresh != f.Fresh || s.Reason != f.StaleReason || !same(s.Boundary, f.DailyResetAt) || !same(s.Expires, f.IdleExpiresAt) {
				t.Errorf("%+v, want %+v", s, f)
			}
		})
	})
}

func TestTypeAsOpenClaw(t *testing.T) {
	lines(t, "reset-type.jsonl", func(line []byte) {
		var c struct {
			Params   struct{ SessionKey string }
			Expected Type
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if got := TypeOf(c.Params.SessionKey); got != c.Expected {
			t.Errorf("%s: %s, want %s", c.Params.SessionKey, got, c.Expected)
		}
	})
}

// 2026.9.6 resets only what it is told to.
func TestResolve96(t *testing.T) {
	for text, want := range map[string]Policy{
		`{}`:                          {Mode: Never, Hour: 4},
		`{"idleMinutes":5}`:           {Mode: Never, Hour: 4},
		`{"reset":{}}`:                {Mode: Daily, Hour: 4, Configured: true},
		`{"reset":{"idleMinutes":9}}`: {Mode: Daily, Hour: 4, Idle: 9, HasIdle: true, Configured: true, IdleFrom: "session.reset.idleMinutes"},
		`{"reset":{"mode":"none"},"resetByType":{"direct":{"atHour":7}}}`: {
			Mode: Daily, Hour: 7, Configured: true, HourFrom: "session.resetByType.direct.atHour",
		},
		`{"reset":{"mode":"idle"},"resetByType":{"direct":{"atHour":7}}}`: {
			Mode: Idle, Hour: 7, HasIdle: true, Configured: true, ModeFrom: "session.reset.mode", HourFrom: "session.resetByType.direct.atHour",
		},
		`{"resetByType":{"dm":{"mode":"idle"}}}`: {Mode: Never, Hour: 4},
		`{"reset":{"mode":"none"}}`:              {Mode: Never, Hour: 4, Configured: true, ModeFrom: "session.reset.mode"},
	} {
		if got := Resolve(section(t, text), Direct, "", config.Release96); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// A policy's boundaries enclose now, whatever the zone, the hour and the day, and show the hour that they should unless the day
// has none.
func TestBoundaries(t *testing.T) {
	zones := []string{"UTC", "Asia/Seoul", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(rapid.Int64Range(1_577_836_800_000, 1_893_456_000_000).Draw(t, "now")).In(zone)
		hour := rapid.IntRange(0, 23).Draw(t, "hour")
		last, next := boundaries(now, hour, config.Release96)
		if last.After(now) || !next.After(now) || next.Sub(last) < 22*time.Hour || next.Sub(last) > 26*time.Hour {
			t.Errorf("%s at %d: %s to %s", now, hour, last, next)
		}
		for _, at := range []time.Time{last, next} {
			if at.Hour() == hour && at.Minute() == 0 {
				continue
			}
			_, before := at.Add(-2 * time.Hour).Zone()
			if _, after := at.Add(2 * time.Hour).Zone(); after <= before {
				t.Errorf("%s at %d: %s", now, hour, at)
			}
		}
	})
}
