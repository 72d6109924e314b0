package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"oc/store/span"

	"github.com/coder/websocket"
)

// Scopes that a client may ask for.
const (
	Read  = "operator.read"
	Write = "operator.write"
	Admin = "operator.admin"
)

// Protocol is the version that both releases speak.
const Protocol = 4

// Budget is how long a connection may take when nothing else is said, as in
// OpenClaw.
const Budget = 10 * time.Second

// BudgetOf is Budget, or what OPENCLAW_HANDSHAKE_TIMEOUT_MS says if that is
// more, as in OpenClaw; at most an hour.
func BudgetOf(env func(string) string) time.Duration {
	ms, err := strconv.ParseInt(strings.TrimSpace(env("OPENCLAW_HANDSHAKE_TIMEOUT_MS")), 10, 64)
	if err != nil {
		return Budget
	}
	return max(Budget, time.Duration(min(max(ms, 0), 3600_000))*time.Millisecond)
}

// Options say whom to call and as whom.
type Options struct {
	Target      Target
	Credentials Credentials
	Scopes      []string      // asked for: what the calls to come need, no more
	Version     string        // of oc
	Budget      time.Duration // until the gateway has let oc in; 0: Budget
	Fingerprint string        // SHA-256 of the certificate of wss://, hex; empty: the system's roots decide

	// Identity is asked for a device identity when a gateway on another machine
	// wants one; nil: there is none, and such a gateway is an error.
	Identity func() (*Identity, error)

	// Events is called for every event, one after the other, and must return
	// soon: nothing else is read meanwhile. nil: events are dropped unread.
	Events func(Event)
}

// Event is something that a gateway tells unasked.
type Event struct {
	Name    string
	Payload json.RawMessage
}

// Dial connects to a gateway (spec/gateway.md 2, releases 2026.7.35 and
// 2026.9.6): it waits for the challenge before it shows a secret, sends the
// smallest connect frame, and returns when the gateway has let it in with every
// scope that was asked for. A gateway that is starting is asked again until the
// budget is over. The error is an *Error.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	budget := o.Budget
	if budget <= 0 {
		budget = Budget
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var id *Identity
	var starting *Error
	for {
		d := &dialing{Options: o, id: id, host: host(o.Target.URL)}
		c, err := d.dial(ctx)
		if err == nil {
			return c, nil
		}
		switch {
		case err.Fault == Starting:
			starting = err
			wait := min(max(err.Retry, 100*time.Millisecond), 2*time.Second)
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		case starting != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = starting // the last try was cut short
		case d.wantsIdentity(err) && id == nil && o.Identity != nil:
			made, cause := o.Identity()
			if cause == nil && made != nil {
				id = made
				continue
			}
			if cause != nil {
				err.Says, err.Err = said(cause.Error(), d.secrets()...), cause
			}
		}
		return nil, err
	}
}

// wantsIdentity reports a gateway that would let oc in with a device identity:
// it says so, or it is on another machine and grants nothing. Through a tunnel
// a gateway elsewhere looks like one on loopback, so the address is not asked in
// the first case.
func (d *dialing) wantsIdentity(e *Error) bool {
	name, _, _ := net.SplitHostPort(d.host)
	return e.Fault == Denied && (e.Detail == "DEVICE_IDENTITY_REQUIRED" || (e.Detail == "MISSING_SCOPE" && !loopback(name)))
}

// dialing is one try.
type dialing struct {
	Options
	id        *Identity
	host      string
	connected atomic.Bool // a TCP connection came about
	wire      net.Conn    // it
}

func (d *dialing) secrets() []Secret { return []Secret{d.Credentials.Token, d.Credentials.Password} }

func (d *dialing) fail(f Fault, says string) *Error {
	return d.named(&Error{Fault: f, Says: said(says, d.secrets()...)})
}

// penniless says why there is nothing to show.
func (d *dialing) penniless() *Error {
	return &Error{Fault: NoCredentials, Says: d.Credentials.Problem, fix: d.Credentials.Fix}
}

func (d *dialing) named(e *Error) *Error {
	e.Doing, e.Host = "connect to", d.host
	return e
}

func (d *dialing) dial(ctx context.Context) (*Conn, *Error) {
	ws, status, err := d.open(ctx)
	if err != nil {
		e := d.unreachable(ctx, err)
		switch {
		case status == http.StatusServiceUnavailable:
			e.Fault, e.Status, e.Says = Starting, status, "HTTP status 503"
		case status != 0:
			e.Fault, e.Status, e.Says = Strange, status, fmt.Sprintf("HTTP status %d", status)
		}
		return nil, d.named(e)
	}
	ws.SetReadLimit(maxGreeting)
	hello, e := d.greet(ctx, ws)
	if e != nil {
		_ = ws.CloseNow()
		return nil, e
	}
	return newConn(ws, d.wire, hello, d.host, d.secrets(), d.Events), nil
}

// open makes the WebSocket. status is the HTTP status of an answer that is none.
func (d *dialing) open(ctx context.Context) (ws *websocket.Conn, status int, err error) {
	ws, resp, err := websocket.Dial(ctx, d.Target.URL, &websocket.DialOptions{
		HTTPClient: d.client(),
		HTTPHeader: http.Header{"User-Agent": {"oc/" + d.Version}},
	})
	if err != nil && resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		status = resp.StatusCode
	}
	return ws, status, err
}

