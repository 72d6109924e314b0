package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/config"

	"pgregory.net/rapid"
)

func TestCredentials(t *testing.T) {
	local := Target{Source: "local loopback", Local: true}
	remote := Target{Source: "config gateway.remote.url"}
	flag := Target{Source: "cli --url"}
	fromEnv := Target{Source: "env OPENCLAW_GATEWAY_URL"}
	auth := func(mode, token, password, remoteToken, remotePassword string) Auth {
		in := func(s string) Input {
			switch name, isRef := strings.CutPrefix(s, "ref:"); {
			case isRef:
				return Input{Source: "env", ID: name}
			case s == "file":
				return Input{Source: "file", ID: "/run/secrets/x"}
			}
			return Input{Text: Secret(s)}
		}
		return Auth{mode, in(token), in(password), in(remoteToken), in(remotePassword)}
	}
	tokenEnv, passwordEnv := vars("OPENCLAW_GATEWAY_TOKEN", " et "), vars("OPENCLAW_GATEWAY_PASSWORD", "ep")
	both := vars("OPENCLAW_GATEWAY_TOKEN", "et", "OPENCLAW_GATEWAY_PASSWORD", "ep", "MINE", "m")
	for name, c := range map[string]struct {
		target          Target
		given           Given
		env             func(string) string
		auth            Auth
		token, password Secret
		source, problem string
	}{
		"nothing anywhere":            {local, Given{}, vars(), auth("", "", "", "", ""), "", "", "", "gateway.auth.password, env OPENCLAW_GATEWAY_PASSWORD, gateway.remote.password, gateway.auth.token, env OPENCLAW_GATEWAY_TOKEN, gateway.remote.token"},
		"config beats env":            {local, Given{}, both, auth("token", "ct", "cp", "rt", "rp"), "ct", "", "gateway.auth.token", ""},
		"env":                         {local, Given{}, tokenEnv, auth("token", "", "", "rt", ""), "et", "", "env OPENCLAW_GATEWAY_TOKEN", ""},
		"remote's, at last":           {local, Given{}, vars(), auth("token", "", "", "rt", ""), "rt", "", "gateway.remote.token", ""},
		"mode password":               {local, Given{}, both, auth("password", "ct", "", "", "rp"), "", "ep", "env OPENCLAW_GATEWAY_PASSWORD", ""},
		"mode password, token alone":  {local, Given{}, tokenEnv, auth("password", "ct", "", "", ""), "", "", "", "gateway.auth.password, env OPENCLAW_GATEWAY_PASSWORD"},
		"no mode, a password":         {local, Given{}, passwordEnv, auth("", "ct", "", "", ""), "", "ep", "env OPENCLAW_GATEWAY_PASSWORD", ""},
		"no mode, a token":            {local, Given{}, vars(), auth("", "ct", "", "", ""), "ct", "", "gateway.auth.token", ""},
		"mode none":                   {local, Given{}, both, auth("none", "ct", "cp", "", ""), "", "", "", ""},
		"trusted proxy":               {local, Given{}, both, auth("trusted-proxy", "ct", "", "", "rp"), "", "ep", "env OPENCLAW_GATEWAY_PASSWORD", ""},
		"trusted proxy, remote's":     {local, Given{}, vars(), auth("trusted-proxy", "", "", "", "rp"), "", "", "", "gateway.auth.password"},
		"given beats all":             {local, Given{Token: "gt"}, both, auth("password", "ct", "cp", "", ""), "gt", "", "the command line", ""},
		"given for a flag":            {flag, Given{Password: "gp"}, vars(), Auth{}, "", "gp", "the command line", ""},
		"a flag takes nothing else":   {flag, Given{}, both, auth("token", "ct", "cp", "rt", "rp"), "", "", "", "an address from --url takes no secret"},
		"env url, config":             {fromEnv, Given{}, vars(), auth("token", "ct", "cp", "rt", "rp"), "", "", "", "env OPENCLAW_GATEWAY_TOKEN, env OPENCLAW_GATEWAY_PASSWORD"},
		"env url, env":                {fromEnv, Given{}, both, auth("token", "ct", "", "", ""), "et", "ep", "env OPENCLAW_GATEWAY_TOKEN and env OPENCLAW_GATEWAY_PASSWORD", ""},
		"remote":                      {remote, Given{}, both, auth("token", "ct", "cp", "rt", "rp"), "rt", "ep", "gateway.remote.token and env OPENCLAW_GATEWAY_PASSWORD", ""},
		"remote, local's token":       {remote, Given{}, vars(), auth("token", "ct", "", "", ""), "ct", "", "gateway.auth.token", ""},
		"remote, nothing":             {remote, Given{}, vars(), Auth{}, "", "", "", "gateway.remote.token"},
		"a reference":                 {local, Given{}, both, auth("token", "ref:MINE", "", "", ""), "m", "", "gateway.auth.token", ""},
		"a reference to nothing":      {local, Given{}, tokenEnv, auth("token", "ref:NONE", "", "", ""), "", "", "", `gateway.auth.token refers to env "NONE"`},
		"a reference to a file":       {local, Given{}, vars(), auth("", "", "file", "", ""), "", "", "", `gateway.auth.password refers to file "/run/secrets/x"`},
		"an unused broken reference":  {local, Given{}, vars(), auth("token", "ct", "file", "", ""), "ct", "", "gateway.auth.token", ""},
		"remote, one broken, one not": {remote, Given{}, vars(), auth("token", "", "", "file", "rp"), "", "rp", "gateway.remote.password", ""},
	} {
		got := CredentialsFor(c.target, c.given, c.env, Settings{Auth: c.auth})
		if got.Token != c.token || got.Password != c.password || got.Source != c.source || !strings.Contains(got.Problem, c.problem) || (c.problem == "") != (got.Problem == "") || (got.Problem == "") != (got.Fix == "") {
			t.Errorf("%s: token %q, password %q, %+v", name, string(got.Token), string(got.Password), got)
		}
	}
}

