// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/identityservice"
)

// bootstrapOf is how machines prove themselves, as the flags say.
func (c *createCommand) bootstrapOf() (v1alpha1.Bootstrap, error) {
	simulated := c.provider == string(v1alpha1.ProviderSimulated)
	switch {
	case c.bootstrap != "" && c.bootstrap != "role" && c.bootstrap != "token":
		return "", fmt.Errorf("--bootstrap %q is not known; there are: role, token", c.bootstrap)
	case simulated && c.bootstrap == "role":
		return "", errors.New("--bootstrap role: simulated machines have no instance metadata to get a role's credentials from; leave it out")
	case c.nodeRole != "" && (simulated || c.bootstrap == "token"):
		return "", errors.New("--node-role: machines that join by a bootstrap token have no role; leave it out, or take --bootstrap role")
	case c.bootstrap == "role":
		return v1alpha1.BootstrapRole, nil
	case c.bootstrap == "token":
		return v1alpha1.BootstrapToken, nil
	}
	return "", nil
}

// bootstrapText is how machines of a group prove themselves.
func bootstrapText(s *v1alpha1.NodeGroupSpec) string {
	if s.Role() != "" {
		return string(v1alpha1.BootstrapRole)
	}
	return string(v1alpha1.BootstrapToken)
}

// checkRole refuses a role that is not there: the group's machines would wait for it, and nobody who does not wait for them would hear why.
// The one that the service makes by itself may be about to be.
func (p *plane) checkRole(ctx context.Context, role string) error {
	if role == "" || role == v1alpha1.DefaultNodeRole {
		return nil
	}
	var roles v1alpha1.IAMRoleList
	if err := p.list(ctx, &roles); err != nil {
		return err
	}
	var names []string
	for i := range roles.Items {
		spec := &roles.Items[i].Spec
		if spec.Account != identityservice.DefaultAccount {
			continue
		}
		if role == spec.Name || role == spec.ARN {
			return nil
		}
		names = append(names, spec.Name, spec.ARN)
	}
	return fmt.Errorf("--node-role: there is no IAM role %q%s; aws iam create-role makes one, aws iam list-roles shows those there are "+
		"(`eval \"$(muster iam env)\"` lets aws speak to muster)", role, didYouMean(role, names))
}

// completeRoles names the roles of the account that machines are in. Completion is silent, whatever is wrong.
func (c *createCommand) completeRoles(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	p, err := c.planes.management(c.options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
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
