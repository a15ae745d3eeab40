// SPDX-License-Identifier: Apache-2.0

// Command muster-mcp is a server of the Model Context Protocol on standard input and output: a program such as an
// assistant asks it what is wrong with an installation, and gets what Muster's commands print with -o json. It is
// started by muster mcp.
//
// Each call is one run of the muster program, so that a tool cannot know more, or say something else, than the command
// of its name. The tools read: no tool takes a path or changes anything.
//
// It trusts the muster program beside it. It does not trust its client: arguments are checked before anything runs
// (call.go), and reach the command as values of flags, or after "--". Names, messages and logs that machines and users
// wrote go to the client, which may be fooled by them; secrets that can be known are taken out (package redaction).
//
// What happens if:
//
//	an argument is refused       the client is told in one line, and nothing runs
//	too many calls wait          a further one is refused
//	an answer is too large       the command is ended, and the client is told to ask for less
//	a command hangs              it is ended after a minute
//	the client goes away         so does the server, with the commands that run
//	reads cannot be recorded     nothing is read (package readaudit)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/platform/statedir"
)

// mostFrame is the longest message of a client, in bytes.
const mostFrame = 1 << 20

// endPatience is how long the server may take to end after a signal: a read of standard input may not return.
const endPatience = time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, os.Args[1:], os.Stdin, os.Stdout) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(endPatience):
		}
	}
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// serve answers one client until it goes away or the context ends.
func serve(ctx context.Context, args []string, in io.ReadCloser, out io.WriteCloser) error {
	a := &asker{now: time.Now, by: readaudit.Self(), busy: make(chan struct{}, mostAtOnce), calls: make(chan struct{}, mostCalls)}
	stateDir := statedir.Default()
	flags := flag.NewFlagSet("muster-mcp", flag.ContinueOnError)
	flags.StringVar(&a.program, "muster", "", "the muster program; default: the one beside this program")
	flags.StringVar(&stateDir, "state-dir", stateDir, "directory of everything muster keeps")
	flags.StringVar(&a.cluster, "cluster", "", "name of the cluster, if a call names none")
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of another cluster than those of the state directory")
	flags.StringVar(&a.context, "context", "", "context of the kubeconfig")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if a.program == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the muster program: %w", err)
		}
		a.program = filepath.Join(filepath.Dir(self), "muster")
	}
	dir, err := statedir.Open(stateDir)
	if err != nil {
		return err
	}
	a.stateDir = string(dir)
	if dir.Exists() {
		a.record = readaudit.Of(dir).Add
	}
	err = newServer(a).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: mostFrame})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil //nolint:nilerr // the client went away, or somebody ended us
	}
	return err
}
