// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
)

// bootstrapOf is how machines prove themselves, as the flags say.
func (c *createCommand) bootstrapOf() (v1alpha1.Bootstrap, error) {
	provider := v1alpha1.Provider(c.provider)
	alone := slices.Contains(v1alpha1.Providers(), provider) && !provider.Can(v1alpha1.JoinNetwork) // the API refuses unknown providers
	switch {
	case c.bootstrap != "" && c.bootstrap != "role" && c.bootstrap != "token":
		return "", fmt.Errorf("--bootstrap %q is not known; there are: role, token", c.bootstrap)
	case alone && c.bootstrap == "role":
		return "", fmt.Errorf("--bootstrap role: %s machines have no instance metadata to get a role's credentials from; leave it out", provider)
	case c.nodeRole != "" && (alone || c.bootstrap == "token"):
		return "", errors.New("--node-role: machines that join by a bootstrap token have no role; leave it out, or take --bootstrap role")
	case c.bootstrap == "role":
		return v1alpha1.BootstrapRole, nil
	case c.bootstrap == "token":
		return v1alpha1.BootstrapToken, nil
	}
	return "", nil
}

// completeRoles names the roles of the account that machines are in. Completion is silent, whatever is wrong.
func (c *createCommand) completeRoles(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), kinds.CompletionTime)
	defer cancel()
	var roles v1alpha1.IAMRoleList
	if err := p.List(ctx, &roles); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range roles.Items {
		if name := roles.Items[i].Spec.Name; strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
