// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The environment of a process that rotates and is killed at a step.
const (
	envKillAt     = "NODECERTS_TEST_KILL_AT"
	envDir        = "NODECERTS_TEST_DIR"
	envKubeconfig = "NODECERTS_TEST_KUBECONFIG"
)

// TestMain lets the test binary be a rotation that ends in the hardest way.
func TestMain(m *testing.M) {
	if at, err := strconv.Atoi(os.Getenv(envKillAt)); err == nil {
		os.Exit(rotateUntilKilled(at))
	}
	os.Exit(m.Run())
}

func rotateUntilKilled(at int) int {
	steps := 0
	_, err := Rotate(context.Background(), RotateConfig{ //nolint:forbidigo // it is not a test
		Dir: os.Getenv(envDir), Locks: os.Getenv(envDir) + ".locks", Kubeconfig: os.Getenv(envKubeconfig), Kinds: Kinds(), Timeout: 10 * time.Second, Now: time.Now,
		Restart: func(context.Context) error { return nil }, Say: func(string, ...any) {},
		step: func(name string) {
			if steps == at {
				fmt.Println(name)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			steps++
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
