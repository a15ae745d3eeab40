// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/iam/podwebhook"
	"muster.dev/muster/internal/iam/podwebhookconfig"
	"muster.dev/muster/internal/platform/cli"
)

// NewCommand returns "muster pod-identity-webhook".
func NewCommand() *cobra.Command {
	var part cli.Part
	cmd := &cobra.Command{
		Use:   "pod-identity-webhook --config FILE",
		Short: "Give pods the AWS identity of their service account, in any cluster",
		Long: `Answer AdmissionReviews of API servers about new pods: a pod whose service account has a role (eks.amazonaws.com/role-arn) or a pod
identity association gets the environment and the projected token by which AWS's SDKs find credentials. It works with any cluster, and
changes pods as amazon-eks-pod-identity-webhook does; muster's own clusters each run one. Everything is configured in one file: see
docs/pod-identity.md.`,
		Example: `  # Look at a file without doing anything
  muster pod-identity-webhook --config webhook.yaml --check

  # Outside of the cluster, beside the API server
  muster pod-identity-webhook --kubeconfig webhook.kubeconfig --config webhook.yaml

  # In a pod of the cluster, by its service account
  muster pod-identity-webhook --config /etc/muster/webhook.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Start(cmd, part, podwebhookconfig.Read, summarize, func(ctx context.Context, c podwebhookconfig.Configuration, logger *slog.Logger) error {
				return podwebhook.Run(ctx, podwebhook.Config{Kubeconfig: part.Kubeconfig, File: c, Logger: logger})
			})
		},
	}
	part.AddFlags(cmd, "configuration file", "")
	return cmd
}

func summarize(c podwebhookconfig.Configuration) string {
	region := c.Region
	if region == "" {
		region = "none"
	}
	return fmt.Sprintf("address %s, region %s", c.Server.BindAddress, region)
}
