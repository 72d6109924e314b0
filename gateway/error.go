package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oc/store/span"
)

// Fault is the kind of a failure to speak with a gateway.
type Fault string

const (
	NoListener    Fault = "refused"        // nothing listens: the connection was refused
	Unreachable   Fault = "unreachable"    // no connection for another reason: host, route, name, certificate
	Silent        Fault = "silent"         // connected, and no answer in time
	HungUp        Fault = "closed"         // the other side ended the connection
	Starting      Fault = "starting"       // a gateway that is not ready, until the time was over
	Denied        Fault = "denied"         // a gateway that does not accept who asks
	NoCredentials Fault = "no-credentials" // a gateway, and nothing to show to it
	Strange       Fault = "strange"        // it does not speak the gateway's protocol, or another version of it
	Oversized     Fault = "too-large"      // an answer larger than oc reads
	Failed        Fault = "failed"         // the gateway answered a call with an error
	Unsupported   Fault = "unsupported"    // this gateway has no such method, or no such parameter
	ToolDenied    Fault = "tool-denied"    // there is no such tool for a client
	OtherState    Fault = "other-state"    // a gateway answers, and it has another state than the one asked about
	Interrupted   Fault = "interrupted"    // the caller's context was canceled
)

// Error is a failure to connect to a gateway, or of a call. It never holds a
// secret.
type Error struct {
	Fault Fault
	Doing string // "connect to", "hear from" or "call <method> on"
	Host  string // host:port of the gateway

	// Sent: the request went out and no answer came, so it is not known whether
	// it was carried out. It must not be repeated, nor done by hand, before the
	// state was looked at.
	Sent bool

	Code    string          // of the gateway's error: INVALID_REQUEST, NOT_PAIRED, ...
	Detail  string          // details.code of the gateway's error, which says more
	Close   int             // WebSocket close code; 0: none came
	Status  int             // HTTP status; 0: none came
	Says    string          // what the other side or the system said, on one line
	Details json.RawMessage // of the gateway's error, as it came
	Retry   time.Duration   // the gateway's own advice; 0: none

	Err error // the cause, for errors.Is; not shown

	fix string // of missing credentials, and of an owner that does not listen
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s the gateway at %s: %s", e.Doing, e.Host, e.what())
	if e.Sent {
		b.WriteString("; the request had gone out, so it is not known whether it was carried out")
	}
	if try := e.Try(); try != "" {
		b.WriteString(": ")
		b.WriteString(try)
	}
	return b.String()
}

// Unwrap gives the cause: a system error or the context's.
func (e *Error) Unwrap() error { return e.Err }

// Partial is the result of a cleanup that did only a part, which 2026.9.6 sends
// inside its error; nil when there is none.
func (e *Error) Partial() json.RawMessage {
	if span.Member(e.Details, "partialError") == nil {
		return nil
	}
	return e.Details
}

func (e *Error) what() string {
	says := e.Says
	if e.Detail != "" && !strings.Contains(says, e.Detail) {
		says = strings.TrimSpace(says + " (" + e.Detail + ")")
	} else if e.Code != "" && e.Detail == "" && !strings.Contains(says, e.Code) {
		says = strings.TrimSpace(says + " (" + e.Code + ")")
	}
	with := func(what string) string {
		if says == "" {
			return what
		}
		return what + ", " + says
	}
	switch e.Fault {
	case NoListener:
		return "nothing listens there"
	case Unreachable:
		return with("no connection")
	case Silent:
		return with("no answer in time")
	case HungUp:
		if e.Close != 0 {
			return with(fmt.Sprintf("it closed the connection with %s", closeName(e.Close)))
		}
		return with("it closed the connection")
	case Starting:
		return with("it is still starting")
	case Denied:
		return with("it does not let oc in")
	case NoCredentials:
		return "a gateway is there, and oc has nothing to show to it: " + says
	case Strange:
		return with("it does not answer as a gateway does")
	case Oversized:
		return with("its answer is too large")
	case Unsupported:
		return with("its release cannot do this")
	case OtherState:
		return with("it is not the gateway of this state")
	case Interrupted:
		return "interrupted"
	}
	if says == "" {
		return "it answered with an error"
	}
	return says
}

// closeName names the codes that gateways use (spec/gateway.md 2.4).
func closeName(code int) string {
	name := map[int]string{
		1000: "normal end", 1001: "going away", 1002: "protocol mismatch", 1006: "no closing frame", 1008: "policy", 1009: "frame too big",
		1011: "internal error", 1012: "restart", 1013: "starting", 4001: "credentials changed",
	}[code]
	if name == "" {
		return fmt.Sprintf("code %d", code)
	}
	return fmt.Sprintf("code %d (%s)", code, name)
}

