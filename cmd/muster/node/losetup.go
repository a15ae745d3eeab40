// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/losetup"
)

// CalledLosetup reports whether a program name is that of losetup(8).
func CalledLosetup(name string) bool { return filepath.Base(name) == losetup.Program }

// RunLosetup is losetup(8) of a machine with a user namespace of its own.
func RunLosetup(args []string, s terminal.Streams) int {
	command := losetup.Command{
		Ask: func(ctx context.Context, request losetup.Request, file *os.File) ([]losetup.Device, error) {
			return losetup.Ask(ctx, losetup.Socket, request, file)
		},
		Sys: "/sys/block", Out: s.Out,
	}
	if err := command.Run(context.Background(), args); err != nil {
		fmt.Fprintf(s.Err, "losetup: %v\n", err)
		return 1
	}
	return 0
}
