// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iampolicy"
)

// The services whose principals must be let into roles.
const (
	principalEKS = "eks.amazonaws.com"
	principalEC2 = "ec2.amazonaws.com"
)

const clusterPolicy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"

// role finds a role by its ARN; nil if there is none.
func (a *api) role(ctx context.Context, text string) (*v1alpha1.IAMRole, error) {
	var all v1alpha1.IAMRoleList
	if err := a.Management.List(ctx, &all); err != nil {
		return nil, away(fmt.Errorf("listing roles: %w", err))
	}
	for i := range all.Items {
		if all.Items[i].Spec.ARN == text {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// checkClusterRole refuses what EKS refuses, in its words: Terraform sends a create again that is refused with them, since roles and policies
// reach all of AWS some time after they were made.
func (a *api) checkClusterRole(ctx context.Context, text string) error {
	found, err := a.role(ctx, text)
	switch {
	case err != nil:
		return err
	case found == nil:
		return awsfault.Errorf(invalidParameter, "The role %.300s does not exist: Error in role params", text)
	case !a.trusts(found, principalEKS):
		return awsfault.Errorf(invalidParameter, "Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct. "+
			"Role could not be assumed because the trusted entity is not correct: its trust policy must let %s assume it", text, principalEKS)
	case !slices.Contains(found.Spec.AttachedPolicies, clusterPolicy):
		return awsfault.Errorf(invalidParameter, "The provided role doesn't have the Amazon EKS Managed Policies associated with it. "+
			"Please ensure the following policy is attached: %s", clusterPolicy)
	}
	return nil
}

// passes is what IAM is asked about a role that a request gives to a service, for the use of a resource: nobody gets the rights of a role that they may
// not pass, by having machines or pods use it. Nothing is asked about a text that is not the ARN of a role, which is refused later.
func (a *api) passes(ctx context.Context, text, to, resource string) ([]awsfront.Target, error) {
	if !isRoleARN(text) {
		return nil, nil
	}
	conditions := map[string][]string{"iam:PassedToService": {to}}
	if resource != "" {
		conditions["iam:AssociatedResourceArn"] = []string{resource}
	}
	found, err := a.role(ctx, text)
	if err != nil {
		return nil, err
	}
	if found != nil {
		for _, tag := range found.Spec.Tags {
			conditions["aws:ResourceTag/"+tag.Key], conditions["iam:ResourceTag/"+tag.Key] = []string{tag.Value}, []string{tag.Value}
		}
	}
	return []awsfront.Target{{Action: "iam:PassRole", Resource: text, Conditions: conditions}}, nil
}

// trusts reports whether a role lets a service assume it.
func (a *api) trusts(role *v1alpha1.IAMRole, principal string) bool {
	return a.letsIn(role, principal, "sts:AssumeRole", nil)
}

// letsIn reports whether the trust policy of a role lets a service do what it takes to assume it, under conditions beside the global ones. A policy
// that cannot be read lets nobody.
func (a *api) letsIn(role *v1alpha1.IAMRole, principal, action string, conditions map[string][]string) bool {
	document, err := iampolicy.Parse(iampolicy.Trust, role.Spec.TrustPolicy)
	if err != nil {
		return false
	}
	caller := iampolicy.Caller{Service: principal}
	known := iampolicy.NewContext(caller, iampolicy.Facts{Now: time.Now(), Secure: true, Region: a.Region})
	maps.Copy(known, conditions)
	return document.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: role.Spec.ARN, Context: known}).Verdict == iampolicy.Allow
}

// isRoleARN reports whether a text is the ARN of a role of IAM.
func isRoleARN(text string) bool {
	_, rest, ok := strings.Cut(text, ":iam::")
	return ok && strings.Contains(rest, ":role/")
}
