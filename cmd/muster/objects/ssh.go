// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/statedir"
)

// sshCommand is "muster ssh".
type sshCommand struct {
	*terminal.Options
	planes  kinds.Dialers
	euid    int
	look    func(program string) (path string, err error)
	served  func() bool
	network func(dir statedir.Dir, r machine.Record) (sshNetwork, error)

	identity string
}

// sshNetwork is the network of a machine, as far as SSH asks about it.
type sshNetwork interface {
	LetsInSSH(machine string, address netip.Addr) (lets bool, groups []string, err error)
	Open() (*os.File, error)
}

// machineNetwork is a VPC.
type machineNetwork struct{ *vpc.Network }

func (n machineNetwork) LetsInSSH(machine string, address netip.Addr) (lets bool, groups []string, err error) {
	return vpc.LetsInSSH(n.Network, machine, address)
}

// NewSSHCommand returns "muster ssh".
func NewSSHCommand(o *terminal.Options) *cobra.Command {
	return (&sshCommand{
		Options: o, planes: kinds.NewDialers(), euid: os.Geteuid(), look: exec.LookPath, served: sshserver.Installed,
		network: func(dir statedir.Dir, r machine.Record) (sshNetwork, error) {
			network, err := vpc.Open(dir.VPCs(), r.VPC)
			return machineNetwork{network}, err
		},
	}).command()
}

func (s *sshCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ssh MACHINE [-- COMMAND [ARG...]]",
		Short: "Log in to a machine by SSH, with the key of its key pair",
		Long: `Log in as ` + sshserver.User + ` to a machine that was launched with a key pair of EC2, by this host's ssh, and run a command or a shell.
The connection comes from the router of the machine's subnet, and the machine's security groups let it in or not. The host key is
the one on the machine's disk: nobody is asked about it. The exit code is the command's, or 255 if there was no connection.

A command of one word is read by the machine's shell, pipes and all; several words reach the program as they are.
Without -i, ssh tries the keys that it tries everywhere. muster exec needs neither key nor network, and is root.`,
		Example: `  # A key pair, and machines with it
  aws ec2 create-key-pair --key-name mine --query KeyMaterial --output text >mine.pem && chmod 600 mine.pem
  aws eks create-nodegroup --cluster-name muster --nodegroup-name shell --remote-access ec2SshKey=mine ...

  # A shell, and what people look at there
  muster ssh -i mine.pem ip-172-31-0-5.ec2.internal
  muster ssh -i mine.pem 172.31.0.5 -- systemctl cat kubelet
  muster ssh -i mine.pem 172.31.0.5 -- 'journalctl -u kubelet | grep -i "certificate signing request"'
  muster ssh -i mine.pem 172.31.0.5 -- sudo ls -al /var/lib/kubelet/pki/`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(s.Options, s.planes, kinds.Machines(), 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args[0], args[1:]) },
	}
	cmd.Flags().StringVarP(&s.identity, "identity-file", "i", "", "file of the private key")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return terminal.UsageError{Err: fmt.Errorf("%w; put -- before the command to run; usage: %s", err, cmd.UseLine())}
	})
	return cmd
}

func (s *sshCommand) run(ctx context.Context, name string, command []string) error {
	dir, err := s.OpenExisting()
	if err != nil {
		return err
	}
	id, err := kinds.MachineID(ctx, s.Options, s.planes, dir, name)
	if err != nil {
		return err
	}
	if pid, err := firstProcess(dir, id); err != nil {
		return err
	} else if pid == 0 {
		return (&ExecCommand{Options: s.Options, Planes: s.planes}).whyNot(ctx, id)
	}
	record, err := machine.ReadRecord(filepath.Join(dir.Machine(id), machine.RecordFile))
	if err != nil {
		return err
	}
	program, err := s.possible(record)
	if err != nil {
		return err
	}
	network, err := s.network(dir, record)
	if err != nil {
		return err
	}
	if err := letIn(network, record); err != nil {
		return err
	}
	known, err := knownHosts(dir, id)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(known) }()
	namespace, err := network.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	return s.connect(ctx, namespace, program, s.arguments(record, known, command))
}

