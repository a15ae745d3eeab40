// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// NewDeleteHostCommand returns "muster delete host".
func NewDeleteHostCommand(o *terminal.Options) *cobra.Command {
	var way kinds.Access
	cmd := deleteHost(o, way.Connect)
	way.AddFlags(cmd.Flags())
	return cmd
}

func deleteHost(o *terminal.Options, cluster func(*terminal.Options) (*kinds.Client, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "host NODE...",
		Aliases: []string{"hosts"},
		Short:   "Forget hosts that muster token create --address registered",
		Long: `Forget hosts that muster token create --node-name --address registered: the certificate controller renews nothing for them any more.
Their Nodes and the certificates they have stay; muster leave on the host, or kubectl delete node, ends those.`,
		Example:           `  muster delete host worker-1`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeHosts(o, cluster),
		RunE: func(cmd *cobra.Command, names []string) error {
			p, err := cluster(o)
			if err != nil {
				return err
			}
			var missing error
			for _, name := range names {
				var found bool
				err := p.Within(cmd.Context(), func(ctx context.Context) (err error) { found, err = bootstraptoken.Forget(ctx, p, name); return err })
				switch {
				case err != nil:
					return errors.Join(missing, err)
				case !found:
					missing = errors.Join(missing, fmt.Errorf("no host %q is registered; muster token create --node-name %s --address … registers it", name, name))
				default:
					if _, err := fmt.Fprintf(o.Out, "host %q forgotten\n", name); err != nil {
						return err
					}
				}
			}
			return missing
		},
	}
}

// completeHosts offers the hosts that are registered.
func completeHosts(o *terminal.Options, cluster func(*terminal.Options) (*kinds.Client, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), kinds.CompletionTime)
		defer cancel()
		p, err := cluster(o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var hosts corev1.ConfigMap
		if err := p.Get(ctx, client.ObjectKey{Namespace: policyconfig.HostsNamespace, Name: policyconfig.HostsConfigMap}, &hosts); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		machines, _ := facts.ReadList([]byte(hosts.Data["machines.yaml"])) // silent, whatever is wrong
		var names []string
		for _, m := range machines {
			if m.ID == facts.HostID(m.NodeName) && !slices.Contains(args, m.NodeName) { // others were listed by hand, and are not forgotten so
				names = append(names, m.NodeName)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
