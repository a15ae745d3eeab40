// SPDX-License-Identifier: Apache-2.0

// Muster runs Kubernetes clusters that machines join by themselves, and only those that should.
//
// The packages below are named after what their commands are about: csr, token, node and so on. A command parses its
// command line, calls internal packages, and prints: data to standard output, messages to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"muster.dev/muster/cmd/muster/node"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/token"
	"muster.dev/muster/internal/node/agent"
)

func main() {
	if node.CalledBootstrapScript(os.Args[0]) {
		os.Exit(node.RunBootstrapScript(os.Args[1:], agent.DropInDir, terminal.StandardStreams()))
	}
	if token.CalledIAMAuthenticator(os.Args[0]) {
		os.Exit(token.RunIAMAuthenticator(os.Args[1:], terminal.StandardStreams()))
	}
	if node.CalledCredentialProvider(os.Args[0]) {
		os.Exit(node.RunCredentialProvider(terminal.StandardStreams()))
	}
	if node.CalledLosetup(os.Args[0]) {
		os.Exit(node.RunLosetup(os.Args[1:], terminal.StandardStreams()))
	}
	if program, ok := node.CalledNodeShell(os.Args[0]); ok {
		os.Exit(node.RunNodeShell(program, os.Args[1:], terminal.StandardStreams()))
	}
	os.Exit(run(os.Args[1:], terminal.StandardStreams()))
}

// run executes one command line and returns the exit code: 0 done, 1 it could not be done, 2 the command line is wrong.
func run(args []string, streams terminal.Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := newRootCommand(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[terminal.ExitStatus](err); ok { // a command run on a machine: its own exit code, and it has said why itself
		return int(status)
	}
	fmt.Fprintf(streams.Err, "Error: %s\n", inWords(ctx, err))
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		return 2
	}
	return 1
}

// inWords returns the text of an error. After Ctrl-C it says "interrupted" in place of "context canceled".
func inWords(ctx context.Context, err error) string {
	if ctx.Err() == nil {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
}
