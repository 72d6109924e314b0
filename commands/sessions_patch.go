package commands

import (
	"context"
	"slices"
	"strings"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store/row"
)

func sessionsPatch() *Command {
	flags := slices.Concat(verbFlags, []Flag{
		{Name: "model", Value: "PROVIDER/MODEL", Help: "the model that it uses; the default one of its agent is no override", Takes: "provider/model", Check: isModelRef},
		{Name: "pin", Help: "pin it"},
		{Name: "unpin", Help: "unpin it"},
		{Name: "unread", Help: "mark it as unread"},
		{Name: "read", Help: "it is read by now"},
		{Name: "tools-deny", Value: "TOOL", Repeatable: true, Help: "the tools that a sub-agent's session may not use, in place of those before", Takes: "the name of a tool", Check: isToolName},
		{Name: "tools-allow", Value: "TOOL", Repeatable: true, Help: "the only tools that it may use", Takes: "the name of a tool", Check: isToolName},
	})
	for _, s := range maintenance.Settings() {
		f := Flag{Name: s.Name, Value: "VALUE", Help: s.Help, Choices: s.Values}
		if s.Values == nil {
			f.Value, f.Takes, f.Check = "TEXT", "a text of at most 512 characters", s.Accepts
		}
		flags = append(flags, f)
	}
	flags = append(flags, Flag{Name: "unset", Value: "FIELD", Repeatable: true, Help: "take a field out of its row, by its name there", Takes: "the name of a documented field that may go", Check: maintenance.Unsettable})
	return &Command{
		Name:  "patch",
		Args:  "KEY",
		Short: "change settings of a session",
		Long: "Changes documented fields of a session's row, with the values that OpenClaw takes for them; everything else in the row keeps its bytes. Whether a model exists is not " +
			"checked. --unset model goes back to the default model. Where a session comes from (spawnedBy, spawnDepth and the like) cannot be changed: OpenClaw sets it once." + verbAnyKeys,
		Flags: flags,
		Examples: []Example{
			{"oc sessions patch main --main --label home --pin", "a label and a pin"},
			{"oc sessions patch home --model openai/gpt-5.2 --thinking high --dry-run", "what would change"},
			{"oc sessions patch home --unset model --unset thinkingLevel", "back to the defaults"},
		},
		Exits: verbExits,
		Run:   patchSession,
	}
}

func isModelRef(s string) bool {
	provider, model, ok := strings.Cut(strings.TrimSpace(s), "/")
	return ok && strings.TrimSpace(provider) == provider && provider != "" && model != "" && !strings.ContainsAny(s, "\n\t ")
}

func isToolName(s string) bool {
	return strings.TrimSpace(s) != "" && len(s) <= 512 && !strings.ContainsAny(s, "\n\t")
}

func bothWays(name, field string) error {
	return Usagef("--%s and --unset %s exclude each other; give one of them", name, field)
}

func patchSession(ctx context.Context, c *Call) error {
	p := maintenance.Patch{Set: map[string]string{}, Unset: c.Strings("unset"), Pin: c.Bool("pin"), Unpin: c.Bool("unpin"), Unread: c.Bool("unread"), Read: c.Bool("read"), Deny: c.Strings("tools-deny"), Allow: c.Strings("tools-allow"), Model: strings.TrimSpace(c.String("model"))}
	if p.Pin && p.Unpin {
		return Usagef("--pin and --unpin exclude each other; give one of them")
	}
	if p.Unread && p.Read {
		return Usagef("--unread and --read exclude each other; give one of them")
	}
	for name, field := range map[string]row.Field{"tools-deny": row.InheritedToolDeny, "tools-allow": row.InheritedToolAllow} {
		if c.Given(name) && slices.Contains(p.Unset, field.String()) {
			return bothWays(name, field.String())
		}
	}
	for _, s := range maintenance.Settings() {
		if c.Given(s.Name) {
			p.Set[s.Name] = c.String(s.Name)
			if slices.Contains(p.Unset, s.Field.String()) {
				return bothWays(s.Name, s.Field.String())
			}
		}
	}
	for _, field := range []row.Field{row.Model, row.ModelOverride, row.ProviderOverride} {
		if p.Model != "" && slices.Contains(p.Unset, field.String()) {
			return bothWays("model", field.String())
		}
	}
	if p.Pin && slices.Contains(p.Unset, row.PinnedAt.String()) {
		return bothWays("pin", row.PinnedAt.String())
	}
	if len(p.Set)+len(p.Unset)+len(p.Deny)+len(p.Allow) == 0 && !p.Pin && !p.Unpin && !p.Unread && !p.Read && p.Model == "" {
		return Usagef("nothing is to be changed; give a setting such as --label, or --unset FIELD")
	}
	cfg, all, err := c.named(ctx, c.Args)
	if err != nil {
		return err
	}
	if err := c.sparesMain(all, "changed"); err != nil {
		return err
	}
	agent := all[0].target.Agent
	if id := row.KeyAgent(all[0].keys[0]); id != "" {
		agent = id
	}
	m := cfg.Model(config.ModelInput{Agent: agent})
	p.Default = m.Provider + "/" + m.Model
	plan := func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
		return maintenance.Change(s, keys[0], p, c.Now())
	}
	v := verb{past: "changed", plan: plan, rows: inRows(plan)}
	if fields, odd := p.Fields(); odd != "" {
		v.closed = "it has no call that takes the field " + odd + " out of a row"
	} else {
		v.ask = func(k asked) gateway.Request {
			return gateway.Patch{Key: k.key, Agent: k.agent, ExpectedSessionID: k.sure, Fields: fields}
		}
	}
	return c.apply(ctx, cfg, v, all, all[0].keys[0])
}
