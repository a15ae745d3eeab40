// SPDX-License-Identifier: Apache-2.0

// Muster runs Kubernetes clusters that machines join by themselves, and only those that should.
//
// A file here is a verb: it parses, calls one internal package, and prints. Data goes to standard output, talk to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"muster.dev/muster/internal/command"
	"muster.dev/muster/internal/node"
)

func main() {
	if calledBootstrapScript(os.Args[0]) {
		os.Exit(runBootstrapScript(os.Args[1:], node.DropInDir, standardStreams()))
	}
	if calledIAMAuthenticator(os.Args[0]) {
		os.Exit(runIAMAuthenticator(os.Args[1:], standardStreams()))
	}
	os.Exit(run(os.Args[1:], standardStreams()))
}

// run executes one command line and returns the exit code: 0 done, 1 it could not be done, 2 the command line is wrong.
func run(args []string, streams streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := newRootCommand(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok { // a command run on a machine: its own exit code, and it has said why itself
		return int(status)
	}
	fmt.Fprintf(streams.err, "Error: %s\n", inWords(ctx, err))
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}

// inWords is what an error says. Somebody who pressed Ctrl-C hears that, and not how Go calls it.
func inWords(ctx context.Context, err error) string {
	if ctx.Err() == nil {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
}

// exitStatus passes on the exit code of a program that a command ran for the user.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a command line that cannot be understood.
type usageError = command.UsageError
