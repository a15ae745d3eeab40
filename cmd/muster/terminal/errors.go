// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"

	"muster.dev/muster/internal/platform/cli"
)

// ExitStatus passes on the exit code of a program that a command ran for the user.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// UsageError is a command line that cannot be understood: exit code 2.
type UsageError = cli.UsageError
