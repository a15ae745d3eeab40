// SPDX-License-Identifier: Apache-2.0

// Package command has the command lines that more than one program takes.
package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// CertificateController is what the command line of the certificate controller says.
type CertificateController struct {
	Config, Kubeconfig, LogFormat string
	Check, Verbose                bool
}

// NewCertificateController makes the command. Program is what people type: a program of its own, or a command of muster's.
func NewCertificateController(program string, run func(*cobra.Command, CertificateController) error) *cobra.Command {
	var c CertificateController
	_, name, ok := strings.Cut(program, " ")
	if !ok {
		name = program
	}
	cmd := &cobra.Command{
		Use:   name + " --config FILE",
		Short: "Approve and sign the certificate requests of kubelets, in any cluster",
		Long: `Approve and sign the certificate requests of kubelets, client and serving, and sign what people approved for other
signers. It works with any cluster; muster's own clusters each run one.

A request is approved only if its names and addresses are those that an inventory outside of the node's reach assigns to the
machine that asks. It is denied if it can never be; it waits if a fact is missing. Each decision is logged with every rule,
counted in a metric, and told in an Event on the request. Everything is set up in one file, the policy file.`,
		Example: strings.ReplaceAll(`  # Look at a policy file without doing anything
  PROGRAM --config policy.yaml --check

  # Outside of the cluster
  PROGRAM --kubeconfig controller.kubeconfig --config policy.yaml

  # In a pod of the cluster, by its service account
  PROGRAM --config /etc/muster/policy.yaml`, "PROGRAM", program),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, c) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Config, "config", "", "policy file (required)")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster whose requests are decided; default: the cluster that this pod is in")
	flags.BoolVar(&c.Check, "check", false, "only check the policy file")
	flags.StringVar(&c.LogFormat, "log-format", "text", "format of the log: text or json")
	flags.BoolVar(&c.Verbose, "verbose", false, "log more, such as each retry")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
