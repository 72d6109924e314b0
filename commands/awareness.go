package commands

// signalLog is "oc awareness" and everything below it.
func signalLog() *Command {
	return &Command{
		Name:  "awareness",
		Short: "the signal log: what others did to sessions, and who watches whom",
		Long: "OpenClaw records in its state database what happens to sessions, who watches them, and how much each watcher has seen. A watcher that falls behind is told so " +
			"with one notice, and then asks for the changes. These commands show that log, and let scripts and agents of any kind take part in it.\n\n" +
			"What happened to one session since a version is the answer of oc status --session KEY --changes-since N.",
		Examples: []Example{
			{"oc awareness log --since 1h", "what was recorded in the last hour"},
			{"oc awareness watches", "who watches whom, and who is behind"},
			{"oc awareness notices agent:main:main --ack", "see what a session is to be told, and mark it as seen"},
		},
		Sub: []*Command{
			awarenessLog(), awarenessWatches(), awarenessWatch(), awarenessNotices(), awarenessRecord(), awarenessStats(), awarenessSweep(), awarenessPrune(),
			awarenessUpstream(), awarenessInit(),
		},
	}
}
