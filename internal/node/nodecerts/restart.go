// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// RestartRequest is the file by which a machine's agent is asked to restart the kubelet. Only root can make files
// there. The agent removes it after the restart. A request that nobody has answered is answered when the agent looks
// next.
const RestartRequest = "/run/muster/restart-kubelet"

// systemdDir exists where systemd is what runs (sd_booted(3)).
const systemdDir = "/run/systemd/system"

// restartTime is how long the kubelet's supervisor may take.
const restartTime = 20 * time.Second

// RestartKubelet has the kubelet restarted by its supervisor: systemd, or the agent of a machine.
func RestartKubelet(ctx context.Context) error {
	if exists(systemdDir) {
		return restartUnit(ctx)
	}
	return askAgent(ctx, RestartRequest)
}

func restartUnit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "systemctl", "restart", "kubelet.service").CombinedOutput(); err != nil {
		return unitError(err, out)
	}
	return nil
}

// maxSaid is how much of what systemctl says an error repeats.
const maxSaid = 200

// unitError is one line, though systemctl may say more.
func unitError(err error, out []byte) error {
	said := strings.Join(strings.Fields(string(out)), " ")
	if len(said) > maxSaid {
		said = strings.ToValidUTF8(said[:maxSaid], "") + "…"
	}
	if said == "" {
		said = "it said nothing"
	}
	return fmt.Errorf("systemctl restart kubelet.service: %w: %s", err, said)
}

// askAgent leaves a request and waits until it is answered.
func askAgent(ctx context.Context, path string) error {
	if !exists(filepath.Dir(path)) {
		return fmt.Errorf("neither systemd nor muster's agent runs here, so nobody can be asked: %s does not exist", filepath.Dir(path))
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("asking the agent: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("asking the agent: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent has not answered %s for %s", path, restartTime)
		case <-ticker.C:
		}
	}
}
