// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// Part is the command line of a part of the control plane that runs in any cluster and is set up by one file.
type Part struct {
	Config, Kubeconfig, LogFormat string
	Check, Verbose                bool

	file string // its name in the help
}

// UsageError is a command line that cannot be understood.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// AddFlags adds those that every part has. file is the name of the configuration file in the help, and cluster says
// which cluster's kubeconfig is meant.
func (p *Part) AddFlags(cmd *cobra.Command, file, cluster string) {
	p.file = file
	flags := cmd.Flags()
	flags.StringVar(&p.Config, "config", "", file+" (required)")
	flags.StringVar(&p.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster"+cluster+"; default: the cluster that this pod is in")
	flags.BoolVar(&p.Check, "check", false, "only check the "+file)
	flags.StringVar(&p.LogFormat, "log-format", "text", "format of the log: text or json")
	flags.BoolVar(&p.Verbose, "verbose", false, "log more, such as each retry")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// Start reads the file of a part and runs it, or only tells what the file says.
func Start[File any](cmd *cobra.Command, p Part, read func([]byte) (File, error), says func(File) string, run func(context.Context, File, *slog.Logger) error) error {
	if p.Config == "" {
		return UsageError{fmt.Errorf("name the %s with --config", p.file)}
	}
	raw, err := os.ReadFile(p.Config)
	if err != nil {
		return fmt.Errorf("reading the %s: %w", p.file, err)
	}
	file, err := read(raw)
	if err != nil {
		return fmt.Errorf("the %s %s is wrong:\n%w", p.file, p.Config, err)
	}
	if p.Check {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is right: %s\n", p.Config, says(file))
		return err
	}
	logger, err := p.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	klog.SetSlogLogger(logger) // client-go logs through klog
	return run(cmd.Context(), file, logger)
}

func (p *Part) logger(out io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	if p.Verbose {
		options.Level = slog.LevelDebug
	}
	switch p.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	default:
		return nil, UsageError{fmt.Errorf("--log-format %q is not known; there are text and json", p.LogFormat)}
	}
}
