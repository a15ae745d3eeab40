// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/version"
)

// IAMAuthenticator is the name by which the kubeconfigs of EKS's nodes, and of people who came before `aws eks
// get-token`, call for tokens.
const IAMAuthenticator = "aws-iam-authenticator"

// CalledIAMAuthenticator reports whether a program name is that of aws-iam-authenticator.
func CalledIAMAuthenticator(name string) bool { return filepath.Base(name) == IAMAuthenticator }

// RunIAMAuthenticator is aws-iam-authenticator's client: the command token, with its flags.
func RunIAMAuthenticator(args []string, s terminal.Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newIAMAuthenticatorCommand(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(s.Err, "Error: %v\n", err)
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		return 2
	}
	return 1
}

func newIAMAuthenticatorCommand(s terminal.Streams) *cobra.Command {
	c := &credentialCommand{out: s.Out, err: s.Err, now: time.Now}
	root := &cobra.Command{
		Use:           IAMAuthenticator,
		Short:         "Tokens of IAM identities for clusters, by muster",
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          terminal.UsageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return terminal.UsageError{Err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	token := &cobra.Command{
		Use:   "token",
		Short: "Print a token for a cluster, as a credential plugin does",
		Args:  terminal.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(c.request.Cluster) == "" {
				return terminal.UsageError{Err: errors.New("-i: name the cluster that the token is for")}
			}
			return c.run(cmd.Context())
		},
	}
	root.PersistentFlags().StringVarP(&c.request.Cluster, "cluster-id", "i", "", "name of the cluster")
	flags := token.Flags()
	flags.StringVarP(&c.request.RoleARN, "role", "r", "", "role to assume first")
	flags.StringVarP(&c.request.SessionName, "session-name", "s", "", "name of that role's session")
	flags.StringVarP(&c.request.ExternalID, "external-id", "e", "", "external id that the role's trust policy asks for")
	flags.StringVar(&c.request.Region, "region", "", "region; default: that of the AWS configuration")
	flags.BoolVar(&c.request.ForwardSessionName, "forward-session-name", false, "give the role's session the name of the present one")
	flags.BoolVar(&c.tokenOnly, "token-only", false, "print the token alone")
	flags.BoolVar(&c.cache, "cache", false, "keep tokens until they end")
	root.AddCommand(token)
	return root
}
