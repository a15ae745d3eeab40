// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/invite"
)

func newDeleteHostCommand(o *options) *cobra.Command {
	var way access
	cmd := deleteHost(o, way.connect)
	way.addFlags(cmd.Flags())
	return cmd
}

func deleteHost(o *options, cluster func(*options) (*plane, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "host NODE...",
		Aliases: []string{"hosts"},
		Short:   "Forget hosts that muster token create --address registered",
		Long: `Forget hosts that muster token create --node-name --address registered: the certificate controller renews nothing for them any more.
Their Nodes and the certificates they have stay; muster leave on the host, or kubectl delete node, ends those.`,
		Example: `  muster delete host worker-1`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			p, err := cluster(o)
			if err != nil {
				return err
			}
			var missing error
			for _, name := range names {
				var found bool
				err := p.within(cmd.Context(), func(ctx context.Context) (err error) { found, err = invite.Forget(ctx, p, name); return err })
				switch {
				case err != nil:
					return errors.Join(missing, err)
				case !found:
					missing = errors.Join(missing, fmt.Errorf("no host %q is registered; muster token create --node-name %s --address … registers it", name, name))
				default:
					if _, err := fmt.Fprintf(o.out, "host %q forgotten\n", name); err != nil {
						return err
					}
				}
			}
			return missing
		},
	}
}