// client makes one connection, and no other.
func (d *dialing) client() *http.Client {
	var dialer net.Dialer
	return &http.Client{
		Transport: &http.Transport{
			// No proxy: a secret must go nowhere but to the gateway.
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err == nil {
					d.wire = conn
					d.connected.Store(true)
				}
				return conn, err
			},
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        pinned(d.Fingerprint),
			TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// pinned trusts one certificate, as OpenClaw does with a fingerprint.
func pinned(fingerprint string) *tls.Config {
	want := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(fingerprint), ":", ""))
	want = strings.TrimPrefix(want, "sha256")
	if want == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // the fingerprint decides instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				sum := sha256.Sum256(s.PeerCertificates[0].Raw)
				if hex.EncodeToString(sum[:]) == want {
					return nil
				}
			}
			return errors.New("its certificate is not the one of gateway.remote.tlsFingerprint")
		},
	}
}

// greet answers the challenge.
func (d *dialing) greet(ctx context.Context, ws *websocket.Conn) (hello Hello, _ *Error) {
	challenge, e := d.next(ctx, ws, func(f frame) bool { return f.kind == "event" && f.event == "connect.challenge" })
	if e != nil {
		return hello, e
	}
	if d.Credentials.Problem != "" {
		return hello, d.named(d.penniless())
	}
	if err := ws.Write(ctx, websocket.MessageText, d.connect(challenge.payload)); err != nil {
		return hello, d.named(explain(ctx, err, d.secrets()))
	}
	answer, e := d.next(ctx, ws, func(f frame) bool { return f.kind == "res" && f.id == "1" })
	if e != nil {
		return hello, e
	}
	if !answer.ok {
		e := d.named(failure(answer.failure, d.secrets()))
		switch reason := textAt(e.Details, "reason"); {
		case e.Code == "UNAVAILABLE" || strings.HasPrefix(reason, "startup"):
			e.Fault = Starting
		case e.Detail == "PROTOCOL_MISMATCH" || strings.Contains(e.Says, "protocol mismatch"):
			e.Fault, e.Detail = Strange, "PROTOCOL_MISMATCH"
		default:
			e.Fault = Denied
		}
		return hello, e
	}
	hello, ok := parseHello(answer.payload)
	if !ok || hello.Protocol != Protocol {
		return hello, d.fail(Strange, "its greeting is of another protocol")
	}
	for _, scope := range d.Scopes {
		if !hello.Grants(scope) {
			e := d.fail(Denied, "it does not grant "+scope)
			e.Detail = "MISSING_SCOPE"
			return hello, e
		}
	}
	return hello, nil
}

// next reads until a frame of the handshake comes; others are dropped.
func (d *dialing) next(ctx context.Context, ws *websocket.Conn, is func(frame) bool) (frame, *Error) {
	for {
		_, r, err := ws.Reader(ctx)
		if err == nil {
			var f frame
			f, _, err = readFrame(r, maxGreeting, true)
			if err == nil && is(f) {
				return f, nil
			}
		}
		if err != nil {
			e := d.named(explain(ctx, err, d.secrets()))
			if e.Close == 1013 {
				e.Fault = Starting
			}
			return frame{}, e
		}
	}
}

// connect is the smallest frame that both releases accept. With auth mode none
// they let in only their own backend client.
func (d *dialing) connect(challenge []byte) []byte {
	type client struct {
		ID          string `json:"id"`
		DisplayName string `json:"displayName,omitempty"`
		Version     string `json:"version"`
		Platform    string `json:"platform"`
		Mode        string `json:"mode"`
	}
	type auth struct {
		Token    string `json:"token,omitempty"`
		Password string `json:"password,omitempty"`
	}
	params := struct {
		Min    int      `json:"minProtocol"`
		Max    int      `json:"maxProtocol"`
		Client client   `json:"client"`
		Scopes []string `json:"scopes,omitempty"`
		Auth   *auth    `json:"auth,omitempty"`
		Device *device  `json:"device,omitempty"`
	}{Protocol, Protocol, client{"cli", "oc", d.Version, platform(), "cli"}, d.Scopes, nil, nil}
	if params.Client.Version == "" {
		params.Client.Version = "0"
	}
	if d.Credentials.Mode == "none" {
		params.Client.ID, params.Client.Mode = "gateway-client", "backend"
	} else {
		params.Auth = &auth{string(d.Credentials.Token), string(d.Credentials.Password)}
	}
	if d.id != nil {
		signed := d.id.sign(signature{
			client: params.Client.ID, mode: params.Client.Mode, scopes: d.Scopes, token: d.Credentials.Token, platform: params.Client.Platform,
			at: numberAt(challenge, "ts"), nonce: textAt(challenge, "nonce"),
		})
		params.Device = &signed
	}
	raw, _ := json.Marshal(struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{"req", "1", "connect", params})
	return raw
}

func platform() string {
	switch runtime.GOOS {
	case "windows":
		return "win32"
	default:
		return runtime.GOOS
	}
}

// host is the part of an address that holds no secret.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return u.Host
}

// failure reads the error of an answer.
func failure(raw []byte, secrets []Secret) *Error {
	e := &Error{Fault: Failed}
	e.Code = said(textAt(raw, "code"), secrets...)
	e.Detail = said(textAt(raw, "details", "code"), secrets...)
	e.Says = said(textAt(raw, "message"), secrets...)
	e.Retry = milliseconds(raw, "retryAfterMs")
	if details := span.Member(raw, "details"); details != nil {
		for _, s := range secrets {
			if s != "" && strings.Contains(string(details), string(s)) {
				return e
			}
		}
		e.Details = details
	}
	return e
}
