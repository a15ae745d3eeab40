// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"context"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// noPolicy is what ECR says of a repository that has no policy of a kind. No repository has a policy here: IAM's
// policies alone decide, and images do not expire.
type noPolicy struct{ code, kind string }

func noPolicies() map[string]noPolicy {
	access, lifecycle := noPolicy{"RepositoryPolicyNotFoundException", "Repository policy"}, noPolicy{"LifecyclePolicyNotFoundException", "Lifecycle policy"}
	return map[string]noPolicy{
		"GetRepositoryPolicy": access, "DeleteRepositoryPolicy": access,
		"GetLifecyclePolicy": lifecycle, "DeleteLifecyclePolicy": lifecycle,
	}
}

type policyInput struct{ RegistryID, RepositoryName string }

type policyOutput struct{}

func (a *api) policy(none noPolicy) awsfront.Spec[policyInput, policyOutput] {
	return awsfront.Spec[policyInput, policyOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *policyInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *policyInput) (*policyOutput, error) {
			if _, err := a.Store.Get(in.RepositoryName); err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			return nil, awsfault.Errorf(none.code, "%s does not exist for the repository with name '%s' in the registry with id '%s'", none.kind, in.RepositoryName, call.Caller.Account())
		},
	}
}
