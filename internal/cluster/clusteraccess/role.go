// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// role finds a role by its name or ARN. Machines can have roles of the default account only.
func (a Access) role(ctx context.Context, name string) (*v1alpha1.IAMRole, error) {
	path := ""
	if strings.HasPrefix(name, "arn:") {
		parsed, err := arn.Parse(name)
		if err != nil {
			return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: err.Error()}
		}
		var ok bool
		if path, name, ok = parsed.Role(); !ok || parsed.Account != identityservice.DefaultAccount {
			return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: fmt.Sprintf("%s is not a role of account %s, the account of machines", parsed, identityservice.DefaultAccount)}
		}
	}
	var roles v1alpha1.IAMRoleList
	if err := a.management.List(ctx, &roles); err != nil {
		return nil, fmt.Errorf("looking for the role %s: %w", name, err)
	}
	for i := range roles.Items {
		spec := &roles.Items[i].Spec
		if spec.Account == identityservice.DefaultAccount && spec.Name == name && (path == "" || path == spec.Path) {
			return &roles.Items[i], nil
		}
	}
	if err := a.management.Get(ctx, client.ObjectKey{Name: identityservice.DefaultAccount}, &v1alpha1.IAMAccount{}); apierrors.IsNotFound(err) {
		return nil, nodegroup.ErrNotYet // it makes its first role in a moment
	}
	return nil, &nodegroup.RoleProblem{Reason: reasonNoRole, Message: fmt.Sprintf("there is no IAM role %s: make it with aws iam create-role, or name another role in spec.nodeRole", name)}
}

// Reasons in the words of EKS.
const (
	reasonNoRole    = "IamNodeRoleNotFound"
	reasonNoProfile = "IamInstanceProfileNotFound"
)

// profile finds the instance profile that carries a role: the one of its name, or else the first by name.
func (a Access) profile(ctx context.Context, role *v1alpha1.IAMRole) (string, error) {
	var profiles v1alpha1.IAMInstanceProfileList
	if err := a.management.List(ctx, &profiles); err != nil {
		return "", fmt.Errorf("looking for the instance profile of role %s: %w", role.Spec.Name, err)
	}
	found := ""
	for _, profile := range profiles.Items {
		name := profile.Spec.Name
		if profile.Spec.Account == role.Spec.Account && profile.Spec.RoleID == role.Spec.RoleID && (found == "" || name == role.Spec.Name || found != role.Spec.Name && name < found) {
			found = name
		}
	}
	if found == "" {
		return "", &nodegroup.RoleProblem{Reason: reasonNoProfile, Message: fmt.Sprintf("no instance profile carries the role %[1]s: make one (aws iam create-instance-profile --instance-profile-name %[1]s; "+
			"aws iam add-role-to-instance-profile --instance-profile-name %[1]s --role-name %[1]s)", role.Spec.Name)}
	}
	return found, nil
}
