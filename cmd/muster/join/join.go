// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/node/hostjoin"
)

type joinCommand struct {
	*terminal.Options
	endpoint        string
	token           string
	tokenFile       string
	hashes          []string
	skipCA          bool
	file            string
	nodeName        string
	nodeIP          string
	sources         []string
	lenient         bool
	ignorePreflight []string
	skipKubeProxy   bool
	dryRun          bool
	timeout         time.Duration
	format          string
}

// NewCommand returns "muster join".
func NewCommand(o *terminal.Options) *cobra.Command {
	j := &joinCommand{Options: o}
	cmd := &cobra.Command{
		Use:   "join [HOST:PORT]",
		Short: "Make this host, which systemd runs, a node of a cluster",
		Long: `Make this host, which systemd runs, a node of the cluster whose API server is at HOST:PORT, and wait until it is Ready.

The command checks whether the host can be a node, finds the cluster by a token and the hash of its authority, installs and starts what
a node needs, and prints each step of the TLS bootstrap as it happens. Run again after an interruption, or when something is missing, it
goes on where it was. muster leave undoes all of it.

A token on a command line can be read by every user of the host for as long as the command runs (/proc/PID/cmdline), and stays in
the shell's history. --token-file, or --token - for standard input, avoids both.

Flags have kubeadm's names, too: --discovery-token, --discovery-token-ca-cert-hash, --discovery-token-unsafe-skip-ca-verification,
--discovery-file. See docs/join.md.`,
		Example: `  # As muster token create --print-join-command prints it
  muster join 172.31.0.4:443 --token abcdef.0123456789abcdef --ca-cert-hash sha256:…

  # The token from a file; labels and more from a NodeConfig
  muster join 172.31.0.4:443 --token-file token --ca-cert-hash sha256:… --config-source node.yaml

  # What it would do
  muster join 172.31.0.4:443 --token-file token --ca-cert-hash sha256:… --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				j.endpoint = args[0]
			}
			return j.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.token, "token", "", "bootstrap token; - reads it from standard input")
	flags.StringVar(&j.tokenFile, "token-file", "", "file that holds the bootstrap token")
	flags.StringArrayVar(&j.hashes, "ca-cert-hash", nil, "hash of the public key of the cluster's authority, sha256:…; repeatable, any of them is enough")
	flags.BoolVar(&j.skipCA, "discovery-token-unsafe-skip-ca-verification", false, "believe any cluster that knows the token: everyone else who knows it can pass for the cluster")
	flags.StringVar(&j.file, "discovery-file", "", "kubeconfig, a file or an https URL, with the address and the authority of the cluster, instead of a hash")
	flags.StringVar(&j.nodeName, "node-name", "", "name of the node (default: that of the host)")
	flags.StringVar(&j.nodeIP, "node-ip", "", "address of the node (default: the one that leads to the API server)")
	flags.StringArrayVarP(&j.sources, "config-source", "c", nil, "NodeConfig with more settings: imds://user-data, file://PATH or PATH; repeatable. Flags win")
	flags.BoolVar(&j.lenient, "lenient", false, "only warn about fields of a NodeConfig that are not known")
	flags.StringSliceVar(&j.ignorePreflight, "ignore-preflight", nil, "name of a check that may fail, or all; repeatable")
	flags.BoolVar(&j.skipKubeProxy, "skip-kube-proxy", false, "leave kube-proxy to the cluster, for one that runs it as a DaemonSet (as kubeadm's do) or has something else in its place")
	flags.BoolVar(&j.dryRun, "dry-run", false, "print what would be written and started, and change nothing")
	flags.DurationVar(&j.timeout, "timeout", 5*time.Minute, "how long to wait until the node is Ready")
	terminal.AddFormatFlag(cmd, &j.format, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(kubeadmName(name))
	})
	return cmd
}

// kubeadmName is ours for a flag of kubeadm's.
func kubeadmName(name string) string {
	switch name {
	case "discovery-token", "tls-bootstrap-token":
		return "token"
	case "discovery-token-ca-cert-hash":
		return "ca-cert-hash"
	case "ignore-preflight-errors":
		return "ignore-preflight"
	}
	return name
}

func (j *joinCommand) run(ctx context.Context) error {
	if err := terminal.CheckOutput(j.format, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	if err := CheckTimeout(j.timeout); err != nil {
		return err
	}
	request, err := j.request(ctx)
	if err != nil {
		return err
	}
	h, err := NewHost(j.Options)
	if err != nil {
		return err
	}
	if j.dryRun {
		plan, err := h.Plan(ctx, request)
		if err != nil {
			return err
		}
		return j.printPlan(plan)
	}
	report, err := h.Join(ctx, request)
	if err != nil {
		return because(ctx, err, explain.Node)
	}
	if j.format != terminal.FormatTable {
		return terminal.PrintData(j.Out, j.format, report)
	}
	fmt.Fprintf(j.Err, "\nNode %s has joined %s in %.1f s, of which muster itself took %.2f s.\n", report.NodeName, report.Endpoint, report.Seconds, report.OwnSeconds)
	return nil
}

// because adds to the error of a node that is not Ready what the host itself knows of the cause.
func because(ctx context.Context, err error, look func(context.Context) (diagnosis.Report, error)) error {
	if !errors.Is(err, hostjoin.ErrNotReady) || ctx.Err() != nil {
		return err
	}
	report, unexplained := look(ctx)
	if unexplained != nil {
		return err
	}
	for _, f := range report.Causes {
		err = fmt.Errorf("%w\n  %s: %s. %s\n  fix: %s", err, f.Cause, f.Title, f.Sentence, f.Fix)
	}
	return fmt.Errorf("%w\n  more: muster node explain", err)
}

// CheckTimeout refuses a --timeout that is over before anything is tried, which would look as if nobody answered.
func CheckTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return terminal.UsageError{Err: fmt.Errorf("invalid --timeout %s: must be more than 0, such as 5m", timeout)}
	}
	return nil
}