// Whatever stands where, there is a secret, a problem, or no need for one.
func TestCredentialsSayWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := func(name string) string { return rapid.SampledFrom([]string{"", "a", " "}).Draw(t, name) }
		in := func(name string) Input {
			return Input{Text: Secret(word(name)), Source: rapid.SampledFrom([]string{"", "env", "file", "exec"}).Draw(t, name), ID: "X"}
		}
		mode := rapid.SampledFrom([]string{"", "token", "password", "none", "trusted-proxy", "?"}).Draw(t, "mode")
		target := rapid.SampledFrom([]Target{{Source: "cli --url"}, {Source: "env OPENCLAW_GATEWAY_URL"}, {Source: "config gateway.remote.url"}, {Local: true}}).Draw(t, "target")
		env := vars("OPENCLAW_GATEWAY_TOKEN", word("token"), "OPENCLAW_GATEWAY_PASSWORD", word("password"), "X", word("x"))
		c := CredentialsFor(target, Given{}, env, Settings{Auth: Auth{mode, in("at"), in("ap"), in("rt"), in("rp")}})
		has := c.Token != "" || c.Password != ""
		if has != (c.Source != "") || has == (c.Problem != "") && !(c.Mode == "none" && !has) {
			t.Fatalf("%#v %+v", c.Token, c)
		}
	})
}

func TestSecretsDoNotPrint(t *testing.T) {
	c := Credentials{Token: testToken, Password: testToken, Source: "x"}
	id, err := MakeIdentity(filepath.Join(t.TempDir(), "identity.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Credentials: c}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "t", c.Token, "c", c, "o", o.Credentials)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "t", c.Token, "c", c)
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(raw)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		all += fmt.Sprintf(verb, c.Token) + fmt.Sprintf(verb, c) + fmt.Sprintf(verb, &c) + fmt.Sprintf(verb, o) + fmt.Sprintf(verb, Given{Token: testToken}) + fmt.Sprintf(verb, Input{Text: testToken}) + fmt.Sprintf(verb, id)
	}
	for _, bad := range []string{string(testToken), fmt.Sprintf("%x", string(testToken)), fmt.Sprintf("%X", string(testToken)), fmt.Sprintf("%x", id.key.Seed()), fmt.Sprint([]byte(id.key.Seed()))} {
		if strings.Contains(all, bad) {
			t.Errorf("shows %q in\n%s", bad, all)
		}
	}
	if s := fmt.Sprint(Secret("")); s != "" {
		t.Errorf("an empty one prints %q", s)
	}
	if s := said("a\n  "+string(testToken)+"\xff "+strings.Repeat("é", 400), testToken); strings.ContainsAny(s, "\n") || strings.Contains(s, string(testToken)) || len([]rune(s)) > 310 {
		t.Errorf("%q", s)
	}
}

func TestSettingsOf(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "openclaw.json")
	err := os.WriteFile(file, []byte(`{gateway: {mode: 'remote', port: 1234, bind: 'lan', tls: {enabled: true},
		auth: {mode: 'password', token: '${GONE}', password: {source: 'file', provider: 'p', id: '/x'}},
		remote: {url: 'wss://h', token: ' t ', password: 'secretref-env:NAME', tlsFingerprint: 'ab:cd'}}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{Cwd: dir, Home: dir, StateDir: dir, ConfigFile: file})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Mode: "remote", Port: 1234, Bind: "lan", TLS: true, RemoteURL: "wss://h", Fingerprint: "ab:cd",
		Auth: Auth{"password", Input{Source: "env", ID: "GONE"}, Input{Source: "file", ID: "/x"}, Input{Text: "t"}, Input{Source: "env", ID: "NAME"}},
	}
	if got := SettingsOf(cfg); got != want {
		t.Errorf("%#v", got)
	}
	cfg, err = config.Load(config.Options{Cwd: dir, Home: dir, StateDir: dir, ConfigFile: filepath.Join(dir, "none")})
	if err != nil || SettingsOf(cfg) != (Settings{}) {
		t.Errorf("%+v, %v", SettingsOf(cfg), err)
	}
}

func TestVariable(t *testing.T) {
	for text, want := range map[string]string{
		"${A}": "A", "${A_1}": "A_1", "secretref-env:A": "A", "${a}": "", "${_A}": "", "${1}": "", "${}": "", "${A": "", "A": "", "": "",
		"secretref-env:": "", "secretref-env:A b": "", "${A}x": "", "$A": "", "${" + strings.Repeat("A", 129) + "}": "",
	} {
		name, ok := variable(text)
		if !ok {
			name = ""
		}
		if name != want {
			t.Errorf("%q: %q", text, name)
		}
	}
}
