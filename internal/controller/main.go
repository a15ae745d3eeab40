// SPDX-License-Identifier: Apache-2.0

package controller

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
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/command"
	"muster.dev/muster/internal/policyfile"
	"muster.dev/muster/internal/version"
)

// Program is the name of the program that Main is.
const Program = "muster-certificate-controller"

// Main executes the program's command line and returns the exit code: 0 done, 1 it could not be done, 2 the command line is wrong.
func Main(args []string, out, err io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := command.NewCertificateController(Program, start)
	cmd.Version = version.Version
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if failed := cobra.NoArgs(cmd, args); failed != nil {
			return usageError{fmt.Errorf("%w; usage: %s", failed, cmd.UseLine())}
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, failed error) error {
		return usageError{fmt.Errorf("%w (see %s --help)", failed, cmd.CommandPath())}
	})
	cmd.SetOut(out)
	cmd.SetErr(err)
	cmd.SetArgs(args)
	failed := cmd.ExecuteContext(ctx)
	if failed == nil {
		return 0
	}
	_, _ = fmt.Fprintf(err, "Error: %v\n", failed)
	if _, ok := errors.AsType[usageError](failed); ok {
		return 2
	}
	return 1
}

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func start(cmd *cobra.Command, c command.CertificateController) error {
	if c.Config == "" {
		return usageError{errors.New("name the policy file with --config")}
	}
	raw, err := os.ReadFile(c.Config)
	if err != nil {
		return fmt.Errorf("reading the policy file: %w", err)
	}
	config, err := policyfile.Read(raw)
	if err != nil {
		return fmt.Errorf("the policy file %s is wrong:\n%w", c.Config, err)
	}
	if c.Check {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is right: mode %s, %d signers, %d sources\n", c.Config, config.Mode, len(config.Signers), len(config.Inventory.Sources))
		return err
	}
	logger, err := newLogger(cmd.ErrOrStderr(), c.LogFormat, c.Verbose)
	if err != nil {
		return err
	}
	klog.SetSlogLogger(logger) // client-go logs through klog
	return Run(cmd.Context(), Config{Kubeconfig: c.Kubeconfig, Policy: config, Logger: logger})
}

func newLogger(out io.Writer, format string, verbose bool) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	if verbose {
		options.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	default:
		return nil, usageError{fmt.Errorf("--log-format %q is not known; there are text and json", format)}
	}
}
