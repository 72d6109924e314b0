package gateway

import (
	"encoding/json"
	"slices"
	"time"

	"oc/store/span"
)

// Hello is what a gateway says of itself when it lets a client in
// (spec/gateway.md 2.3). Everything in it is the gateway's word.
type Hello struct {
	Version    string // of OpenClaw: "2026.7.35"
	Protocol   int
	Connection string // the gateway's name for this connection

	StateDir   string // the state that it owns; empty: it does not say
	ConfigPath string
	AuthMode   string
	Uptime     time.Duration

	DefaultAgent string
	MainSession  string // key of the default agent's main session

	Methods []string // not all that work: some are never advertised
	Events  []string
	Scopes  []string // granted

	MaxPayload int           // bytes of a frame that it takes
	Tick       time.Duration // how often it sends a sign of life; 0: it does not say

	Raw json.RawMessage // the whole of it
}

// Has reports an advertised method.
func (h *Hello) Has(method string) bool { return slices.Contains(h.Methods, method) }

// Grants reports a scope: admin holds all, write holds read.
func (h *Hello) Grants(scope string) bool {
	return slices.Contains(h.Scopes, scope) || slices.Contains(h.Scopes, Admin) || (scope == Read && slices.Contains(h.Scopes, Write))
}

// parseHello reads the payload of an accepted connect; false when it is none.
func parseHello(raw []byte) (Hello, bool) {
	h := Hello{Raw: raw}
	if kind, _ := span.Text(span.Member(raw, "type")); kind != "hello-ok" {
		return h, false
	}
	h.Version = textAt(raw, "server", "version")
	h.Connection = textAt(raw, "server", "connId")
	h.Protocol = int(numberAt(raw, "protocol"))
	h.StateDir = textAt(raw, "snapshot", "stateDir")
	h.ConfigPath = textAt(raw, "snapshot", "configPath")
	h.AuthMode = textAt(raw, "snapshot", "authMode")
	h.Uptime = milliseconds(raw, "snapshot", "uptimeMs")
	h.DefaultAgent = textAt(raw, "snapshot", "sessionDefaults", "defaultAgentId")
	h.MainSession = textAt(raw, "snapshot", "sessionDefaults", "mainSessionKey")
	h.Methods = textsAt(raw, "features", "methods")
	h.Events = textsAt(raw, "features", "events")
	h.Scopes = textsAt(raw, "auth", "scopes")
	h.MaxPayload = int(numberAt(raw, "policy", "maxPayload"))
	h.Tick = milliseconds(raw, "policy", "tickIntervalMs")
	return h, true
}

func textAt(raw []byte, path ...string) string {
	s, _ := span.Text(span.Path(raw, path...))
	return s
}

// numberAt is a whole number from 0 to 2^53; anything else counts as absent.
func numberAt(raw []byte, path ...string) int64 {
	f, ok := span.Float(span.Path(raw, path...))
	if !ok || !(f >= 0 && f <= 1<<53) {
		return 0
	}
	return int64(f)
}

// milliseconds is a stretch of time of at most a century.
func milliseconds(raw []byte, path ...string) time.Duration {
	return time.Duration(min(numberAt(raw, path...), 100*365*24*3600*1000)) * time.Millisecond
}

func textsAt(raw []byte, path ...string) (out []string) {
	list := span.Path(raw, path...)
	if span.KindOf(list) != span.Array {
		return nil
	}
	_, _ = span.Items(list, 0, func(val []byte) error {
		if s, ok := span.Text(val); ok {
			out = append(out, s)
		}
		return nil
	})
	return out
}
