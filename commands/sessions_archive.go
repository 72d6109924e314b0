package commands

import (
	"context"

	"oc/gateway"
	"oc/maintenance"
)

func sessionsArchive() *Command {
	return &Command{
		Name:  "archive",
		Args:  "KEY...",
		Short: "put sessions aside without removing anything",
		Long: "Marks each session as archived, as OpenClaw's control panel does: archivedAt is set, and a pin goes. The row and its transcript stay, and OpenClaw starts no new work in the " +
			"session until it is restored." + verbAnyKeys,
		Flags: verbFlags,
		Examples: []Example{
			{"oc sessions archive agent:main:telegram:direct:4711", "one session"},
			{"oc sessions archive main --main --dry-run", "what would change in the main session"},
		},
		Exits: verbExits,
		Run: func(ctx context.Context, c *Call) error {
			plan := func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
				return maintenance.Archive(s, keys, c.Now())
			}
			return c.change(ctx, verb{past: "archived", plan: plan, rows: inRows(plan), ask: func(k asked) gateway.Request {
				return gateway.Patch{Key: k.key, Agent: k.agent, ExpectedSessionID: k.sure, Fields: map[string]any{"archived": true}}
			}}, c.Args)
		},
	}
}
