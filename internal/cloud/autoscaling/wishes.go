// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// ask adds a wish to a group of its own, in place of an earlier one about the instance. Wishes about instances that are gone are
// dropped, and wishes to attach instances that the group has.
func (g *group) ask(id string, wish v1alpha1.Wish, cause string) {
	spec := &g.own.Spec
	spec.Wishes = slices.DeleteFunc(spec.Wishes, func(w v1alpha1.InstanceWish) bool {
		return w.InstanceID == id || (g.instance(w.InstanceID) != nil) == (w.Wish == v1alpha1.WishAttached)
	})
	spec.Wishes = append(spec.Wishes, v1alpha1.InstanceWish{InstanceID: id, Wish: wish, Cause: cause})
}

// at is how causes begin.
func at(now time.Time) string { return "At " + now.UTC().Format(time.RFC3339) }

// inState refuses an instance that is not of the group, or not in one of the states.
func (g *group) inState(id string, states ...v1alpha1.LifecycleState) error {
	i := g.instance(id)
	switch {
	case i == nil:
		return awsfault.Errorf(invalid, "The instance %.64s is not part of Auto Scaling group %s.", id, g.name)
	case !slices.Contains(states, i.State):
		return awsfault.Errorf(invalid, "The instance %s is not in %v: it is in %s", id, states, i.State)
	}
	return nil
}

// leaving is what was asked of an instance and takes it out of the group's capacity; empty for nothing. It is asked for before
// the instance's state says so.
func (g *group) leaving(id string) v1alpha1.Wish {
	if w := g.wish(id); w != nil && slices.Contains([]v1alpha1.Wish{v1alpha1.WishTerminated, v1alpha1.WishDetached, v1alpha1.WishStandby}, w.Wish) {
		return w.Wish
	}
	return ""
}

// counted reports whether an instance is of the desired capacity: the write that asked it to leave may have made that smaller
// already, and the one that asked it to come back has made it larger.
func (g *group) counted(id string) bool { return g.leaving(id) == "" }

// less makes the desired capacity smaller by the weights of instances.
func (g *group) less(what, flag string, ids ...string) error {
	sizes := g.sizes()
	for _, id := range ids {
		sizes.Desired -= g.instance(id).Weight
	}
	if sizes.Desired < sizes.Min {
		return awsfault.Errorf(invalid, "Currently, desiredSize equals minSize (%d). %s without replacement will violate group's min size constraint. "+
			"Either set %s flag to false or lower group's min size.", sizes.Min, what, flag)
	}
	g.setSizes(sizes, "")
	return nil
}

// more makes the desired capacity larger by weights.
func (g *group) more(by int32, what string) error {
	sizes := g.sizes()
	if sizes.Desired += by; sizes.Desired > sizes.Max {
		return awsfault.Errorf(invalid, "%s would make the desired capacity of group %s %d, which is above its max value %d: raise MaxSize", what, g.name, sizes.Desired, sizes.Max)
	}
	g.setSizes(sizes, "")
	return nil
}

// terminateMember ends an instance of a group of its own, in one write, which is done once: an instance that is to end already has
// been counted.
func (a *api) terminateMember(ctx context.Context, call *awsfront.Call, in *terminateInstanceInput, of *group, m *v1alpha1.Machine) (*terminateInstanceOutput, error) {
	var done activity
	err := a.change(ctx, of.name, func(g *group) error {
		arn := a.arn(call, g.uid(), g.name)
		i := g.instance(m.Name)
		if i == nil {
			return awsfault.Errorf(invalid, "Instance Id not found - No managed instance found for instance ID: %.64s", in.InstanceID)
		}
		cause := fmt.Sprintf("%s instance %s was taken out of service in response to a user request.", at(call.Now), m.Name)
		if w := g.wish(m.Name); i.Ending || w != nil && w.Wish == v1alpha1.WishTerminated {
			done = *ending(g.name, arn, m, nil)
			done.Cause, done.StartTime = cause, call.Now
			if w != nil {
				done.Cause = w.Cause
			}
			return nil
		}
		if g.leaving(m.Name) == v1alpha1.WishDetached {
			return awsfault.Errorf(invalid, "The instance %s is being detached from Auto Scaling group %s", m.Name, g.name)
		}
		if before := g.sizes().Desired; in.ShouldDecrementDesiredCapacity && g.counted(m.Name) {
			if err := g.less("Terminating instance", "shouldDecrementDesiredCapacity", m.Name); err != nil {
				return err
			}
			cause = fmt.Sprintf("%s instance %s was taken out of service in response to a user request, shrinking the capacity from %d to %d.", at(call.Now), m.Name, before, g.sizes().Desired)
		}
		g.ask(m.Name, v1alpha1.WishTerminated, cause)
		done = *ending(g.name, arn, m, nil)
		done.Cause, done.StartTime = cause, call.Now
		return nil
	})
	return &terminateInstanceOutput{&done}, err
}

type instancesInput struct {
	AutoScalingGroupName           string
	InstanceIDs                    []string
	ShouldDecrementDesiredCapacity bool
}

