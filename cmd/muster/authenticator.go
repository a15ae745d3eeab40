// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/authenticator"
	"muster.dev/muster/internal/authfile"
)

// authenticatorFlags are what the command line says.
type authenticatorFlags struct {
	config, kubeconfig, logFormat string
	check, verbose                bool
}

func newAuthenticatorCommand() *cobra.Command {
	var f authenticatorFlags
	cmd := &cobra.Command{
		Use:   "authenticator --config FILE",
		Short: "Tell API servers who the makers of AWS IAM tokens are, in any cluster",
		Long: `Answer TokenReviews of API servers about tokens of AWS IAM, as made by aws eks get-token, aws-iam-authenticator and
muster token get. It works with any cluster; muster's own clusters each run one.

A token is a presigned request for the name of its maker. Its form is checked first, then STS is asked, or the signature is
checked here with a key that muster's identity service derives. Who made it becomes a user by the first match among access
entries, IAMIdentityMapping objects, the ConfigMap kube-system/aws-auth and a mounted file. Each decision is one line in the log,
with the rule that refused and what to do. Everything is set up in one file; docs/authenticator.md has all there is to set.`,
		Example: `  # Look at a file without doing anything
  muster authenticator --config authenticator.yaml --check

  # Make certificates, and the kubeconfig for kube-apiserver's --authentication-token-webhook-config-file
  muster authenticator init

  # Outside of the cluster, or as a static pod
  muster authenticator --kubeconfig authenticator.kubeconfig --config authenticator.yaml

  # In a pod of the cluster, by its service account
  muster authenticator --config /etc/muster/authenticator.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "file that sets everything up (required)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: the cluster that this pod is in")
	flags.BoolVar(&f.check, "check", false, "only check the file")
	flags.StringVar(&f.logFormat, "log-format", "text", "format of the log: text or json")
	flags.BoolVar(&f.verbose, "verbose", false, "log more, such as each retry")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
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

func (f authenticatorFlags) run(cmd *cobra.Command) error {
	if f.config == "" {
		return usageError{errors.New("name the file with --config")}
	}
	raw, err := os.ReadFile(f.config)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	config, err := authfile.Read(raw)
	if err != nil {
		return fmt.Errorf("the file %s is wrong:\n%w", f.config, err)
	}
	if f.check {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is right: cluster %s, backend %s, mode %s\n", f.config, config.ClusterID, config.Backend, config.Mapping.Mode)
		return err
	}
	logger, err := newPartLogger(cmd.ErrOrStderr(), f.logFormat, f.verbose)
	if err != nil {
		return err
	}
	klog.SetSlogLogger(logger) // client-go logs through klog
	return runAuthenticator(cmd.Context(), authenticatorConfig{kubeconfig: f.kubeconfig, file: config, logger: logger})
}

func newPartLogger(out io.Writer, format string, verbose bool) (*slog.Logger, error) {
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
