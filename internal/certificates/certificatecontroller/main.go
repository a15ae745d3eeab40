// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/platform/cli"
	"muster.dev/muster/internal/platform/version"
)

// Program is the name of the program that Main is.
const Program = "muster-certificate-controller"

// Main executes the program's command line and returns the exit code: 0 done, 1 it could not be done, 2 the command line
// is wrong.
func Main(args []string, out, err io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := cli.NewCertificateController(Program, start)
	cmd.Version = version.Version
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if failed := cobra.NoArgs(cmd, args); failed != nil {
			return cli.UsageError{Err: fmt.Errorf("%w; usage: %s", failed, cmd.UseLine())}
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, failed error) error {
		return cli.UsageError{Err: fmt.Errorf("%w (see %s --help)", failed, cmd.CommandPath())}
	})
	cmd.SetOut(out)
	cmd.SetErr(err)
	cmd.SetArgs(args)
	failed := cmd.ExecuteContext(ctx)
	if failed == nil {
		return 0
	}
	_, _ = fmt.Fprintf(err, "Error: %v\n", failed)
	if _, ok := errors.AsType[cli.UsageError](failed); ok {
		return 2
	}
	return 1
}

func start(cmd *cobra.Command, part cli.Part) error {
	says := func(c policyconfig.Configuration) string {
		return fmt.Sprintf("mode %s, %d signers, %d sources", c.Mode, len(c.Signers), len(c.Inventory.Sources))
	}
	return cli.Start(cmd, part, policyconfig.Read, says, func(ctx context.Context, c policyconfig.Configuration, logger *slog.Logger) error {
		return Run(ctx, Config{Kubeconfig: part.Kubeconfig, Policy: c, Logger: logger})
	})
}
