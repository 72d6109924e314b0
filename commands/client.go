package commands

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"oc/config"
	"oc/gateway"
)

// gateway says whom to ask and as whom: --url, --token, --password and --gateway-timeout, then the environment and the configuration as
// OpenClaw takes them (spec/gateway.md 1). --offline is an error here: whoever asks wants a gateway.
func (c *Call) gateway(cfg *config.Config, scopes ...string) (o gateway.Options, err error) {
	if c.Bool("offline") {
		return o, Usagef("%s asks the gateway, so it cannot be given --offline", words(c.Path))
	}
	settings := gateway.SettingsOf(cfg)
	o = gateway.Options{Scopes: scopes, Version: build().Version, Budget: c.budget(cfg), Fingerprint: settings.Fingerprint}
	if o.Target, err = gateway.Address(c.String("url"), cfg.Getenv, settings); err != nil {
		return o, Refusef("%w", err)
	}
	given := gateway.Given{Token: gateway.Secret(strings.TrimSpace(c.String("token"))), Password: gateway.Secret(strings.TrimSpace(c.String("password")))}
	o.Credentials = gateway.CredentialsFor(o.Target, given, cfg.Getenv, settings)
	// Only who has a device identity already shows it: to make one is a decision.
	o.Identity = func() (*gateway.Identity, error) {
		id, err := gateway.LoadIdentity(gateway.IdentityFile(cfg.StateDir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return id, err
	}
	return o, nil
}

// budget is how long the gateway may take to let oc in.
func (c *Call) budget(cfg *config.Config) time.Duration {
	if c.Given("gateway-timeout") {
		return c.Duration("gateway-timeout")
	}
	return gateway.BudgetOf(cfg.Getenv)
}

// gatewayError gives a failure to speak with a gateway, or a refusal because of one, its exit status and the word that JSON has for it.
func gatewayError(err error) error {
	var refusal *gateway.Refusal
	var failed *gateway.Error
	switch {
	case errors.As(err, &refusal):
		return &Error{Exit: exitOf(refusal.Exit), Code: faultCode(refusal.Unwrap()), Err: err, Details: map[string]any{"saw": refusal.Saw, "try": refusal.Try}}
	case errors.As(err, &failed):
		if failed.Fault == gateway.Interrupted && !failed.Sent {
			return &Error{Exit: ExitInterrupted, Err: err}
		}
		details := map[string]any{"sent": failed.Sent}
		if failed.Code != "" {
			details["gatewayCode"] = failed.Code
		}
		return &Error{Exit: exitOf(failed.Exit()), Code: faultCode(failed), Err: err, Details: details}
	}
	return err
}

// faultCode is the word for a failure to speak with a gateway; "" for other errors.
func faultCode(err error) string {
	var failed *gateway.Error
	if !errors.As(err, &failed) {
		return ""
	}
	return "gateway-" + string(failed.Fault)
}

func exitOf(e gateway.Exit) int {
	switch e {
	case gateway.ExitBusy:
		return ExitBusy
	case gateway.ExitRefused:
		return ExitRefused
	}
	return ExitFailed
}