// possible returns the path of ssh, or an error with what keeps people from logging in to the machine.
func (s *sshCommand) possible(record machine.Record) (program string, err error) {
	switch {
	case record.Key.IsZero():
		return "", fmt.Errorf("machine %s was launched without a key pair, so nobody can log in by SSH: muster exec %s is a shell there", record.ID, record.ID)
	case !s.served():
		return "", fmt.Errorf("machine %s has no SSH server, since %s", record.ID, sshserver.Missing)
	case s.euid != 0:
		return "", fmt.Errorf("entering the network of machine %s needs root: run muster as root", record.ID)
	}
	if s.identity != "" {
		if _, err := os.Stat(s.identity); err != nil {
			return "", fmt.Errorf("-i: %w", err)
		}
	}
	if program, err = s.look("ssh"); err != nil {
		return "", errors.New("this host has no ssh: apt install openssh-client")
	}
	return program, nil
}

// letIn returns an error with the rule that is missing, if the security groups of the machine do not let its owner in.
func letIn(network sshNetwork, record machine.Record) error {
	lets, groups, err := network.LetsInSSH(record.ID, record.PrivateIP)
	if err != nil || lets {
		return err
	}
	if len(groups) == 0 {
		return fmt.Errorf("machine %s is in no security group, so nothing reaches it", record.ID)
	}
	return fmt.Errorf("the security groups of machine %s, %s, do not let in SSH from the router of its subnet: aws ec2 authorize-security-group-ingress --group-id %s --protocol tcp --port %d --cidr 0.0.0.0/0",
		record.ID, strings.Join(groups, " and "), groups[0], sshserver.Port)
}

// knownHosts writes a file that knows the machine by its id, and nobody else.
func knownHosts(dir statedir.Dir, id string) (path string, err error) {
	disk, err := os.OpenRoot(statedir.MachineRoot(dir, id))
	if err != nil {
		return "", fmt.Errorf("opening the machine's disk: %w", err)
	}
	defer func() { _ = disk.Close() }()
	key, err := sshserver.HostKey(disk)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("machine %s has not started its SSH server yet: try again in a moment; muster logs %s --component node says why if it goes on", id, id)
	}
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "muster-known-hosts-")
	if err != nil {
		return "", fmt.Errorf("noting the host key: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s %s\n", id, key)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("noting the host key: %w", err), os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// arguments are those of ssh: nothing of the configuration of this host counts, and the host key is known.
func (s *sshCommand) arguments(record machine.Record, known string, command []string) []string {
	args := []string{
		"-F", "none", "-p", fmt.Sprint(sshserver.Port), "-l", sshserver.User,
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + shellquote.Quote(known), "-o", "GlobalKnownHostsFile=none", "-o", "HostKeyAlias=" + record.ID,
		"-o", "CheckHostIP=no", "-o", "UpdateHostKeys=no", "-o", "PreferredAuthentications=publickey", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR",
	}
	if s.identity != "" {
		args = append(args, "-o", "IdentitiesOnly=yes", "-i", s.identity)
	}
	args = append(args, record.PrivateIP.String())
	if len(command) > 1 {
		quoted := make([]string, len(command))
		for i, word := range command {
			quoted[i] = shellquote.Quote(word)
		}
		command = []string{strings.Join(quoted, " ")}
	}
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

// connect runs ssh in a network namespace.
func (s *sshCommand) connect(ctx context.Context, namespace *os.File, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	if err := host.InNetwork(namespace, cmd.Start); err != nil { // a process is in the namespace of the thread that starts it
		return fmt.Errorf("running ssh: %w", err)
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return terminal.ExitStatus(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("running ssh: %w", err)
	}
	return nil
}
