// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
)

// complete offers kinds, and then names.
func (g *getCommand) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		k, typed, err := kindAndNames(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kinds.NamesOf(cmd.Context(), g.Options, g.planes, k, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return strings.Split(kindNames(), ", "), cobra.ShellCompDirectiveNoFileComp
}