type activitiesOutput struct{ Activities []activity }

const nodeGroupKeeps = "a node group keeps the machines that it launched: terminate one with TerminateInstanceInAutoScalingGroup"

// movesInstances is an action about instances of a group: each is to be in one of the states, and is asked for.
func (a *api) movesInstances(kind, what string, wish v1alpha1.Wish, describe func(id string) string, states ...v1alpha1.LifecycleState) awsfront.Spec[instancesInput, activitiesOutput] {
	return awsfront.Spec[instancesInput, activitiesOutput]{
		About: aboutGroup(a, func(in *instancesInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *instancesInput) (*activitiesOutput, error) {
			var out *activitiesOutput
			return out, a.changeOwn(ctx, in.AutoScalingGroupName, nodeGroupKeeps, func(g *group) error {
				out = &activitiesOutput{Activities: []activity{}}
				ids, err := given(in.InstanceIDs)
				if err != nil {
					return err
				}
				var counted []string
				for _, id := range ids {
					if err := g.inState(id, states...); err != nil {
						return err
					}
					switch leaving := g.leaving(id); {
					case leaving == v1alpha1.WishTerminated, leaving == v1alpha1.WishDetached && wish != leaving:
						return awsfault.Errorf(invalid, "The instance %s is not in %v: it is to be %s already", id, states, leaving)
					case leaving == "":
						counted = append(counted, id)
					}
				}
				before := g.sizes().Desired
				if in.ShouldDecrementDesiredCapacity {
					if err := g.less(what, "ShouldDecrementDesiredCapacity", counted...); err != nil {
						return err
					}
				}
				for _, id := range ids {
					cause := fmt.Sprintf("%s instance %s was %s in response to a user request", at(call.Now), id, kind)
					if after := g.sizes().Desired; after != before {
						cause += fmt.Sprintf(", shrinking the capacity from %d to %d", before, after)
					}
					cause += "."
					if w := g.wish(id); w != nil && w.Wish == wish { // the request was sent before
						cause = w.Cause
					}
					g.ask(id, wish, cause)
					out.Activities = append(out.Activities, g.doneAt(a.arn(call, g.uid(), g.name), activityOf(wish), id, describe(id), cause, call.Now))
				}
				return nil
			})
		},
	}
}

// activityOf is the kind of the activity that carries out a wish.
func activityOf(wish v1alpha1.Wish) string {
	return map[v1alpha1.Wish]string{v1alpha1.WishStandby: "standby", v1alpha1.WishDetached: "detach", v1alpha1.WishAttached: "attach"}[wish]
}

// given are the instances of a request, each once.
func given(ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, awsfault.Errorf(invalid, "The request names no instance: write InstanceIds")
	}
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

func enterStandby(a *api) awsfront.Spec[instancesInput, activitiesOutput] {
	return a.movesInstances("moved to standby", "Placing instances in standby", v1alpha1.WishStandby, func(id string) string { return "Moving EC2 instance to Standby: " + id }, v1alpha1.LifecycleInService)
}

func detachInstances(a *api) awsfront.Spec[instancesInput, activitiesOutput] {
	return a.movesInstances("detached", "Detaching instances", v1alpha1.WishDetached, func(id string) string { return "Detaching EC2 instance: " + id }, v1alpha1.LifecycleInService, v1alpha1.LifecycleStandby)
}

type exitStandbyInput struct {
	AutoScalingGroupName string
	InstanceIDs          []string
}

func exitStandby(a *api) awsfront.Spec[exitStandbyInput, activitiesOutput] {
	return awsfront.Spec[exitStandbyInput, activitiesOutput]{
		About: aboutGroup(a, func(in *exitStandbyInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, call *awsfront.Call, in *exitStandbyInput) (*activitiesOutput, error) {
			var out *activitiesOutput
			return out, a.changeOwn(ctx, in.AutoScalingGroupName, nodeGroupKeeps, func(g *group) error {
				out = &activitiesOutput{Activities: []activity{}}
				ids, err := given(in.InstanceIDs)
				if err != nil {
					return err
				}
				weight := int32(0)
				for _, id := range ids {
					if err := g.inState(id, v1alpha1.LifecycleStandby); err != nil {
						return err
					}
					if w := g.wish(id); w == nil || w.Wish != v1alpha1.WishStandby {
						return awsfault.Errorf(invalid, "The instance %s leaves Standby already", id)
					}
					weight += g.instance(id).Weight
				}
				if err := g.more(weight, "Moving instances out of Standby"); err != nil {
					return err
				}
				for _, id := range ids {
					g.own.Spec.Wishes = slices.DeleteFunc(g.own.Spec.Wishes, func(w v1alpha1.InstanceWish) bool { return w.InstanceID == id })
					cause := fmt.Sprintf("%s instance %s was moved out of standby in response to a user request.", at(call.Now), id)
					out.Activities = append(out.Activities, g.doneAt(a.arn(call, g.uid(), g.name), "service", id, "Moving EC2 instance out of Standby: "+id, cause, call.Now))
				}
				return nil
			})
		},
	}
}
