package commands

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the build of a release (.goreleaser.yaml): -ldflags "-X oc/commands.release=1.2.3 -X oc/commands.commit=abcdef0 -X oc/commands.date=2026-11-30T12:00:00Z".
var release, commit, date string

func version() *Command {
	return &Command{
		Name:     "version",
		Short:    "show the version of oc",
		Long:     "Shows the version, the commit it was built from, the Go release and the platform. The document has the time of the commit too.",
		Examples: []Example{{"oc version --json", "the same as a document"}},
		Run:      showVersion,
	}
}

func showVersion(_ context.Context, c *Call) error {
	b := build()
	if c.JSON() {
		c.Out.Write(document(b)) //nolint:errcheck // kept in Out
		c.answered = true
		return nil
	}
	c.Out.Printf("oc %s", b.Version)
	if b.Commit != "" {
		c.Out.Printf(" (%s", b.Commit)
		if b.Modified {
			c.Out.Printf(", modified")
		}
		c.Out.Printf(")")
	}
	c.Out.Printf(", %s, %s/%s\n", b.Go, b.OS, b.Arch)
	return nil
}

type buildFacts struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit, RFC 3339
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// build is what the linker was told, else what Go noted about the build.
func build() buildFacts {
	b := buildFacts{Version: release, Commit: commit[:min(12, len(commit))], Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = strings.TrimPrefix(info.Main.Version, "v")
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	if ok && b.Commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value[:min(12, len(s.Value))]
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}
