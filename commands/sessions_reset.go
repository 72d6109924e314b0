package commands

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
)

func sessionsReset() *Command {
	return &Command{
		Name:  "reset",
		Args:  "KEY",
		Short: "begin a session anew, and archive its conversation",
		Long: "Gives the session a new id, as /new and /reset do in a chat. Its transcript becomes an archive, <name>.reset.<time>. In a database the session keeps its id: a row that says reset is added to " +
			"its transcript, behind which model and readers begin. Levels, label, name, pin, a model and a profile that a " +
			"user chose, lineage and the place where answers go are kept; counters, goal, skills, queue settings and what is not documented are not." + verbAnyKeys,
		Flags: slices.Concat(verbFlags, []Flag{
			{Name: "reason", Value: "WORD", Default: "reset", Help: "the command that it stands for", Choices: []string{"new", "reset"}},
			{Name: "cron-run", Help: "as an isolated run of a cron job begins; the session is that of the job"},
		}),
		Examples: []Example{
			{"oc sessions reset main --main --reason new", "the main session"},
			{"oc sessions reset agent:main:cron:nightly --cron-run --dry-run", "what would stay of it"},
		},
		Exits: verbExits,
		Run: func(ctx context.Context, c *Call) error {
			how := maintenance.Reset{ID: uuid.NewString(), Reason: c.String("reason"), CronRun: c.Bool("cron-run"), Revision: uuid.NewString()}
			v := verb{past: "reset", rewrites: true, unwatches: true, plan: func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
				return maintenance.Begin(s, keys[0], how, c.Now())
			}, rows: func(cfg *config.Config, s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
				return maintenance.Restart(s, keys[0], how, workspace(cfg, s.Agent), c.Now())
			}, ask: func(k asked) gateway.Request {
				return gateway.Reset{Key: k.key, Agent: k.agent, Reason: how.Reason, ExpectedSessionID: k.sure}
			}}
			if how.CronRun {
				v.ask, v.closed = nil, "it has no call that begins a cron run anew (--cron-run)"
			}
			return c.change(ctx, v, c.Args)
		},
	}
}