// Try says what to do about it; empty when what the gateway said is all there
// is.
func (e *Error) Try() string {
	if e.Sent {
		return "look at the state before you try again, for example with `oc sessions --json`"
	}
	for _, code := range []string{e.Detail, e.Code} {
		if try := remedy(code); try != "" {
			return try
		}
	}
	switch e.Fault {
	case NoCredentials:
		return e.fix
	case ToolDenied:
		return "name it in gateway.tools.allow of openclaw.json, and see that no tool policy takes it away"
	case NoListener:
		if e.fix != "" {
			return e.fix
		}
		return "start the gateway, or check its port"
	case Unreachable:
		return "check the address and the network"
	case Silent:
		return "look at the gateway's log, or give it more time"
	case HungUp:
		switch e.Close {
		case 1012:
			return "it restarts: try again in a moment"
		case 4001:
			return "its credentials were changed: use the new ones"
		}
		return "look at the gateway's log, then try again"
	case Starting:
		return "try again in a moment"
	case Denied:
		return "use the gateway's own token or password"
	case Strange:
		return "check that the address and the port are the gateway's"
	case Oversized:
		return "ask for less"
	case OtherState:
		return "start this state's gateway, or give an address with --url"
	case Unsupported:
		return "update OpenClaw, or do it with the gateway stopped"
	}
	return ""
}

// remedy is what to do about a code that says it all, of both releases.
func remedy(code string) string {
	switch code {
	case "AUTH_TOKEN_MISMATCH":
		return "the token is not this gateway's: use its gateway.auth.token"
	case "AUTH_TOKEN_MISSING":
		return "it wants a token: set gateway.auth.token or OPENCLAW_GATEWAY_TOKEN"
	case "AUTH_TOKEN_NOT_CONFIGURED":
		return "it has no token: set gateway.auth.token and restart it"
	case "AUTH_PASSWORD_MISMATCH":
		return "the password is not this gateway's: use its gateway.auth.password"
	case "AUTH_PASSWORD_MISSING":
		return "it wants a password: set gateway.auth.password or OPENCLAW_GATEWAY_PASSWORD"
	case "AUTH_PASSWORD_NOT_CONFIGURED":
		return "it has no password: set gateway.auth.password and restart it"
	case "AUTH_RATE_LIMITED":
		return "there were too many wrong tries: wait, then use the right secret"
	case "DEVICE_IDENTITY_REQUIRED":
		return "it wants its token or password, and on another machine a device identity too: let oc make one"
	case "PAIRING_REQUIRED", "AUTH_SCOPE_MISMATCH":
		return "approve this device on the gateway's machine, then try again"
	case "DEVICE_AUTH_SIGNATURE_EXPIRED":
		return "the clocks of the two machines differ by more than 2 minutes: set them"
	case "DEVICE_AUTH_DEVICE_ID_MISMATCH", "DEVICE_AUTH_PUBLIC_KEY_INVALID", "DEVICE_AUTH_SIGNATURE_INVALID", "DEVICE_AUTH_INVALID":
		return "the device identity of oc is damaged: remove its file and pair again"
	case "DEVICE_AUTH_NONCE_MISMATCH", "DEVICE_AUTH_NONCE_REQUIRED":
		return "try again"
	case "AUTH_TAILSCALE_IDENTITY_MISSING", "AUTH_TAILSCALE_PROXY_MISSING", "AUTH_TAILSCALE_WHOIS_FAILED", "AUTH_TAILSCALE_IDENTITY_MISMATCH":
		return "connect through Tailscale, or use a token"
	case "MISSING_SCOPE", "FORBIDDEN":
		return "use credentials that may do this"
	case "PROTOCOL_MISMATCH":
		return "oc speaks version 4 of the protocol: use a release of OpenClaw that does"
	}
	return ""
}

// Exit is the exit status that a failure or a refusal means, in words.
type Exit string

const (
	ExitFailed  Exit = "failed"  // 1
	ExitBusy    Exit = "busy"    // 5: try again
	ExitRefused Exit = "refused" // 6: not safe, or not allowed
)

// Exit says what a command should end with.
func (e *Error) Exit() Exit {
	switch e.Fault {
	case Failed:
		// A session that has a turn (spec/gateway.md 3). UNAVAILABLE alone says
		// less: gateways use it for what went wrong inside of them too.
		if e.Code == "UNAVAILABLE" && strings.Contains(e.Says, "is still active") {
			return ExitBusy
		}
	case NoListener, Unreachable, Silent, HungUp, Starting, Interrupted:
		return ExitBusy
	case Denied, NoCredentials, ToolDenied, Strange, OtherState, Unsupported:
		return ExitRefused
	}
	if e.Sent {
		return ExitBusy
	}
	return ExitFailed
}
