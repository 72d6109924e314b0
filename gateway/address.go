// Package gateway is oc's side of a running OpenClaw gateway.
//
// Owner says who owns a state directory without a connection: by lock files,
// kernel locks, processes and listening ports. Address and CredentialsFor say
// where the gateway is and what to show to it; Dial and Conn.Do call it, and
// never send a request twice. Reach puts these together and applies Decide, the
// rule of who makes a change: oc itself, the gateway, or nobody. While oc does,
// HoldLifecycle keeps gateways from starting.
package gateway

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"oc/store/lazy"
)

// DefaultPort of a gateway without a profile.
const DefaultPort = 18789

// Settings are the values of openclaw.json under `gateway` that say where the
// gateway is. Zero values mean that the key is absent.
type Settings struct {
	Mode      string  // gateway.mode: local or remote
	Port      float64 // gateway.port as the file has it
	RemoteURL string  // gateway.remote.url
	TLS       bool    // gateway.tls.enabled is true
	Bind      string  // gateway.bind; only shown

	Fingerprint string // gateway.remote.tlsFingerprint: SHA-256 of the certificate, hex
	Auth        Auth
}

// Target is a gateway's address.
type Target struct {
	URL    string
	Source string // which flag, variable or key gave it, in OpenClaw's words
	Local  bool   // 127.0.0.1, from the port and not from a URL that was given
	Port   int    // of a local gateway; meaningful also when URL points elsewhere
}

// Address says where the gateway is (spec/gateway.md 1.1, releases 2026.7.35
// and 2026.9.6). flag is the URL of the command line, empty when not given; env
// returns a variable or "". It fails when the mode is remote and no URL is
// known, and for plain ws:// to a host that is not loopback.
func Address(flag string, env func(string) string, s Settings) (Target, error) {
	t := Target{Port: Port(env, s)}
	scheme := "ws"
	if s.TLS {
		scheme = "wss"
	}
	remote := s.Mode == "remote"
	switch {
	case strings.TrimSpace(flag) != "":
		t.URL, t.Source = strings.TrimSpace(flag), "cli --url"
	case strings.TrimSpace(env("OPENCLAW_GATEWAY_URL")) != "":
		t.URL, t.Source = strings.TrimSpace(env("OPENCLAW_GATEWAY_URL")), "env OPENCLAW_GATEWAY_URL"
	case remote && strings.TrimSpace(s.RemoteURL) != "":
		t.URL, t.Source = strings.TrimSpace(s.RemoteURL), "config gateway.remote.url"
	case remote:
		return Target{}, errors.New("find the gateway: gateway.mode is remote and gateway.remote.url is not set: set it, or set gateway.mode to local")
	default:
		t.URL, t.Source, t.Local = fmt.Sprintf("%s://127.0.0.1:%d", scheme, t.Port), "local loopback", true
	}
	return t, safe(t, env("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS") == "1")
}

// safe refuses addresses that would carry secrets in the clear. The URL itself
// is not repeated whole: it may hold a secret.
func safe(t Target, private bool) error {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return fmt.Errorf("find the gateway: the URL from %s is not ws://host:port or wss://host:port", t.Source)
	}
	if u.Scheme == "wss" || loopback(u.Hostname()) || private {
		return nil
	}
	return fmt.Errorf("find the gateway: ws://%s from %s is neither encrypted nor loopback: use wss:// or a tunnel to 127.0.0.1, or set OPENCLAW_ALLOW_INSECURE_PRIVATE_WS=1 for a network that you trust", u.Host, t.Source)
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Port is the port of a local gateway: OPENCLAW_GATEWAY_PORT, then gateway.port,
// then one that 2026.9.6 derives from OPENCLAW_PROFILE, then DefaultPort.
func Port(env func(string) string, s Settings) int {
	return Ports(env, s)[0]
}

// Ports are the ports where a gateway of this state may listen, Port first:
// with a profile and no other word, 2026.7.35 stays on DefaultPort.
func Ports(env func(string) string, s Settings) []int {
	if p, ok := envPort(env("OPENCLAW_GATEWAY_PORT")); ok {
		return []int{p}
	}
	if s.Port > 0 && s.Port <= math.MaxUint16 && s.Port == math.Trunc(s.Port) {
		return []int{int(s.Port)}
	}
	profile := strings.TrimSpace(env("OPENCLAW_PROFILE"))
	if !profileName().MatchString(profile) || strings.EqualFold(profile, "default") {
		return []int{DefaultPort}
	}
	hash := uint32(2166136261)
	for _, b := range []byte(profile) {
		hash = (hash ^ uint32(b)) * 16777619
	}
	return []int{20000 + int(hash%40000), DefaultPort}
}

var profileName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// envPort reads a plain number, host:port or [v6]:port.
func envPort(raw string) (int, bool) {
	raw = strings.TrimSpace(raw)
	if host, port, err := net.SplitHostPort(raw); err == nil && host != "" {
		raw = port
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	p, err := strconv.Atoi(raw)
	return p, err == nil && p >= 1 && p <= math.MaxUint16
}
