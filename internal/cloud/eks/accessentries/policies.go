// SPDX-License-Identifier: Apache-2.0

package accessentries

import (
	"context"
	"slices"
	"time"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type scope struct {
	Type       string
	Namespaces []string
}

type associatedPolicy struct {
	PolicyARN                string
	AccessScope              scope
	AssociatedAt, ModifiedAt time.Time
}

type associateInput struct {
	namedEntry

	PolicyARN   string
	AccessScope scope
}

type associateOutput struct {
	ClusterName, PrincipalARN string
	AssociatedAccessPolicy    associatedPolicy
}

// associated is the place of a policy among those of an entry, or -1.
func associated(e *accessv1alpha1.AccessEntry, policy string) int {
	return slices.IndexFunc(e.Spec.AccessPolicies, func(p accessv1alpha1.AccessPolicy) bool { return p.PolicyARN == policy })
}

func showPolicy(e *accessv1alpha1.AccessEntry, p accessv1alpha1.AccessPolicy) associatedPolicy {
	shown := associatedPolicy{p.PolicyARN, scope{string(p.Scope.Type), p.Scope.Namespaces}, e.CreationTimestamp.Time, eksresource.ChangedAt(e)}
	if shown.AccessScope.Namespaces == nil {
		shown.AccessScope.Namespaces = []string{}
	}
	return shown
}

func (a *API) associateAccessPolicy() awsfront.Spec[associateInput, associateOutput] {
	return awsfront.Spec[associateInput, associateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateInput) ([]awsfront.Target, error) {
			targets, err := a.aboutEntry(ctx, call, &in.namedEntry)
			if err == nil {
				set := targets[0].Conditions
				set["eks:policyArn"], set["eks:accessScope"] = []string{in.PolicyARN}, []string{in.AccessScope.Type}
				if len(in.AccessScope.Namespaces) > 0 {
					set["eks:namespaces"] = in.AccessScope.Namespaces
				}
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *associateInput) (*associateOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			e, found, err := a.entry(ctx, in.namedEntry)
			if err != nil {
				return nil, err
			}
			if err := a.config.Policy(in.PolicyARN); err != nil {
				return nil, eksfault.New(eksfault.InvalidParameter, in.ClusterName, "", "The policyArn parameter is not valid: %v", err)
			}
			policy := accessv1alpha1.AccessPolicy{PolicyARN: in.PolicyARN, Scope: accessv1alpha1.AccessScope{
				Type: accessv1alpha1.ScopeType(in.AccessScope.Type), Namespaces: in.AccessScope.Namespaces,
			}}
			if err := e.change(ctx, found, func(spec *accessv1alpha1.AccessEntrySpec) {
				if at := associated(found, in.PolicyARN); at >= 0 {
					spec.AccessPolicies[at] = policy
				} else {
					spec.AccessPolicies = append(spec.AccessPolicies, policy)
				}
			}); err != nil {
				return nil, err
			}
			return &associateOutput{in.ClusterName, in.PrincipalARN, showPolicy(found, policy)}, nil
		},
	}
}

type disassociateInput struct {
	namedEntry

	PolicyARN string
}

func (a *API) disassociateAccessPolicy() awsfront.Spec[disassociateInput, struct{}] {
	return awsfront.Spec[disassociateInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *disassociateInput) ([]awsfront.Target, error) {
			targets, err := a.aboutEntry(ctx, call, &in.namedEntry)
			if err == nil {
				targets[0].Conditions["eks:policyArn"] = []string{in.PolicyARN}
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *disassociateInput) (*struct{}, error) {
			defer a.store.Hold(in.ClusterName)()
			e, found, err := a.entry(ctx, in.namedEntry)
			if err != nil {
				return nil, err
			}
			if associated(found, in.PolicyARN) < 0 {
				return nil, eksfault.New(eksfault.NotFound, in.ClusterName, "", "The specified access policy %s is not associated with %s", in.PolicyARN, in.PrincipalARN)
			}
			return nil, e.change(ctx, found, func(spec *accessv1alpha1.AccessEntrySpec) {
				spec.AccessPolicies = slices.DeleteFunc(spec.AccessPolicies, func(p accessv1alpha1.AccessPolicy) bool { return p.PolicyARN == in.PolicyARN })
			})
		},
	}
}

type listAssociatedInput struct {
	namedEntry

	NextToken  string
	MaxResults *int32
}

type listAssociatedOutput struct {
	ClusterName, PrincipalARN, NextToken string
	AssociatedAccessPolicies             []associatedPolicy
}

func (a *API) listAssociatedAccessPolicies() awsfront.Spec[listAssociatedInput, listAssociatedOutput] {
	return awsfront.Spec[listAssociatedInput, listAssociatedOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listAssociatedInput) ([]awsfront.Target, error) {
			return a.aboutEntry(ctx, call, &in.namedEntry)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listAssociatedInput) (*listAssociatedOutput, error) {
			_, found, err := a.entry(ctx, in.namedEntry)
			if err != nil {
				return nil, err
			}
			var all []associatedPolicy
			for _, p := range found.Spec.AccessPolicies {
				all = append(all, showPolicy(found, p))
			}
			out := &listAssociatedOutput{ClusterName: in.ClusterName, PrincipalARN: in.PrincipalARN}
			out.AssociatedAccessPolicies, out.NextToken, err = awsresource.Page(a.store.Account, call, in.namedEntry, all, func(p associatedPolicy) string { return p.PolicyARN }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}

type listPoliciesInput struct {
	NextToken  string
	MaxResults *int32
}

type listPoliciesOutput struct {
	AccessPolicies []accessPolicy
	NextToken      string
}

type accessPolicy struct{ Name, ARN string }

func (a *API) listAccessPolicies() awsfront.Spec[listPoliciesInput, listPoliciesOutput] {
	return awsfront.Spec[listPoliciesInput, listPoliciesOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *listPoliciesInput) (*listPoliciesOutput, error) {
			if len(a.config.Policies) == 0 {
				return nil, awsfault.Errorf(eksfault.InvalidRequest, "There are no access policies here")
			}
			var all []accessPolicy
			for _, name := range a.config.Policies {
				all = append(all, accessPolicy{name, "arn:aws:eks::aws:cluster-access-policy/" + name})
			}
			out := &listPoliciesOutput{}
			var err error
			out.AccessPolicies, out.NextToken, err = awsresource.Page(a.store.Account, call, nil, all, func(p accessPolicy) string { return p.Name }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
