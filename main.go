// Command oc looks after the sessions of an OpenClaw installation. All of it is in package commands; this file hands it the process.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"oc/commands"
)

//go:generate go run . man --write man

func main() {
	// A first signal asks for an orderly end, a second one ends at once. SIGPIPE is caught so that a change is not cut short because
	// nobody reads what oc says about it.
	ctx, stop := signal.NotifyContext(context.Background(), commands.Signals()...)
	context.AfterFunc(ctx, stop)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	// net/http logs what a server sends unasked; that is no business of whoever reads oc's standard error.
	log.SetOutput(io.Discard)

	dir, _ := os.Getwd()
	os.Exit(commands.Main(ctx, commands.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Dir: dir, Now: time.Now,
	}))
}
