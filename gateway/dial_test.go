package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

var releases = []string{"2026.7.35", "2026.9.6"}

// Every handshake that was recorded, as the gateway answered it. What a client
// of oc could not have caused is answered to it all the same.
func TestRecordedHandshakes(t *testing.T) {
	type want struct {
		fault  Fault
		detail string
		close  int
		says   string
	}
	admitted := want{}
	cleared := want{fault: Denied, detail: "MISSING_SCOPE", says: "does not grant operator.admin"}
	frame := want{fault: Denied, says: "invalid connect params"}
	wants := map[string]want{
		"01-backend-token-no-device": admitted, "02-backend-minimal": admitted, "04-cli-token-no-device": admitted, "05-cli-token-device-v3": admitted,
		"06-cli-token-device-v2": admitted, "12-protocol-1-99": admitted, "41-none-backend-no-auth": admitted, "50-password-cli": admitted,
		"03-backend-minimal-no-scopes": cleared, "19-test-client": cleared, "20-probe-client": cleared, "21-cli-id-backend-mode": cleared, "22-gateway-client-cli-mode": cleared,
		"07-cli-bad-token": {Denied, "AUTH_TOKEN_MISMATCH", 0, "use its gateway.auth.token"}, "08-backend-bad-token": {Denied, "AUTH_TOKEN_MISMATCH", 0, "use its gateway.auth.token"},
		"09-backend-no-auth": {Denied, "DEVICE_IDENTITY_REQUIRED", 0, "device identity"},
		"10-protocol-3":      {Strange, "PROTOCOL_MISMATCH", 0, "version 4 of the protocol"}, "11-protocol-5": {Strange, "PROTOCOL_MISMATCH", 0, "version 4 of the protocol"},
		"13-unknown-client-id": frame, "14-unknown-mode": frame, "15-extra-field": frame, "16-missing-version": frame,
		"17-bad-signature":                {Denied, "DEVICE_AUTH_NONCE_MISMATCH", 0, "try again"},
		"18-password-field-carries-token": {Denied, "AUTH_TOKEN_MISSING", 0, "it wants a token"},
		"30-first-frame-not-connect":      {Denied, "", 0, "first request must be connect"},
		"31-not-json":                     {HungUp, "", 1000, "normal end"}, "32-bad-shape": {HungUp, "", 1008, "invalid request frame"}, "33-silent": {HungUp, "", 1000, "normal end"},
		"40-none-cli-no-auth": {Denied, "DEVICE_IDENTITY_REQUIRED", 0, "device identity"}, "42-none-cli-with-token": {Denied, "DEVICE_IDENTITY_REQUIRED", 0, "device identity"},
		"51-password-as-token": {Denied, "AUTH_PASSWORD_MISSING", 0, "it wants a password"},
		"52-password-wrong":    {Denied, "AUTH_PASSWORD_MISMATCH", 0, "use its gateway.auth.password"},
	}
	for _, release := range releases {
		files, err := filepath.Glob(filepath.Join("testdata", release, "frames", "handshake", "*.ndjson"))
		if err != nil || len(files) != len(wants) {
			t.Fatalf("%s: %d recordings, %d expectations: %v", release, len(files), len(wants), err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".ndjson")
			t.Run(release+"/"+name, func(t *testing.T) {
				w := wants[name]
				if release == "2026.9.6" && (name == "18-password-field-carries-token" || name == "51-password-as-token") {
					w = admitted // the secret may stand in either field there
				}
				o, _ := replay(t, release, "handshake/"+name)
				c, err := Dial(t.Context(), o)
				if w.fault == "" {
					if err != nil {
						t.Fatal(err)
					}
					if c.Hello.Version != release || c.Hello.StateDir == "" || !c.Hello.Has("sessions.cleanup") || c.Hello.Tick != 30*time.Second || c.Hello.MaxPayload != 25<<20 {
						t.Errorf("%+v", c.Hello)
					}
					within(t, time.Second, "close", func() { c.Close() })
					return
				}
				var e *Error
				if !errors.As(err, &e) || e.Fault != w.fault || e.Detail != w.detail || e.Close != w.close || !strings.Contains(err.Error(), w.says) {
					t.Errorf("%v\n%+v", err, e)
				}
			})
		}
	}
}

