// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/controller"
	"muster.dev/muster/internal/policyfile"
)

func newCertificateControllerCommand() *cobra.Command {
	var kubeconfig, file, format string
	var verbose, check bool
	cmd := &cobra.Command{
		Use:   "certificate-controller --config FILE",
		Short: "Approve and sign the certificate requests of kubelets, in any cluster",
		Long: `Approve and sign the certificate requests of kubelets, client and serving, and sign what people approved for other
signers. It works with any cluster; muster's own clusters each run one.

A request is approved only if its names and addresses are those that an inventory outside of the node's reach assigns to the
machine that asks. It is denied if it can never be; it waits if a fact is missing. Each decision is logged with every rule,
counted in a metric, and told in an Event on the request. Everything is set up in one file, the policy file.`,
		Example: `  # Look at a policy file without doing anything
  muster certificate-controller --config policy.yaml --check

  # Outside of the cluster
  muster certificate-controller --kubeconfig controller.kubeconfig --config policy.yaml

  # In a pod of the cluster, by its service account
  muster certificate-controller --config /etc/muster/policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("name the policy file with --config")}
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("reading the policy file: %w", err)
			}
			config, err := policyfile.Read(raw)
			if err != nil {
				return fmt.Errorf("the policy file %s is wrong:\n%w", file, err)
			}
			if check {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is right: mode %s, %d signers, %d sources\n", file, config.Mode, len(config.Signers), len(config.Inventory.Sources))
				return err
			}
			logger, err := controllerLogger(cmd, format, verbose)
			if err != nil {
				return err
			}
			klog.SetSlogLogger(logger) // client-go logs through klog
			return controller.Run(cmd.Context(), controller.Config{Kubeconfig: kubeconfig, Policy: config, Logger: logger})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "policy file (required)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster whose requests are decided; default: the cluster that this pod is in")
	flags.BoolVar(&check, "check", false, "only check the policy file")
	flags.StringVar(&format, "log-format", "text", "format of the log: text or json")
	flags.BoolVar(&verbose, "verbose", false, "log more, such as each retry")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func controllerLogger(cmd *cobra.Command, format string, verbose bool) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	if verbose {
		options.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	default:
		return nil, usageError{fmt.Errorf("--log-format %q is not known; there are text and json", format)}
	}
}
