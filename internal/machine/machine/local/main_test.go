// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/platform/statedir"
)

// TestMain lets the test's own binary be muster on the machines that it makes, and a service that is killed while it
// launches one. These tests need root, and the programs that make build builds.
func TestMain(m *testing.M) {
	var err error
	ctx := context.Background() //nolint:forbidigo // there is no test yet
	switch {
	case len(os.Args) == 3 && os.Args[1] == "node" && os.Args[2] == "boot":
		err = Boot()
	case len(os.Args) == 2 && os.Args[1] == "node":
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
		err = agent.Run(ctx, agent.DefaultConfig())
		stop()
	case len(os.Args) == 4 && os.Args[1] == "launch":
		err = launch(ctx, statedir.Dir(os.Args[2]), os.Args[3])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// launch launches a machine as a service would.
func launch(ctx context.Context, dir statedir.Dir, binDir string) error {
	p, err := New(config(dir, binDir))
	if err != nil {
		return err
	}
	_, err = p.Launch(ctx, machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none")})
	return err
}
