// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/internal/authority"
	"muster.dev/muster/internal/cluster"
	"muster.dev/muster/internal/table"
)

func newCertsCommand(o *options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "certs",
		Aliases: []string{"certificates"},
		Short:   "Show the certificates of authorities, components and administrators, and what is left of each",
		Long: `Show the certificates that the service keeps: its authorities, and what they issued to components and administrators.
The service renews a certificate when a third of its life is left; every component reads it again without a restart.
Certificates of nodes are asked for by their kubelets: see "muster certs issued". The authority that signs them can be replaced:
see "muster certs rotate". Each authority signs, or is only trusted, as one of two is during a rotation.`,
		Example: `  muster certs
  muster certs -o json | jq '.[] | {name, notAfter}'
  muster certs rotate kubelet-ca`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.openExisting()
			if err != nil {
				return err
			}
			entries, err := authority.NewStore(dir.PKI()).List()
			if err != nil {
				return err
			}
			if format != formatTable {
				return printData(o.out, format, entries)
			}
			t := table.New(o.out, "NAME", "AUTHORITY", "ROLE", "SUBJECT", "LEFT", "RENEWED IN", "NAMES")
			now := time.Now()
			for _, e := range entries {
				renewed := "-"
				if !e.Renewal.IsZero() {
					renewed = left(e.Renewal, now)
				}
				t.Row(e.Name, orDash(e.Authority), orDash(e.Role), e.Subject, left(e.NotAfter, now), renewed, orDash(strings.Join(e.Names, ",")))
			}
			if err := t.Flush(); err != nil {
				return err
			}
			// Without a service there is nobody who says how far the nodes are.
			if status, err := cluster.NewClient(dir).Status(cmd.Context()); err == nil && status.Rotation != nil {
				fmt.Fprintf(o.out, "\n%s\n", describeRotation(*status.Rotation))
			}
			return nil
		},
	}
	addOutputFlag(cmd, &format)
	cmd.AddCommand(newCertsIssuedCommand(o), newCertsRotateCommand(o))
	return cmd
}

func left(end, now time.Time) string {
	if !end.After(now) {
		return fmt.Sprintf("expired %s ago", duration.HumanDuration(now.Sub(end)))
	}
	return duration.HumanDuration(end.Sub(now))
}
