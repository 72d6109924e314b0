package commands

import "strings"

// all is the whole command line of oc. Commands are listed here and nowhere else.
func all() *Command {
	return &Command{
		Name:  "oc",
		Short: "look after the sessions of an OpenClaw installation",
		Long: "oc lists, reads, explains, cleans, repairs and reconciles the sessions of an OpenClaw installation, on the files and databases on disk, " +
			"and keeps its hands off while a gateway works on them. Commands that read change nothing, and what a command does to sessions can be undone.",
		Examples: []Example{
			{"oc", "the state in a few lines, and what to do next"},
			{"oc sessions list", "the newest sessions of the default agent"},
			{"oc status", "gateway, agents, sizes, running sessions"},
			{"oc help --json", "every command, flag and exit status as one document"},
		},
		Run: glance,
		Sub: []*Command{
			sessions(),
			agents(),
			status(),
			doctors(),
			metricsCommand(),
			reportCommand(),
			reviewCommand(),
			repairs(),
			subagents(),
			gatewayCommands(),
			databases(),
			cron(),
			migrate(),
			undo(),
			signalLog(),
			completion(),
			help(),
			manual(),
			version(),
		},
	}
}

// globals are the flags that every command understands.
var globals = []Flag{
	{Name: "state-dir", Value: "DIR", Takes: "a directory", Check: isSomething, Help: "the state directory; else OPENCLAW_STATE_DIR, else ~/.openclaw"},
	{Name: "config", Value: "FILE", Takes: "a file", Check: isSomething, Help: "the configuration file; else OPENCLAW_CONFIG_PATH, else openclaw.json in the state directory"},
	{Name: "profile", Value: "NAME", Help: "the state of a profile: ~/.openclaw-NAME", Takes: `a name of letters, digits, "_" and "-" that begins with a letter or digit, at most 64 long`, Check: isProfile},
	{Name: "dev", Help: "the state of the dev profile; the same as --profile dev"},
	{Name: "json", Help: "answer with one JSON document on standard output"},
	{Name: "no-color", Help: "no colours; they are only used on a terminal anyway, and not under NO_COLOR"},
	{Name: "quiet", Short: "q", Help: "no notes on standard error; warnings and errors are still told"},
	{Name: "verbose", Short: "v", Help: "say on standard error what was looked at and found"},
	{Name: "url", Value: "URL", Help: "the gateway to ask, such as ws://127.0.0.1:18789; else the one that is configured", Takes: "the address of a gateway, such as ws://127.0.0.1:18789", Check: isGatewayURL},
	{Name: "token", Value: "TOKEN", Help: "the gateway's token; better kept in the configuration or in OPENCLAW_GATEWAY_TOKEN, where no process list shows it", Takes: "the gateway's token", Check: isSomething, Secret: true},
	{Name: "password", Value: "PASSWORD", Help: "the gateway's password; better kept in the configuration or in OPENCLAW_GATEWAY_PASSWORD", Takes: "the gateway's password", Check: isSomething, Secret: true},
	{Name: "gateway-timeout", Value: "DURATION", Default: "10s", Help: "how long to wait for the gateway", Takes: "a duration such as 10s or 500ms", Check: isSomeTime},
	{Name: "offline", Help: "work on disk only, without asking a gateway"},
	{Name: "help", Short: "h", Help: "show help for a command"},
	{Name: "version", Help: "show the version; the same as oc version"},
}

// isSomething refuses an empty value: a script with a variable that is not set would ask about another state.
func isSomething(s string) bool { return strings.TrimSpace(s) != "" }

// isProfile follows OpenClaw 2026.7.35 (file-store.md 1.3).
func isProfile(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func isGatewayURL(address string) bool {
	scheme, host, ok := strings.Cut(address, "://")
	return ok && host != "" && (scheme == "ws" || scheme == "wss")
}

// together checks global flags that exclude each other, as OpenClaw 2026.7.35 does (file-store.md 1.3).
func (c *Call) together() error {
	if profile := c.String("profile"); c.Bool("dev") && profile != "" && profile != "dev" {
		return Usagef("--dev means --profile dev and cannot be combined with --profile %s; give one of them", profile)
	}
	if c.Bool("offline") && c.Given("url") {
		return Usagef("--offline and --url exclude each other; give one of them")
	}
	if c.Given("token") && c.Given("password") {
		return Usagef("--token and --password exclude each other; give the one that the gateway wants")
	}
	return nil
}
