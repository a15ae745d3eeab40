// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster.dev/muster/internal/state"
	"muster.dev/muster/internal/version"
)

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func standardStreams() streams { return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr} }

// terminal tells whether w is a terminal, where colour and moving progress are welcome.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// options are the flags that every command has.
type options struct {
	streams
	stateDir string
}

// open checks the state directory that the command line chose. A variable that was never set names none, and not the working directory.
func (o *options) open() (state.Dir, error) {
	if o.stateDir == "" {
		return "", usageError{Err: errors.New("--state-dir is empty: name a directory, or leave it out")}
	}
	return state.Open(o.stateDir)
}

// named tells whether somebody chose the state directory.
func (o *options) named() bool { return os.Getenv(state.Env) != "" || o.stateDir != state.Default() }

const groupMain, groupObjects, groupParts = "main", "objects", "parts"

func newRootCommand(s streams) *cobra.Command {
	o := &options{streams: s}
	root := &cobra.Command{
		Use:   "muster",
		Short: "Kubernetes clusters that machines join by themselves, and only those that should",
		Long: `Muster runs real Kubernetes clusters on this machine. Its nodes boot, prove who they are,
get their certificates and turn Ready with nobody's help.`,
		Example: `  # A cluster with three nodes
  muster up

  # Five nodes, by hand or by kubectl
  muster scale nodegroup default 5
  kubectl --context muster-management scale nodegroup default --replicas 5

  # Stop it; start it again; remove everything it ever made
  muster down
  muster up
  muster down --delete`,
		Version:           version.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              usageArgs(cobra.NoArgs),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{Err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&o.stateDir, "state-dir", state.Default(), "directory of everything muster keeps; $"+state.Env+" sets it too")
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Commands:"},
		&cobra.Group{ID: groupObjects, Title: "Node groups and machines:"},
		&cobra.Group{ID: groupParts, Title: "Parts, each of which also runs alone:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			checkUsage(c)
			root.AddCommand(c)
		}
	}
	add(groupMain, newUpCommand(o), newDownCommand(o), newStatusCommand(o), newKubeconfigCommand(o), newCertsCommand(o), newCSRCommand(o), newTokenCommand(o), newIAMCommand(o), newAuthCommand(o), newLogsCommand(o), newVersionCommand(o))
	add(groupMain, newJoinCommand(o), newLeaveCommand(o))
	add(groupObjects, newGetCommand(o), newCreateCommand(o), newScaleCommand(o), newDeleteCommand(o), newExecCommand(o))
	add(groupParts, newServeCommand(o), newCertificateControllerCommand(), newAuthenticatorCommand(), newNodeCommand(o))
	for _, hidden := range []*cobra.Command{newGuardCommand(o), newVPCCommand(), newSimulatorCommand()} {
		hidden.Hidden = true
		root.AddCommand(hidden)
	}
	return root
}
