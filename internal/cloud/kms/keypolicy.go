// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"encoding/json"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

const (
	// policyName is the one name that a key policy can have.
	policyName = "default"
	maxPolicy  = 32 << 10
)

// defaultPolicy is the policy of a key that is made without a policy.
func (a *api) defaultPolicy(call *awsfront.Call) string {
	return `{"Version":"2012-10-17","Id":"key-default-1","Statement":[{"Sid":"Enable IAM User Permissions","Effect":"Allow",` +
		`"Principal":{"AWS":"` + iam.RootARN(call.Caller.Account()).String() + `"},"Action":"kms:*","Resource":"*"}]}`
}

// checkPolicy refuses what is not a policy at all. Key policies are kept as they were written and not evaluated, so no
// more is asked of them.
func checkPolicy(text string) error {
	if text == "" || len(text) > maxPolicy {
		return awsfault.Errorf(malformedPolicy, "The key policy has %d bytes: it must have from 1 to %d", len(text), maxPolicy)
	}
	var document struct {
		Version   string
		Statement json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return awsfault.Errorf(malformedPolicy, "The key policy is not a JSON object: %v", err)
	}
	if v := document.Version; v != "" && v != iampolicy.Version2012 && v != iampolicy.Version2008 {
		return awsfault.Errorf(malformedPolicy, "The Version of the key policy is %.30q: it must be %s or %s", v, iampolicy.Version2012, iampolicy.Version2008)
	}
	type statement struct {
		Effect                                               string
		Principal, NotPrincipal, Action, NotAction, Resource json.RawMessage
	}
	var statements []statement
	if err := json.Unmarshal(document.Statement, &statements); err != nil {
		var one statement
		if err := json.Unmarshal(document.Statement, &one); err != nil {
			return awsfault.Errorf(malformedPolicy, "The Statement of the key policy must be a list of statements")
		}
		statements = []statement{one}
	}
	if len(statements) == 0 {
		return awsfault.Errorf(malformedPolicy, "The key policy must have a statement")
	}
	for i, s := range statements {
		switch {
		case s.Effect != "Allow" && s.Effect != "Deny":
			return awsfault.Errorf(malformedPolicy, "The Effect of statement %d is %.20q: it must be Allow or Deny", i+1, s.Effect)
		case s.Principal == nil && s.NotPrincipal == nil:
			return awsfault.Errorf(malformedPolicy, "Statement %d has no Principal, which a key policy must have", i+1)
		case s.Action == nil && s.NotAction == nil:
			return awsfault.Errorf(malformedPolicy, "Statement %d has no Action", i+1)
		}
	}
	return nil
}

func checkPolicyName(name string) error {
	if name != "" && name != policyName {
		return awsfault.Errorf(notFound, "No such policy exists: a key policy is called %s, not %.128q", policyName, name)
	}
	return nil
}

type getPolicyInput struct{ KeyID, PolicyName string }

type getPolicyOutput struct{ Policy, PolicyName string }

func (a *api) getKeyPolicy() awsfront.Spec[getPolicyInput, getPolicyOutput] {
	return awsfront.Spec[getPolicyInput, getPolicyOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *getPolicyInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *getPolicyInput) (*getPolicyOutput, error) {
			found, err := a.must(ctx, call, in.KeyID, false)
			if err != nil {
				return nil, err
			}
			if err := checkPolicyName(in.PolicyName); err != nil {
				return nil, err
			}
			return &getPolicyOutput{found.Data.Policy, policyName}, nil
		},
	}
}

type putPolicyInput struct {
	KeyID, PolicyName, Policy      string
	BypassPolicyLockoutSafetyCheck *bool
}

func (a *api) putKeyPolicy() awsfront.Spec[putPolicyInput, struct{}] {
	return awsfront.Spec[putPolicyInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *putPolicyInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{}
			bypass(conditions, in.BypassPolicyLockoutSafetyCheck)
			return a.aboutKey(ctx, call, in.KeyID, conditions)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *putPolicyInput) (*struct{}, error) {
			if err := checkPolicyName(in.PolicyName); err != nil {
				return nil, err
			}
			if err := checkPolicy(in.Policy); err != nil {
				return nil, err
			}
			return nil, a.change(ctx, call, in.KeyID, func(*awsrecord.Record[key]) error { return nil },
				func(r *awsrecord.Record[key]) error { r.Data.Policy = in.Policy; return nil })
		},
	}
}
