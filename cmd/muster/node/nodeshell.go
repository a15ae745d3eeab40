// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/nodeshell"
)

// CalledNodeShell reports whether a program name is one of those that people call on a machine, and which.
func CalledNodeShell(name string) (program string, ok bool) {
	program = filepath.Base(name)
	return program, program == nodeshell.Systemctl || program == nodeshell.Journalctl || program == nodeshell.Sudo
}

// RunNodeShell is such a program, and returns its exit status.
func RunNodeShell(program string, args []string, s terminal.Streams) int {
	var status int
	var err error
	system := nodeshell.System{Root: "/", Out: s.Out}
	switch program {
	case nodeshell.Systemctl:
		status, err = system.RunSystemctl(args)
	case nodeshell.Journalctl:
		var host string
		if host, err = os.Hostname(); err == nil {
			err = system.RunJournalctl(context.Background(), args, host)
		}
	default:
		err = becomeRoot(args)
	}
	switch {
	case err != nil:
		fmt.Fprintf(s.Err, "%s: %v\n", program, err)
		return 1
	case program == nodeshell.Systemctl:
		return status
	}
	return 0
}

// becomeRoot becomes the command of a sudo(8). It returns only if that fails.
func becomeRoot(args []string) error {
	argv, env, err := nodeshell.SudoCommand(args, os.Environ())
	if err != nil {
		return err
	}
	err = syscall.Exec(nodeshell.Raise, argv, env)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errors.New("only the group wheel of a machine may become root")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("this machine has no " + nodeshell.Raise + ": the host lacks setpriv, which the package util-linux has")
	}
	return fmt.Errorf("becoming root: %w", err)
}
