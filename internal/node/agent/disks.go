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

// PrepareDisks gives a machine the disks that its instance came with, as its NodeConfig asks for it.
func PrepareDisks(ctx context.Context, storage nodeconfig.LocalStorage, systemd bool, root string, say func(string)) error {
	return localdisk.Setup(ctx, localdisk.Config{Root: root, Storage: storage, Systemd: systemd, Run: runTool, Say: say})
}

// runTool runs a program of the system's.
func runTool(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var said, complained strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &complained
	if err := cmd.Run(); err != nil {
		const most = 300
		text := strings.Join(strings.Fields(complained.String()), " ")
		return "", fmt.Errorf("%s: %w: %.*s", program, err, most, text)
	}
	return said.String(), nil
}

// noteDisks says the same thing once.
func (a *agent) noteDisks(what string) {
	if what != a.disks {
		a.log.Info("local disks", "what", what)
		a.disks = what
	}
}
