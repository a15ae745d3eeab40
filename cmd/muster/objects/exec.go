// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/nsenter"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// ExecCommand is "muster exec". "muster node certs MACHINE" runs itself on a machine by it, too.
type ExecCommand struct {
	*terminal.Options
	Planes kinds.Dialers
	EUID   int
	Run    func(context.Context, nsenter.Config) (int, error)

	stdin, tty bool
}

// NewExecCommand returns "muster exec".
func NewExecCommand(o *terminal.Options) *cobra.Command {
	return (&ExecCommand{Options: o, Planes: kinds.NewDialers(), EUID: os.Geteuid(), Run: nsenter.Run}).command()
}

func (e *ExecCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec MACHINE [-- COMMAND [ARG...]]",
		Short: "Run a command on a local machine, or a shell",
		Long: `Run a command on a local machine: among its processes, with its files, network and host name, and within its limits.
Without a command, a login shell. There is a terminal if there is one here. The exit code is the command's.

The machine is named by its instance id, its node's name or its private address. This needs neither the machine's network
nor the cluster: it works on a machine that cannot join, too.`,
		Example: `  # A shell
  muster exec i-0123456789abcdef0

  # What runs on it
  muster exec ip-172-31-0-5.ec2.internal -- ps aux
  muster exec 172.31.0.5 -- ctr -n k8s.io containers list

  # A script from here
  muster exec 172.31.0.5 -- sh -s < check.sh`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(e.Options, e.Planes, kinds.Machines(), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tty := e.tty
			if !cmd.Flags().Changed("tty") {
				tty = e.stdin && isTerminal(e.In) && terminal.Is(e.Out)
			}
			return e.Exec(cmd.Context(), args[0], args[1:], tty)
		},
	}
	cmd.Flags().BoolVarP(&e.stdin, "stdin", "i", true, "pass on what is typed or piped in")
	cmd.Flags().BoolVarP(&e.tty, "tty", "t", false, "give the command a terminal (default: if there is one here)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return terminal.UsageError{Err: fmt.Errorf("%w; put -- before the command to run; usage: %s", err, cmd.UseLine())}
	})
	return cmd
}

func isTerminal(in any) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Exec runs a command on the machine that goes by name. The exit status of the command comes back as a
// terminal.ExitStatus.
func (e *ExecCommand) Exec(ctx context.Context, name string, args []string, tty bool) error {
	dir, err := e.OpenExisting()
	if err != nil {
		return err
	}
	id, err := kinds.MachineID(ctx, e.Options, e.Planes, dir, name)
	if err != nil {
		return err
	}
	pid, err := firstProcess(dir, id)
	if err != nil {
		return err
	}
	if pid == 0 {
		return e.whyNot(ctx, id)
	}
	ids, err := machineIDs(dir, id)
	if err != nil {
		return err
	}
	if e.EUID != 0 {
		return fmt.Errorf("entering machine %s needs root: run muster as root", id)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer func() { _ = null.Close() }()
	in := null
	if e.stdin {
		in = asFile(e.In, null)
	}
	code, err := e.Run(ctx, nsenter.Config{
		PID: pid, IDs: ids,
		Still: func() bool {
			again, err := firstProcess(dir, id)
			return err == nil && again == pid
		},
		Args: args, Env: machineEnvironment(), Dir: "/root", TTY: tty, In: in, Out: asFile(e.Out, null), Err: asFile(e.Err, null),
	})
	switch {
	case errors.Is(err, nsenter.ErrNoCommand):
		fmt.Fprintf(e.Err, "Error: %v (%s)\n", err, id)
		return terminal.ExitStatus(127) // as shells have it
	case errors.Is(err, fs.ErrPermission) && len(args) > 0:
		fmt.Fprintf(e.Err, "Error: %v (%s)\n", err, id)
		return terminal.ExitStatus(126)
	case err != nil:
		return fmt.Errorf("running a command on %s: %w", id, err)
	case code != 0:
		return terminal.ExitStatus(code)
	}
	return nil
}

// machineEnvironment is what a login on the machine would set. Of the caller's environment only what describes the
// terminal and the language goes along; the rest is about this host.
func machineEnvironment() []string {
	env := []string{
		"PATH=/run/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/muster/bin", "HOME=/root", "USER=root", "LOGNAME=root",
		"AWS_CONFIG_FILE=/etc/aws/config",
	}
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// asFile is a stream as a file. Only tests have streams that are none.
func asFile(stream any, otherwise *os.File) *os.File {
	if f, ok := stream.(*os.File); ok {
		return f
	}
	return otherwise
}

// firstProcess is the number of a machine's first process, 0 if it does not run.
func firstProcess(dir statedir.Dir, id string) (int, error) {
	found, err := local.Running(dir)
	return found[id], err
}

// machineIDs are those of a machine's own user namespace.
func machineIDs(dir statedir.Dir, id string) (userns.IDs, error) {
	record, err := machine.ReadRecord(filepath.Join(dir.Machine(id), machine.RecordFile))
	return record.IDs, err
}

// whyNot returns an error with the reason why a machine that exists cannot be entered.
func (e *ExecCommand) whyNot(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, kinds.AskTime)
	defer cancel()
	stopped := fmt.Errorf("machine %s does not run: `muster status` shows why, `muster up` starts what is stopped", id)
	p, err := e.Planes.Management(e.Options)
	if err != nil {
		return stopped
	}
	var m v1alpha1.Machine
	if err := p.Read(ctx, id, &m); err != nil {
		return stopped
	}
	if !m.Spec.Provider.Can(v1alpha1.OpenShell) {
		return fmt.Errorf("machine %s is %s and has no shell: %s", id, m.Spec.Provider, machine.CannotError{Provider: m.Spec.Provider, Do: v1alpha1.OpenShell}.Instead())
	}
	return stopped
}
