// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
)

type describeUpdateInput struct {
	updateTarget

	UpdateID string
}

func (a *api) describeUpdate() awsfront.Spec[describeUpdateInput, updateOutput] {
	return awsfront.Spec[describeUpdateInput, updateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeUpdateInput) ([]awsfront.Target, error) {
			return a.aboutUpdates(ctx, call, in.updateTarget)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *describeUpdateInput) (*updateOutput, error) {
			found, err := a.findUpdate(ctx, in.updateTarget, in.UpdateID)
			if err != nil {
				return nil, err
			}
			return &updateOutput{showUpdate(found)}, nil
		},
	}
}

type listUpdatesInput struct {
	updateTarget

	MaxResults *int32
	NextToken  string
}

type listUpdatesOutput struct {
	UpdateIDs []string
	NextToken string
}

func (a *api) listUpdates() awsfront.Spec[listUpdatesInput, listUpdatesOutput] {
	return awsfront.Spec[listUpdatesInput, listUpdatesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listUpdatesInput) ([]awsfront.Target, error) {
			return a.aboutUpdates(ctx, call, in.updateTarget)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listUpdatesInput) (*listUpdatesOutput, error) {
			of, isOf, err := a.targetOf(ctx, in.updateTarget)
			if err != nil {
				return nil, err
			}
			all, err := a.listUpdatesOf(ctx, of, isOf)
			if err != nil {
				return nil, err
			}
			newest := func(u v1alpha1.Update) string { return nexttoken.NewestFirst(updateTime(u), u.Name) }
			cut, next, err := page(a, call, in.updateTarget, all, newest, in.NextToken, in.MaxResults)
			if err != nil {
				return nil, err
			}
			out := &listUpdatesOutput{UpdateIDs: make([]string, 0, len(cut)), NextToken: next}
			for i := range cut {
				out.UpdateIDs = append(out.UpdateIDs, cut[i].Name)
			}
			return out, nil
		},
	}
}
