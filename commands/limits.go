package commands

import (
	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
)

// limits are how many rows and bytes a store may have before OpenClaw removes some.
type limits struct {
	known bool
	rows  int   // 0: no limit
	bytes int64 // 0: no limit
}

// What OpenClaw takes where the configuration says nothing (spec/sqlite-store.md 3.3, releases 2026.8.2 and 2026.9.6).
const (
	databaseBytes = 10 << 30
	rows96        = 5000
)

// limitsOf reads the limits of a store. Values that cannot be read are told by the caller, as warnings.
func limitsOf(cfg *config.Config, p *maintenance.Policy, s *store.Sessions) limits {
	if p == nil {
		return limits{}
	}
	l := limits{known: true, rows: p.MaxEntries, bytes: p.MaxDiskBytes}
	if s.Era == store.SQLiteEra {
		if _, set := cfg.Value("session", "maintenance", "maxEntries"); !set && s.Schema.UserVersion >= 20 {
			l.rows = rows96
		}
		if _, set := cfg.Value("session", "maintenance", "maxDiskBytes"); !set {
			l.bytes = databaseBytes
		}
	}
	return l
}

func (l limits) rowsOf(n int) string {
	text := term.Count(int64(n))
	switch {
	case !l.known:
		return text + "/" + term.Unknown
	case l.rows > 0:
		return text + "/" + term.Count(int64(l.rows))
	}
	return text
}

func (l limits) bytesOf(n int64) string {
	if l.known && l.bytes > 0 {
		return term.Bytes(n) + "/" + term.Bytes(l.bytes)
	}
	return term.Bytes(n)
}

func (l limits) print(p *span.Printer) {
	p.Key("limits").Object()
	for _, v := range []struct {
		name  string
		limit int64
	}{{"maxEntries", int64(l.rows)}, {"maxDiskBytes", l.bytes}} {
		switch p.Key(v.name); {
		case !l.known:
			p.String(term.Unknown)
		case v.limit == 0:
			p.Null()
		default:
			p.Int(v.limit)
		}
	}
	p.End()
}
