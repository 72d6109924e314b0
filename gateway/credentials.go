package gateway

import (
	"fmt"
	"strings"
)

// Credentials are what oc shows to a gateway, and where it found them.
type Credentials struct {
	Mode     string // gateway.auth.mode of a local gateway, else empty
	Token    Secret
	Password Secret
	Source   string // which flag, variable or key gave them; empty when there are none
	// Problem says why there are none though the gateway will want some, and
	// where was looked; Fix what to do. They matter only when a gateway is there.
	Problem, Fix string
}

// Given are secrets of the command line.
type Given struct{ Token, Password Secret }

// CredentialsFor finds what to show to the target (spec/gateway.md 1.2, release
// 2026.9.6). What is given beats all; an address from a flag takes nothing
// else, one from the environment only what stands there too; a local gateway
// takes gateway.auth, then the environment, then gateway.remote; a remote one
// gateway.remote, the environment, gateway.auth. env returns a variable or "".
func CredentialsFor(t Target, given Given, env func(string) string, s Settings) (c Credentials) {
	f := finder{env: env}
	envToken, envPassword := f.variable("OPENCLAW_GATEWAY_TOKEN"), f.variable("OPENCLAW_GATEWAY_PASSWORD")
	token, password := place{"gateway.auth.token", s.Auth.Token}, place{"gateway.auth.password", s.Auth.Password}
	remoteToken, remotePassword := place{"gateway.remote.token", s.Auth.RemoteToken}, place{"gateway.remote.password", s.Auth.RemotePassword}
	switch {
	case given.Token != "" || given.Password != "":
		return Credentials{Token: given.Token, Password: given.Password, Source: "the command line"}
	case strings.HasPrefix(t.Source, "cli "):
		c.Problem, c.Fix = "an address from --url takes no secret from the configuration or the environment", "give --token or --password too"
		return c
	case strings.HasPrefix(t.Source, "env "):
		c.Token = f.first(envToken)
		c.Password = f.first(envPassword)
	case !t.Local:
		c.Token = f.first(remoteToken, envToken, token)
		c.Password = f.first(envPassword, remotePassword, password)
		if c.Source = f.source(); c.Source != "" { // one of the two is enough
			return c
		}
	default:
		if c.Mode = s.Auth.Mode; c.Mode == "none" {
			return c
		}
		if token.in.set() {
			remoteToken = place{}
		}
		if password.in.set() || c.Mode == "trusted-proxy" {
			remotePassword = place{}
		}
		if c.Mode != "token" {
			c.Password = f.first(password, envPassword, remotePassword)
		}
		if c.Mode == "token" || (c.Mode != "password" && c.Mode != "trusted-proxy" && c.Password == "" && f.broken == "") {
			c.Token = f.first(token, envToken, remoteToken)
		}
	}
	switch c.Source = f.source(); {
	case f.broken != "":
		return Credentials{Mode: c.Mode, Problem: f.broken, Fix: "give it with --token or --password, or in OPENCLAW_GATEWAY_TOKEN or OPENCLAW_GATEWAY_PASSWORD in place of the reference"}
	case c.Source == "":
		c.Problem, c.Fix = "no token or password was found in "+strings.Join(f.looked, ", "), "set one of them"
	}
	return c
}

// place is where a secret may stand.
type place struct {
	name string
	in   Input
}

// finder looks at places and remembers what it saw.
type finder struct {
	env    func(string) string
	looked []string
	found  []string
	broken string // a reference that cannot be followed
}

func (f *finder) variable(name string) place {
	return place{"env " + name, Input{Text: Secret(strings.TrimSpace(f.env(name)))}}
}

// first is the secret of the first place that has one. A reference that cannot
// be followed ends the search: whoever wrote it did not mean the next place.
func (f *finder) first(places ...place) Secret {
	for _, p := range places {
		if p.name == "" {
			continue
		}
		f.looked = append(f.looked, p.name)
		secret := p.in.Text
		if p.in.Source == "env" {
			secret = Secret(strings.TrimSpace(f.env(p.in.ID)))
		}
		if secret != "" {
			f.found = append(f.found, p.name)
			return secret
		}
		if p.in.Source != "" {
			f.broken = fmt.Sprintf("%s refers to %s %q, which oc cannot read", p.name, p.in.Source, p.in.ID)
			return ""
		}
	}
	return ""
}

func (f *finder) source() string { return strings.Join(f.found, " and ") }
