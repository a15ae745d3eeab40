// SPDX-License-Identifier: Apache-2.0

// Package cli has the command lines that more than one program takes.
package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// NewCertificateController makes the command. Program is what people type: a program of its own, or a command of
// muster's.
func NewCertificateController(program string, run func(*cobra.Command, Part) error) *cobra.Command {
	var part Part
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
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, part) },
	}
	part.AddFlags(cmd, "policy file", " whose requests are decided")
	return cmd
}
