package gateway

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func vars(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestAddress(t *testing.T) {
	for name, c := range map[string]struct {
		flag   string
		env    func(string) string
		s      Settings
		url    string
		source string
		fails  string
	}{
		"default":                    {"", vars(), Settings{}, "ws://127.0.0.1:18789", "local loopback", ""},
		"tls":                        {"", vars(), Settings{TLS: true, Port: 1234}, "wss://127.0.0.1:1234", "local loopback", ""},
		"bind is not asked":          {"", vars(), Settings{Bind: "lan"}, "ws://127.0.0.1:18789", "local loopback", ""},
		"env port beats config":      {"", vars("OPENCLAW_GATEWAY_PORT", "4000"), Settings{Port: 1234}, "ws://127.0.0.1:4000", "local loopback", ""},
		"env url":                    {"", vars("OPENCLAW_GATEWAY_URL", " wss://h.example "), Settings{Mode: "remote", RemoteURL: "wss://r.example"}, "wss://h.example", "env OPENCLAW_GATEWAY_URL", ""},
		"flag beats all":             {"ws://localhost:1", vars("OPENCLAW_GATEWAY_URL", "wss://h"), Settings{}, "ws://localhost:1", "cli --url", ""},
		"remote":                     {"", vars(), Settings{Mode: "remote", RemoteURL: "wss://r.example:7/x"}, "wss://r.example:7/x", "config gateway.remote.url", ""},
		"remote url in local mode":   {"", vars(), Settings{Mode: "local", RemoteURL: "wss://r.example"}, "ws://127.0.0.1:18789", "local loopback", ""},
		"remote without url":         {"", vars(), Settings{Mode: "remote"}, "", "", "gateway.remote.url is not set"},
		"plain to a host":            {"", vars(), Settings{Mode: "remote", RemoteURL: "ws://r.example:7"}, "", "", "neither encrypted nor loopback"},
		"plain to a host, allowed":   {"", vars("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS", "1"), Settings{Mode: "remote", RemoteURL: "ws://10.0.0.1:7"}, "ws://10.0.0.1:7", "config gateway.remote.url", ""},
		"plain to v6 loopback":       {"ws://[::1]:9", vars(), Settings{}, "ws://[::1]:9", "cli --url", ""},
		"plain to a mapped loopback": {"ws://[::ffff:127.0.0.1]:9", vars(), Settings{}, "ws://[::ffff:127.0.0.1]:9", "cli --url", ""},
		"a name that only begins so": {"ws://127.0.0.1.example", vars(), Settings{}, "", "", "neither encrypted"},
		"not a websocket":            {"https://h", vars(), Settings{}, "", "", "ws://host:port"},
		"not a url":                  {"::", vars(), Settings{}, "", "", "ws://host:port"},
		"secrets are not repeated":   {"ws://user:hush@h.example/?token=hush", vars(), Settings{}, "", "", "ws://h.example from"},
	} {
		got, err := Address(c.flag, c.env, c.s)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
			continue
		}
		if err != nil || got.URL != c.url || got.Source != c.source || got.Local != (c.source == "local loopback") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestPorts(t *testing.T) {
	for name, c := range map[string]struct {
		env  func(string) string
		port float64
		want []int
	}{
		"default":               {vars(), 0, []int{18789}},
		"config":                {vars(), 4000, []int{4000}},
		"config negative":       {vars(), -1, []int{18789}},
		"config too large":      {vars(), 70000, []int{18789}},
		"config fraction":       {vars(), 1.5, []int{18789}},
		"number":                {vars("OPENCLAW_GATEWAY_PORT", " 4001 "), 4000, []int{4001}},
		"host and number":       {vars("OPENCLAW_GATEWAY_PORT", "127.0.0.1:4002"), 4000, []int{4002}},
		"v6 and number":         {vars("OPENCLAW_GATEWAY_PORT", "[::1]:4003"), 4000, []int{4003}},
		"no host":               {vars("OPENCLAW_GATEWAY_PORT", ":4004"), 4000, []int{4000}},
		"two colons":            {vars("OPENCLAW_GATEWAY_PORT", "a:b:4005"), 4000, []int{4000}},
		"zero":                  {vars("OPENCLAW_GATEWAY_PORT", "0"), 4000, []int{4000}},
		"signed":                {vars("OPENCLAW_GATEWAY_PORT", "+4006"), 4000, []int{4000}},
		"too large":             {vars("OPENCLAW_GATEWAY_PORT", "65536"), 4000, []int{4000}},
		"profile":               {vars("OPENCLAW_PROFILE", "work"), 0, []int{41984, 18789}},
		"profile and config":    {vars("OPENCLAW_PROFILE", "work"), 4000, []int{4000}},
		"default profile":       {vars("OPENCLAW_PROFILE", "Default"), 0, []int{18789}},
		"impossible profile":    {vars("OPENCLAW_PROFILE", "../x"), 0, []int{18789}},
		"empty profile, spaces": {vars("OPENCLAW_PROFILE", "  "), 0, []int{18789}},
	} {
		if got := Ports(c.env, Settings{Port: c.port}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPortsAreAlwaysPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := vars("OPENCLAW_GATEWAY_PORT", rapid.String().Draw(t, "port"), "OPENCLAW_PROFILE", rapid.String().Draw(t, "profile"))
		for _, p := range Ports(env, Settings{Port: rapid.Float64().Draw(t, "config")}) {
			if p < 1 || p > 65535 {
				t.Fatalf("port %d", p)
			}
		}
	})
}
