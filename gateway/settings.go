package gateway

import (
	"strings"

	"oc/config"
)

// Auth is what openclaw.json says about secrets, under gateway.auth and
// gateway.remote.
type Auth struct {
	Mode           string // gateway.auth.mode: token, password, none, trusted-proxy; empty: not said
	Token          Input  // gateway.auth.token
	Password       Input  // gateway.auth.password
	RemoteToken    Input  // gateway.remote.token
	RemotePassword Input  // gateway.remote.password
}

// Input is a secret as the configuration has it: its text, or a reference to
// where it is kept (spec/gateway.md 1.2).
type Input struct {
	Text   Secret
	Source string // of a reference: env, file or exec; empty: none
	ID     string // of a reference: for env, the variable's name
}

func (i Input) set() bool { return i.Text != "" || i.Source != "" }

// SettingsOf reads everything under `gateway` that a client needs.
func SettingsOf(cfg *config.Config) (s Settings) {
	n, _ := cfg.Value("gateway")
	s.Mode, _ = n.At("mode").Str()
	s.Port, _ = n.At("port").Num()
	s.RemoteURL, _ = n.At("remote", "url").Str()
	s.Bind, _ = n.At("bind").Str()
	s.TLS, _ = n.At("tls", "enabled").Flag()
	s.Fingerprint, _ = n.At("remote", "tlsFingerprint").Str()
	s.Auth.Mode, _ = n.At("auth", "mode").Str()
	s.Auth.Token = input(n.At("auth", "token"))
	s.Auth.Password = input(n.At("auth", "password"))
	s.Auth.RemoteToken = input(n.At("remote", "token"))
	s.Auth.RemotePassword = input(n.At("remote", "password"))
	return s
}

// variable is the name of the variable that a text stands for; substitution
// leaves one that has no value as it is written.
func variable(text string) (name string, ok bool) {
	if inner, found := strings.CutPrefix(text, "${"); found {
		name, ok = strings.CutSuffix(inner, "}")
	} else {
		name, ok = strings.CutPrefix(text, "secretref-env:")
	}
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'A' && c <= 'Z' || i > 0 && (c == '_' || c >= '0' && c <= '9'))
	}
	return name, ok && name != "" && len(name) <= 128
}

func input(n *config.Node) Input {
	if text, ok := n.Str(); ok {
		text = strings.TrimSpace(text)
		if name, ok := variable(text); ok {
			return Input{Source: "env", ID: name}
		}
		return Input{Text: Secret(text)}
	}
	source, _ := n.At("source").Str()
	id, _ := n.At("id").Str()
	switch source {
	case "env", "file", "exec":
		return Input{Source: source, ID: strings.TrimSpace(id)}
	}
	return Input{}
}
