// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/platform/table"
)

// NewCommand returns "muster certs".
func NewCommand(o *terminal.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "certs",
		Aliases: []string{"certificates"},
		Short:   "Show the certificates of authorities, components and administrators, and what is left of each",
		Long: `Show the certificates that the service keeps: its authorities, and what they issued to components and administrators.
The service renews a certificate when a third of its life is left; every component reads it again without a restart.
Kubelets request the certificates of nodes: see "muster certs issued". The authority that signs them can be replaced: see "muster certs
rotate", which also replaces the keys of service account tokens. Each authority either signs or, as one of two during a rotation, is only trusted.`,
		Example: `  muster certs
  muster certs -o json | jq '.[] | {name, notAfter}'
  muster certs rotate kubelet-ca`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := o.OpenCluster()
			if err != nil {
				return err
			}
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			entries, err := authority.NewStore(cluster.PKI()).List()
			if err != nil {
				return err
			}
			account, err := authority.NewAccountStore(dir.PKI()).List()
			if err != nil {
				return err
			}
			entries = append(entries, account...)
			if format != terminal.FormatTable {
				return terminal.PrintData(o.Out, format, entries)
			}
			t := table.New(o.Out, "NAME", "AUTHORITY", "ROLE", "SUBJECT", "LEFT", "RENEWED IN", "NAMES")
			now := time.Now()
			for _, e := range entries {
				renewed := "-"
				if !e.Renewal.IsZero() {
					renewed = Left(e.Renewal, now)
				}
				t.Row(e.Name, terminal.OrDash(e.Authority), terminal.OrDash(e.Role), e.Subject, Left(e.NotAfter, now), renewed, terminal.OrDash(strings.Join(e.Names, ",")))
			}
			if err := t.Flush(); err != nil {
				return err
			}
			// Without a service nothing reports how far the nodes are.
			status, err := controlsocket.NewClient(dir).Status(cmd.Context())
			c, ok := status.In(cluster.Namespace())
			if err != nil || !ok {
				return nil //nolint:nilerr // the rest was shown
			}
			if c.Rotation != nil {
				fmt.Fprintf(o.Out, "\n%s\n", describeRotation(*c.Rotation))
			}
			if len(c.TokenKeys) == 0 {
				return nil
			}
			fmt.Fprintln(o.Out)
			return tokenKeyTable(o.Out, c.TokenKeys, now)
		},
	}
	terminal.AddOutputFlag(cmd, &format)
	cmd.AddCommand(newCertsIssuedCommand(o), newCertsRotateCommand(o))
	return cmd
}

// Left returns the time that is left until end, or since when it is over, rounded for people.
func Left(end, now time.Time) string {
	if !end.After(now) {
		return fmt.Sprintf("expired %s ago", duration.HumanDuration(now.Sub(end)))
	}
	return duration.HumanDuration(end.Sub(now))
}
