// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/certs"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/objects"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/platform/nsenter"
	"muster.dev/muster/internal/platform/table"
	"muster.dev/muster/internal/platform/termsafe"
)

// onMachine runs the same command on a local machine of the cluster.
type onMachine func(ctx context.Context, machine string, args []string) error

func newOnMachine(o *terminal.Options) onMachine {
	e := &objects.ExecCommand{Options: o, Planes: kinds.NewDialers(), EUID: os.Geteuid(), Run: nsenter.Run}
	return func(ctx context.Context, machine string, args []string) error {
		return e.Exec(ctx, machine, append([]string{"muster", "node"}, args...), false)
	}
}

// nodeCertsCommand holds the flags of "muster node certs".
type nodeCertsCommand struct {
	*terminal.Options
	enter             onMachine
	now               func() time.Time
	dir, log, notices string
	output            string
}

func newNodeCertsCommand(o *terminal.Options) *cobra.Command {
	return (&nodeCertsCommand{Options: o, enter: newOnMachine(o), now: time.Now, notices: agent.PathNotices}).command()
}

func (c *nodeCertsCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs [MACHINE]",
		Short: "Show the kubelet's certificates on this node, or on a local machine, and what is wrong with them",
		Long: `Show the certificates that the kubelet of this node keeps: the one that it shows to the API server, and the one that it serves.
With the name of a local machine, those of that machine. A node that joined by its machine's role has only the one that it serves.

NEXT ROTATION is the time in which the kubelet will ask for the next one: it draws a moment between 70 and 90 % of a
certificate's life, and tells it only in its log. If the log is there, that moment is shown.

The exit code is 1 if anything is wrong: a certificate is missing, has expired or should have been replaced, does not belong to
its key, or can be read by others than root.`,
		Example: `  muster node certs
  muster node certs -o wide
  muster node certs 172.31.0.5 -o json | jq '.[].notAfter'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(c.Options, kinds.NewDialers(), kinds.Machines(), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := terminal.CheckOutput(c.output, terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			if len(args) == 1 {
				return c.enter(cmd.Context(), args[0], []string{"certs", "--cert-dir", c.dir, "--kubelet-log", c.log, "-o", c.output})
			}
			return c.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&c.dir, "cert-dir", nodecerts.DefaultDir, "directory of the kubelet's certificates")
	cmd.Flags().StringVar(&c.log, "kubelet-log", "/var/log/kubelet.log", "the kubelet's log, which tells when it rotates")
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

func (c *nodeCertsCommand) run(ctx context.Context) error {
	kubeconfig, _ := nodecerts.FindKubeconfig() // a machine that has none has not joined, which its reports tell
	reports := nodecerts.ReadNode(kubeconfig, c.dir, c.now())
	if nodecerts.ByRole(kubeconfig) {
		fmt.Fprintln(c.Err, clientByRole(ctx, machineMetadata()))
	}
	if err := nodecerts.Drawn(reports, c.log); err != nil {
		fmt.Fprintln(c.Err, "Warning:", err)
	}
	if err := c.print(reports); err != nil {
		return err
	}
	told, err := agent.ReadNotices(c.notices)
	if err != nil {
		fmt.Fprintln(c.Err, "Warning:", err)
	}
	for _, n := range told {
		fmt.Fprintf(c.Err, "Since %s: %s\n", instant(n.Since), termsafe.Line(nodecerts.Problem{Text: n.Text, Fix: n.Fix}.String()))
	}
	var wrong []error
	for _, r := range reports {
		for _, p := range r.Problems {
			wrong = append(wrong, fmt.Errorf("%s certificate: %s", r.Kind, p))
		}
	}
	return errors.Join(wrong...)
}

func (c *nodeCertsCommand) print(reports []nodecerts.Report) error {
	if c.output == terminal.FormatJSON || c.output == terminal.FormatYAML {
		return terminal.PrintData(c.Out, c.output, reports)
	}
	wide := c.output == terminal.FormatWide
	headings := []string{"CERTIFICATE", "SUBJECT", "NAMES", "ISSUER", "LEFT", "NEXT ROTATION", "STATE"}
	if wide {
		headings = append(headings, "SERIAL", "NOT BEFORE", "NOT AFTER", "MODE", "FILE")
	}
	t := table.New(c.Out, headings...)
	for _, r := range reports {
		cells := []string{string(r.Kind), "-", "-", "-", "-", "-", nodeState(r)}
		if r.CommonName != "" {
			cells = []string{
				string(r.Kind), nodeSubject(r), terminal.OrDash(strings.Join(append(append([]string{}, r.DNSNames...), r.Addresses...), ",")),
				r.Issuer, certs.Left(r.NotAfter, c.now()), nextRotation(r, c.now()), nodeState(r),
			}
		}
		if wide {
			cells = append(cells, terminal.OrDash(r.Serial), instant(r.NotBefore), instant(r.NotAfter), terminal.OrDash(r.Mode), terminal.OrDash(r.Target))
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// nodeSubject is written as openssl does it.
func nodeSubject(r nodecerts.Report) string {
	return "O=" + strings.Join(r.Organization, "+O=") + ", CN=" + r.CommonName
}

func nextRotation(r nodecerts.Report, now time.Time) string {
	at := r.Rotation
	switch {
	case !at.Drawn.IsZero() && at.Drawn.After(now):
		return "in " + certs.Left(at.Drawn, now)
	case !now.Before(at.Until):
		return "overdue"
	case !now.Before(at.From):
		return "any moment, within " + certs.Left(at.Until, now)
	default:
		return "in " + certs.Left(at.From, now) + " to " + certs.Left(at.Until, now)
	}
}

func nodeState(r nodecerts.Report) string {
	if len(r.Problems) == 0 {
		return "OK"
	}
	troubles := make([]string, 0, len(r.Problems))
	for _, p := range r.Problems {
		troubles = append(troubles, string(p.Trouble))
	}
	return strings.Join(troubles, ",")
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
