package commands

// sessions is "oc sessions", which lists, and everything below it.
func sessions() *Command {
	list := sessionsList()
	return &Command{
		Name:     "sessions",
		Args:     list.Args,
		Short:    "list, read, explain, clean and change sessions",
		Long:     "Without a further word it lists sessions, as oc sessions list does.",
		Flags:    list.Flags,
		Examples: list.Examples,
		Exits:    list.Exits,
		Sub: []*Command{
			list, sessionsShow(), sessionsExplain(), sessionsContext(), sessionsCleanup(), sessionsSearch(), sessionsTrace(), sessionsStats(),
			sessionsMessages(), sessionsTail(), sessionsExport(), sessionsDiff(),
			sessionsDelete(), sessionsArchive(), sessionsRestore(), sessionsReset(), sessionsPatch(), sessionsCompact(), sessionsFlush(),
			sessionsSend(), sessionsSpawn(), sessionsYield(), sessionsAbort(),
		},
		Run: list.Run,
	}
}
