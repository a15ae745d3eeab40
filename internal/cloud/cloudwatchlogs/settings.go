// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
)

// retentions are the days for which a log group can keep events.
func retentions() []int32 {
	return []int32{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}
}

type retentionInput struct {
	LogGroupName    string
	RetentionInDays int32
}

func (a *api) putRetentionPolicy() awsfront.Spec[retentionInput, struct{}] {
	return awsfront.Spec[retentionInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *retentionInput) ([]awsfront.Target, error) {
			return a.named(ctx, call, in.LogGroupName)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *retentionInput) (*struct{}, error) {
			if !slices.Contains(retentions(), in.RetentionInDays) {
				return nil, awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%d' at 'retentionInDays' failed to satisfy constraint: Member must satisfy enum value set: %v", in.RetentionInDays, retentions())
			}
			return nil, a.change(ctx, in.LogGroupName, func(r *awsrecord.Record[group]) error {
				if r.Data.Class == classDelivery {
					return awsfault.Errorf(invalidParameter, "The retention of log groups of the class %s cannot be changed", classDelivery)
				}
				r.Data.Retention = in.RetentionInDays
				return nil
			})
		},
	}
}

func (a *api) deleteRetentionPolicy() awsfront.Spec[nameInput, struct{}] {
	return awsfront.Spec[nameInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *nameInput) ([]awsfront.Target, error) {
			return a.named(ctx, call, in.LogGroupName)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *nameInput) (*struct{}, error) {
			return nil, a.set(ctx, in.LogGroupName, func(g *group) { g.Retention = 0 })
		},
	}
}

type protectionInput struct {
	LogGroupIdentifier        string
	DeletionProtectionEnabled bool
}

func (a *api) putDeletionProtection() awsfront.Spec[protectionInput, struct{}] {
	return awsfront.Spec[protectionInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *protectionInput) ([]awsfront.Target, error) {
			name, err := a.identified(call, in.LogGroupIdentifier)
			if err != nil {
				return nil, err
			}
			return a.named(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *protectionInput) (*struct{}, error) {
			name, err := a.identified(call, in.LogGroupIdentifier)
			if err != nil {
				return nil, err
			}
			return nil, a.set(ctx, name, func(g *group) { g.Protected = in.DeletionProtectionEnabled })
		},
	}
}

// associateInput names a log group by its name or by its ARN.
type associateInput struct{ LogGroupName, ResourceIdentifier, KMSKeyID string }

type disassociateInput struct{ LogGroupName, ResourceIdentifier string }

func (a *api) either(call *awsfront.Call, name, identifier string) (string, error) {
	if (name == "") == (identifier == "") {
		return "", awsfault.Errorf(invalidParameter, "Exactly one of logGroupName and resourceIdentifier must be there")
	}
	if name != "" {
		return name, checkName(name)
	}
	return a.nameOf(call, identifier)
}

func (a *api) associateKey() awsfront.Spec[associateInput, struct{}] {
	return awsfront.Spec[associateInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateInput) ([]awsfront.Target, error) {
			name, err := a.either(call, in.LogGroupName, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			return a.named(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *associateInput) (*struct{}, error) {
			name, err := a.either(call, in.LogGroupName, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			if err := a.checkKey(ctx, call, in.KMSKeyID); err != nil {
				return nil, err
			}
			return nil, a.set(ctx, name, func(g *group) { g.Key = in.KMSKeyID })
		},
	}
}

func (a *api) disassociateKey() awsfront.Spec[disassociateInput, struct{}] {
	return awsfront.Spec[disassociateInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *disassociateInput) ([]awsfront.Target, error) {
			name, err := a.either(call, in.LogGroupName, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			return a.named(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *disassociateInput) (*struct{}, error) {
			name, err := a.either(call, in.LogGroupName, in.ResourceIdentifier)
			if err != nil {
				return nil, err
			}
			return nil, a.set(ctx, name, func(g *group) { g.Key = "" })
		},
	}
}
