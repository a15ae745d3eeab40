// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

const drained = "its nodes are drained before their machines go, and it has no lifecycle hooks"

// The limits of hooks, as on AWS.
const (
	maxHooks         = 50
	minHeartbeat     = 30
	maxHeartbeat     = 7200
	defaultHeartbeat = 3600
	maxGlobal        = 172800
	maxBeats         = 100
)

var hookName = regexp.MustCompile(`^[A-Za-z0-9_/-]{1,255}$`)

// hookInput is a hook in a request.
type hookInput struct {
	LifecycleHookName, LifecycleTransition, DefaultResult, NotificationMetadata, NotificationTargetARN, RoleARN string
	HeartbeatTimeout                                                                                            *int32
}

type putHookInput struct {
	hookInput
	AutoScalingGroupName string
}

func putLifecycleHook(a *api) awsfront.Spec[putHookInput, struct{}] {
	return awsfront.Spec[putHookInput, struct{}]{
		About: aboutGroup(a, func(in *putHookInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *putHookInput) (*struct{}, error) {
			return nil, a.changeOwn(ctx, in.AutoScalingGroupName, drained, func(g *group) error { return putHook(&g.own.Spec, in.hookInput) })
		},
	}
}

// putHook adds a hook, or changes one: what the request leaves out stays as it is.
func putHook(spec *v1alpha1.AutoScalingGroupSpec, in hookInput) error {
	at := slices.IndexFunc(spec.Hooks, func(h v1alpha1.LifecycleHook) bool { return h.Name == in.LifecycleHookName })
	hook := v1alpha1.LifecycleHook{Name: in.LifecycleHookName, HeartbeatTimeout: defaultHeartbeat, DefaultResult: v1alpha1.LifecycleAbandon}
	if at >= 0 {
		hook = spec.Hooks[at]
	}
	hook.Transition = cmp.Or(v1alpha1.LifecycleTransition(in.LifecycleTransition), hook.Transition)
	hook.DefaultResult = cmp.Or(v1alpha1.LifecycleResult(in.DefaultResult), hook.DefaultResult)
	hook.NotificationMetadata = cmp.Or(in.NotificationMetadata, hook.NotificationMetadata)
	if in.HeartbeatTimeout != nil {
		hook.HeartbeatTimeout = *in.HeartbeatTimeout
	}
	switch {
	case !hookName.MatchString(hook.Name):
		return awsfault.Errorf(invalid, "The lifecycle hook's name %.64q is not valid: it must be 1 to 255 letters, digits, - _ and /", hook.Name)
	case in.NotificationTargetARN != "" || in.RoleARN != "":
		return awsfault.Errorf(invalid, "Muster sends no notifications of lifecycle actions: leave NotificationTargetARN and RoleARN out, and look for the states Pending:Wait and Terminating:Wait")
	case hook.Transition != v1alpha1.TransitionLaunching && hook.Transition != v1alpha1.TransitionTerminating:
		return awsfault.Errorf(invalid, "The lifecycle transition %.64q is not valid: it must be %s or %s", hook.Transition, v1alpha1.TransitionLaunching, v1alpha1.TransitionTerminating)
	case hook.DefaultResult != v1alpha1.LifecycleAbandon && hook.DefaultResult != v1alpha1.LifecycleContinue:
		return awsfault.Errorf(invalid, "The default result %.40q is not valid: it must be %s or %s", hook.DefaultResult, v1alpha1.LifecycleContinue, v1alpha1.LifecycleAbandon)
	case hook.HeartbeatTimeout < minHeartbeat || hook.HeartbeatTimeout > maxHeartbeat:
		return awsfault.Errorf(invalid, "The heartbeat timeout is %d seconds: it must be from %d to %d", hook.HeartbeatTimeout, minHeartbeat, maxHeartbeat)
	case at < 0 && len(spec.Hooks) >= maxHooks:
		return awsfault.Errorf("LimitExceeded", "The group %s has %d lifecycle hooks, and may have no more: delete one first", spec.Name, len(spec.Hooks))
	case at >= 0:
		spec.Hooks[at] = hook
	default:
		spec.Hooks = append(spec.Hooks, hook)
	}
	return nil
}

type deleteHookInput struct{ AutoScalingGroupName, LifecycleHookName string }

func deleteLifecycleHook(a *api) awsfront.Spec[deleteHookInput, struct{}] {
	return awsfront.Spec[deleteHookInput, struct{}]{
		About: aboutGroup(a, func(in *deleteHookInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteHookInput) (*struct{}, error) {
			if err := a.changeOwn(ctx, in.AutoScalingGroupName, drained, func(g *group) error {
				hooks := len(g.own.Spec.Hooks)
				g.own.Spec.Hooks = slices.DeleteFunc(g.own.Spec.Hooks, func(h v1alpha1.LifecycleHook) bool { return h.Name == in.LifecycleHookName })
				if len(g.own.Spec.Hooks) == hooks {
					return awsfault.Errorf(invalid, "No Lifecycle Hook found with name: %.255s in Auto Scaling group %s", in.LifecycleHookName, g.name)
				}
				return nil
			}); err != nil {
				return nil, err
			}
			// The instances that it holds go on: on AWS those that launch are abandoned, and the others continue.
			return nil, a.changeStatus(ctx, in.AutoScalingGroupName, func(g *group) error {
				for i := range g.own.Status.Instances {
					one := &g.own.Status.Instances[i]
					for k := range one.Actions {
						if act := &one.Actions[k]; act.Hook == in.LifecycleHookName && act.Result == "" {
							act.Result = v1alpha1.LifecycleContinue
							if one.State == v1alpha1.LifecyclePendingWait {
								act.Result = v1alpha1.LifecycleAbandon
							}
						}
					}
				}
				return nil
			})
		},
	}
}

type shownHook struct {
	AutoScalingGroupName, DefaultResult, LifecycleHookName, LifecycleTransition, NotificationMetadata string
	GlobalTimeout, HeartbeatTimeout                                                                   int32
}

type describeHooksInput struct {
	AutoScalingGroupName string
	LifecycleHookNames   []string
}

type describeHooksOutput struct{ LifecycleHooks []shownHook }

func describeLifecycleHooks(a *api) awsfront.Spec[describeHooksInput, describeHooksOutput] {
	return awsfront.Spec[describeHooksInput, describeHooksOutput]{
		Do: func(ctx context.Context, _ *awsfront.Call, in *describeHooksInput) (*describeHooksOutput, error) {
			g, err := a.group(ctx, in.AutoScalingGroupName)
			if err != nil {
				return nil, err
			}
			out := &describeHooksOutput{[]shownHook{}}
			if g.own == nil {
				return out, nil
			}
			for _, h := range g.own.Spec.Hooks {
				if len(in.LifecycleHookNames) == 0 || slices.Contains(in.LifecycleHookNames, h.Name) {
					out.LifecycleHooks = append(out.LifecycleHooks, shownHook{
						g.name, string(h.DefaultResult), h.Name, string(h.Transition), h.NotificationMetadata, min(maxGlobal, maxBeats*h.HeartbeatTimeout), h.HeartbeatTimeout,
					})
				}
			}
			return out, nil
		},
	}
}
