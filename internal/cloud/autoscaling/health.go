// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type setHealthInput struct {
	InstanceID, HealthStatus string
	ShouldRespectGracePeriod *bool
}

func setInstanceHealth(a *api) awsfront.Spec[setHealthInput, struct{}] {
	return awsfront.Spec[setHealthInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *setHealthInput) ([]awsfront.Target, error) {
			return a.aboutMember(ctx, call, in.InstanceID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *setHealthInput) (*struct{}, error) {
			g, _, err := a.member(ctx, in.InstanceID)
			switch {
			case err != nil:
				return nil, err
			case g == nil:
				return nil, awsfault.Errorf(invalid, "Instance Id not found - No managed instance found for instance ID %.64s", in.InstanceID)
			case in.HealthStatus != "Healthy" && in.HealthStatus != "Unhealthy":
				return nil, awsfault.Errorf(invalid, "Valid instance health states are: [Healthy, Unhealthy]: it is %.40q", in.HealthStatus)
			}
			return nil, a.changeOwn(ctx, g.name, "its health is the node's: node repair looks after it", func(g *group) error {
				if err := g.inState(in.InstanceID, v1alpha1.LifecyclePending, v1alpha1.LifecyclePendingWait, v1alpha1.LifecycleInService); err != nil {
					return err
				}
				grace := time.Duration(g.own.Spec.HealthCheckGracePeriod) * time.Second
				if in.ShouldRespectGracePeriod == nil || *in.ShouldRespectGracePeriod {
					if call.Now.Sub(g.instance(in.InstanceID).Launched.Time) < grace && in.HealthStatus == "Unhealthy" {
						return nil
					}
				}
				if w := g.wish(in.InstanceID); in.HealthStatus == "Healthy" {
					if w != nil && w.Wish == v1alpha1.WishUnhealthy {
						g.own.Spec.Wishes = slices.DeleteFunc(g.own.Spec.Wishes, func(w v1alpha1.InstanceWish) bool { return w.InstanceID == in.InstanceID })
					}
					return nil
				}
				if g.leaving(in.InstanceID) != "" { // it is on its way out: somebody has asked for that, and may have made the group smaller
					return nil
				}
				g.ask(in.InstanceID, v1alpha1.WishUnhealthy, at(call.Now)+" an instance was taken out of service in response to a user health-check.")
				return nil
			})
		},
	}
}
