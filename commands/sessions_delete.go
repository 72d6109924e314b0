package commands

import (
	"context"

	"oc/gateway"
	"oc/maintenance"
)

func sessionsDelete() *Command {
	return &Command{
		Name:  "delete",
		Args:  "KEY...",
		Short: "take sessions out of the store and archive their transcripts",
		Long: "Takes each session out of its store. Its transcript becomes an archive, <name>.deleted.<time>, and its trajectory goes, as when OpenClaw deletes a session; what another " +
			"session uses too stays. It asks on a terminal, and needs --yes elsewhere." + verbAnyKeys,
		Flags: verbFlags,
		Examples: []Example{
			{"oc sessions delete agent:main:subagent:0f4e --dry-run", "what would go"},
			{"oc sessions delete 7c6f5d8e-1b2a-4c3d-8e9f-0a1b2c3d4e5f --yes", "by its id, without asking"},
		},
		Exits: verbExits,
		Run: func(ctx context.Context, c *Call) error {
			return c.change(ctx, verb{past: "deleted", asks: true, goes: true, unwatches: true, plan: func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
				return maintenance.Delete(s, keys, c.Now())
			}, ask: func(k asked) gateway.Request {
				return gateway.Delete{Key: k.key, Agent: k.agent, ExpectedSessionID: k.id}
			}}, c.Args)
		},
	}
}
