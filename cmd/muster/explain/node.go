// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/nodeevidence"
	"muster.dev/muster/internal/platform/systemd"
)

// nodeTime is how long a node may be looked at.
const nodeTime = 40 * time.Second

// Node explains the node that this host is, by what the host has. The error is [nodeevidence.ErrNoNode] if it is none.
func Node(ctx context.Context) (diagnosis.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	name, err := os.Hostname()
	if err != nil {
		return diagnosis.Report{}, fmt.Errorf("reading this host's name: %w", err)
	}
	cfg := nodeevidence.Config{Root: "/", Name: name, Now: time.Now(), Probes: nodeevidence.HostProbes{}}
	if systemd.Booted("") {
		if control, err := systemd.New(systemd.Config{}); err == nil { // without systemctl a host is as one without systemd
			cfg.Units = control
		}
		if program, err := exec.LookPath("journalctl"); err == nil {
			cfg.Journal = nodeevidence.Journalctl(program)
		}
	}
	catalogue, err := cause.Default()
	if err != nil {
		return diagnosis.Report{}, err
	}
	facts, err := nodeevidence.Read(ctx, cfg)
	if err != nil {
		return diagnosis.Report{}, err
	}
	return diagnosis.Decide(catalogue, facts, cfg.Now), nil
}
