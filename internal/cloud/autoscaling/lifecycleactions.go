// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// actionInput says which lifecycle action a request is about: by its token, or by its instance.
type actionInput struct{ AutoScalingGroupName, LifecycleHookName, InstanceID, LifecycleActionToken string }

type completeInput struct {
	actionInput
	LifecycleActionResult string
}

func completeLifecycleAction(a *api) awsfront.Spec[completeInput, struct{}] {
	return awsfront.Spec[completeInput, struct{}]{
		About: aboutGroup(a, func(in *completeInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *completeInput) (*struct{}, error) {
			result := v1alpha1.LifecycleResult(in.LifecycleActionResult)
			if result != v1alpha1.LifecycleContinue && result != v1alpha1.LifecycleAbandon {
				return nil, awsfault.Errorf(invalid, "The lifecycle action's result %.40q is not valid: it must be %s or %s", result, v1alpha1.LifecycleContinue, v1alpha1.LifecycleAbandon)
			}
			return nil, a.changeStatus(ctx, in.AutoScalingGroupName, func(g *group) error {
				act, _, err := g.action(in.actionInput, call.Now)
				if err == nil {
					act.Result = result
				}
				return err
			})
		},
	}
}

func recordHeartbeat(a *api) awsfront.Spec[actionInput, struct{}] {
	return awsfront.Spec[actionInput, struct{}]{
		About: aboutGroup(a, func(in *actionInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *actionInput) (*struct{}, error) {
			return nil, a.changeStatus(ctx, in.AutoScalingGroupName, func(g *group) error {
				act, hook, err := g.action(*in, call.Now)
				if err == nil {
					act.Deadline = metav1.NewTime(call.Now.Add(time.Duration(hook.HeartbeatTimeout) * time.Second))
				}
				return err
			})
		},
	}
}

// action finds the lifecycle action of a request, which must not be over.
func (g *group) action(in actionInput, now time.Time) (*v1alpha1.LifecycleAction, v1alpha1.LifecycleHook, error) {
	at := slices.IndexFunc(g.own.Spec.Hooks, func(h v1alpha1.LifecycleHook) bool { return h.Name == in.LifecycleHookName })
	switch {
	case at < 0:
		return nil, v1alpha1.LifecycleHook{}, awsfault.Errorf(invalid, "No Lifecycle Hook found with name: %.255s in Auto Scaling group %s", in.LifecycleHookName, g.name)
	case in.InstanceID == "" && in.LifecycleActionToken == "":
		return nil, v1alpha1.LifecycleHook{}, awsfault.Errorf(invalid, "The request names no lifecycle action: write InstanceId or LifecycleActionToken")
	case in.InstanceID != "" && g.instance(in.InstanceID) == nil:
		return nil, v1alpha1.LifecycleHook{}, awsfault.Errorf(invalid, "The instance %.64s is not part of Auto Scaling group %s: name an instance that the group holds", in.InstanceID, g.name)
	}
	for i := range g.own.Status.Instances {
		one := &g.own.Status.Instances[i]
		if in.InstanceID != "" && one.ID != in.InstanceID {
			continue
		}
		for k := range one.Actions {
			act := &one.Actions[k]
			if act.Hook == in.LifecycleHookName && (in.LifecycleActionToken == "" || act.Token == in.LifecycleActionToken) && act.Result == "" && now.Before(act.Deadline.Time) {
				return act, g.own.Spec.Hooks[at], nil
			}
		}
	}
	if in.LifecycleActionToken != "" {
		return nil, v1alpha1.LifecycleHook{}, awsfault.Errorf(invalid, "No active Lifecycle Action found with token %.64s: it was completed, or its time is up", in.LifecycleActionToken)
	}
	return nil, v1alpha1.LifecycleHook{}, awsfault.Errorf(invalid, "No active Lifecycle Action found with instance ID %.64s: it was completed, or its time is up", in.InstanceID)
}

// changeStatus has the status of a group of its own changed and writes it. Nobody else's change meanwhile is lost.
func (a *api) changeStatus(ctx context.Context, name string, change func(*group) error) error {
	defer a.locks.Hold(name)()
	for {
		g, err := a.ownGroup(ctx, name, drained)
		if err != nil {
			return err
		}
		before := g.own.DeepCopy()
		if err := change(g); err != nil {
			return err
		}
		if err := awsfront.StillAllowed(ctx); err != nil {
			return err
		}
		err = a.Management.Status().Patch(ctx, g.own, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return noGroup(name)
		case !apierrors.IsConflict(err) || ctx.Err() != nil:
			return away(fmt.Errorf("changing the status of the group %s: %w", name, err))
		}
	}
}
