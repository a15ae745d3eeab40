// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"muster.dev/muster/internal/node/localdisk"
	"muster.dev/muster/internal/node/nodeconfig"
)

// PrepareDisks gives a host with systemd the disks that its instance came with, as its NodeConfig asks for it. It is
// not for process number one, whose reaper takes the end of every child.
func PrepareDisks(ctx context.Context, storage nodeconfig.LocalStorage, say func(string)) error {
	return localdisk.Setup(ctx, localdisk.Config{Storage: storage, Systemd: true, Run: execTool, Say: say})
}

// execTool is a [localdisk.Run] of a program that reaps no children but its own.
func execTool(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = toolEnvironment()
	var said, complained strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &complained
	if err := cmd.Run(); err != nil {
		return "", toolFailed(program, err, complained.String())
	}
	return said.String(), nil
}

// toolEnvironment is what programs of the system see.
func toolEnvironment() []string {
	return []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// toolFailed is the error of a program of the system, with the beginning of what it complained of.
func toolFailed(program string, err error, complained string) error {
	const most = 300
	return fmt.Errorf("%s: %w: %.*s", program, err, most, strings.Join(strings.Fields(complained), " "))
}