func TestConnectFrame(t *testing.T) {
	const head = `{"minProtocol":4,"maxProtocol":4,"client":{"id":`
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"token":    {func(*Options) {}, head + `"cli","displayName":"oc","version":"0.1.0","platform":"PLATFORM","mode":"cli"},"scopes":["operator.admin"],"auth":{"token":"TOKEN"}}`},
		"password": {func(o *Options) { o.Credentials = Credentials{Mode: "password", Password: testToken} }, head + `"cli","displayName":"oc","version":"0.1.0","platform":"PLATFORM","mode":"cli"},"scopes":["operator.admin"],"auth":{"password":"TOKEN"}}`},
		"none":     {func(o *Options) { o.Credentials = Credentials{Mode: "none"} }, head + `"gateway-client","displayName":"oc","version":"0.1.0","platform":"PLATFORM","mode":"backend"},"scopes":["operator.admin"]}`},
		"reading":  {func(o *Options) { o.Scopes, o.Version = []string{Read}, "" }, head + `"cli","displayName":"oc","version":"0","platform":"PLATFORM","mode":"cli"},"scopes":["operator.read"],"auth":{"token":"TOKEN"}}`},
	} {
		o, heard := replay(t, "2026.9.6", "handshake/04-cli-token-no-device")
		c.change(&o)
		conn := dial(t, o)
		conn.Close()
		want := strings.NewReplacer("TOKEN", string(testToken), "PLATFORM", platform()).Replace(c.want)
		if string(heard.connect) != want {
			t.Errorf("%s: %s\nwant %s", name, heard.connect, want)
		}
	}
}

// An encrypted gateway is trusted by its fingerprint alone when there is one.
func TestFingerprint(t *testing.T) {
	hello := greeting(t, "2026.9.6")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		if greet(r.Context(), ws, hello) {
			_, _, _ = ws.Read(r.Context())
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.CloseClientConnections)
	sum := sha256.Sum256(s.Certificate().Raw)
	right := hex.EncodeToString(sum[:])
	o := optionsFor(s.Listener.Addr())
	o.Target.URL = "wss://" + s.Listener.Addr().String()
	for name, c := range map[string]struct{ fingerprint, fails string }{
		"right":       {right, ""},
		"with colons": {strings.ToUpper(right[:2] + ":" + right[2:]), ""},
		"wrong":       {strings.Repeat("00", 32), "not the one of gateway.remote.tlsFingerprint"},
		"none":        {"", "certificate"},
	} {
		o.Fingerprint = c.fingerprint
		conn, err := Dial(t.Context(), o)
		if c.fails == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			conn.Close()
			continue
		}
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Strange || !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.Target.URL = "ws://" + s.Listener.Addr().String() // TLS where none was expected
	if _, err := Dial(t.Context(), o); err == nil {
		t.Error("plain to an encrypted one")
	}
	plain := listen(t, func(ctx context.Context, ws *websocket.Conn) { _, _, _ = ws.Read(ctx) })
	plain.Target.URL = strings.Replace(plain.Target.URL, "ws:", "wss:", 1)
	if _, err := Dial(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "HTTPS client") {
		t.Errorf("encrypted to a plain one: %v", err)
	}
}

func TestBudgetOf(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": Budget, "x": Budget, "5": Budget, "-1": Budget, " 20000 ": 20 * time.Second, "9223372036854775807": time.Hour, "99999999999999999999": Budget,
	} {
		if got := BudgetOf(vars("OPENCLAW_HANDSHAKE_TIMEOUT_MS", text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestPartial(t *testing.T) {
	e := failure([]byte(`{"code":"X","message":"m","details":{"partialError":"one store","stores":[]}}`), nil)
	if string(e.Partial()) != `{"partialError":"one store","stores":[]}` || (&Error{}).Partial() != nil {
		t.Errorf("%s", e.Partial())
	}
}
