// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/authenticatorserver"
	"muster.dev/muster/internal/platform/cli"
)

// NewCommand returns "muster authenticator".
func NewCommand() *cobra.Command {
	var part cli.Part
	cmd := &cobra.Command{
		Use:   "authenticator --config FILE",
		Short: "Authenticate AWS IAM identities for the API servers of any cluster",
		Long: `Answer TokenReviews of API servers about tokens of AWS IAM, as made by aws eks get-token, aws-iam-authenticator and
muster token get. It works with any cluster; muster's own clusters each run one.

A token is a presigned GetCallerIdentity request. Its form is checked first. Then STS is asked, or the signature is verified here with
a key that muster's identity service derives. The identity becomes a user by the first match among access entries, IAMIdentityMapping
objects, the ConfigMap kube-system/aws-auth and a mounted file. Each decision is one line in the log, with the rule that refused and
the fix. Everything is configured in one file: see docs/authenticator.md.`,
		Example: `  # Look at a file without doing anything
  muster authenticator --config authenticator.yaml --check

  # Make certificates, and the kubeconfig for kube-apiserver's --authentication-token-webhook-config-file
  muster authenticator init

  # Outside of the cluster, or as a static pod
  muster authenticator --kubeconfig authenticator.kubeconfig --config authenticator.yaml

  # In a pod of the cluster, by its service account
  muster authenticator --config /etc/muster/authenticator.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Start(cmd, part, authenticatorconfig.Read, authenticatorserver.Summarize, func(ctx context.Context, c authenticatorconfig.Configuration, logger *slog.Logger) error {
				return authenticatorserver.Run(ctx, authenticatorserver.Config{Kubeconfig: part.Kubeconfig, File: c, Logger: logger, Instances: instances})
			})
		},
	}
	part.AddFlags(cmd, "configuration file", "")
	cmd.AddCommand(newAuthenticatorInitCommand())
	return cmd
}

func newAuthenticatorInitCommand() *cobra.Command {
	var c authenticator.InitConfig
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the authenticator's certificates and the kubeconfig by which API servers ask it",
		Long: `Make what an authenticator in an existing cluster needs: a serving certificate for its address, a client certificate for API
servers, and a kubeconfig that has both in it, for kube-apiserver's --authentication-token-webhook-config-file. What is there and
good is kept, so that it may be run before each start.`,
		Example: `  # On a control plane node, before the API server is told
  muster authenticator init
  muster authenticator init --kubeconfig-out /etc/kubernetes/pki/iam/webhook.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Now = time.Now()
			written, err := authenticator.Init(c)
			for _, name := range written {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Give kube-apiserver --authentication-token-webhook-config-file=%s and --authentication-token-webhook-version=v1\n", c.Kubeconfig)
			return err
		},
	}
	flags := cmd.Flags()
	// Not --state-dir, which says where muster keeps its clusters.
	flags.StringVar(&c.StateDir, "dir", "/var/lib/muster-authenticator", "directory of certificates and keys, what server.stateDir names")
	flags.StringVar(&c.Kubeconfig, "kubeconfig-out", "/etc/kubernetes/muster-authenticator/kubeconfig.yaml", "kubeconfig to write for API servers")
	flags.StringVar(&c.Address, "address", "127.0.0.1:21362", "where the authenticator answers, what server.bindAddress says")
	return cmd
}
