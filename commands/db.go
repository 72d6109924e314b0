package commands

// databases are the commands for the files of the SQLite era.
func databases() *Command {
	return &Command{
		Name:  "db",
		Short: "the databases of the SQLite era: what is in them, and their upkeep",
		Long: "Since 2026.7.2 OpenClaw keeps sessions in one database an agent, openclaw-agent.sqlite, and what agents share in state/openclaw.sqlite. These commands say what such a " +
			"file holds, keep it in shape while no gateway runs, and take the sessions out of it as files.",
		Sub: []*Command{dbStatus(), dbCheckpoint(), dbVacuum(), dbExport()},
	}
}
