// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

type terminateInstanceInput struct {
	InstanceID, AutoScalingGroupName string
	ShouldDecrementDesiredCapacity   bool
}

type terminateInstanceOutput struct{ Activity *activity }

func terminateInstance(a *api) awsfront.Spec[terminateInstanceInput, terminateInstanceOutput] {
	return awsfront.Spec[terminateInstanceInput, terminateInstanceOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *terminateInstanceInput) ([]awsfront.Target, error) {
			return a.aboutMember(ctx, call, in.InstanceID)
		},
		Do: a.doTerminateInstance,
	}
}

// aboutMember is the group of an instance as IAM is asked about it.
func (a *api) aboutMember(ctx context.Context, call *awsfront.Call, id string) ([]awsfront.Target, error) {
	g, _, err := a.member(ctx, id)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return a.about(ctx, call, "*")
	}
	return a.about(ctx, call, g.name)
}

// member finds the group of an instance; nil if it is in none.
func (a *api) member(ctx context.Context, id string) (*group, *v1alpha1.Machine, error) {
	all, err := a.groups(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range all {
		for _, m := range g.machines {
			if m.Name == id {
				return g, m, nil
			}
		}
	}
	return nil, nil, nil
}

func (a *api) doTerminateInstance(ctx context.Context, call *awsfront.Call, in *terminateInstanceInput) (*terminateInstanceOutput, error) {
	g, m, err := a.member(ctx, in.InstanceID)
	switch {
	case err != nil:
		return nil, err
	case g == nil || in.AutoScalingGroupName != "" && in.AutoScalingGroupName != g.name:
		return nil, awsfault.Errorf(invalid, "Instance Id not found - No managed instance found for instance ID: %.64s", in.InstanceID)
	case !m.DeletionTimestamp.IsZero(): // it was asked for before
		return &terminateInstanceOutput{ending(g.name, a.arn(call, g.uid(), g.name), m, nil)}, nil
	case g.own != nil:
		return a.terminateMember(ctx, call, in, g, m)
	}
	when := call.Now.UTC().Format("2006-01-02T15:04:05Z")
	cause := fmt.Sprintf("At %s instance %s was taken out of service in response to a user request.", when, m.Name)
	if in.ShouldDecrementDesiredCapacity && m.Spec.WarmPool != "" {
		return nil, awsfault.Errorf(invalid, "Instance %s is in the warm pool of Auto Scaling group %s and does not count in its desired capacity: set shouldDecrementDesiredCapacity to false.", m.Name, g.name)
	}
	if in.ShouldDecrementDesiredCapacity {
		if err := a.decrement(ctx, g, m.Name, func(from, to int32) {
			cause = fmt.Sprintf("At %s instance %s was taken out of service in response to a user request, shrinking the capacity from %d to %d.", when, m.Name, from, to)
		}); err != nil {
			return nil, err
		}
	}
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationTerminationCause, cause)
	if err := a.Management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return nil, away(fmt.Errorf("noting why machine %s goes: %w", m.Name, err))
	}
	if err := a.Management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return nil, away(fmt.Errorf("deleting machine %s: %w", m.Name, err))
	}
	m.DeletionTimestamp = new(metav1.NewTime(call.Now))
	return &terminateInstanceOutput{ending(g.name, a.arn(call, g.uid(), g.name), m, nil)}, nil
}

// decrement makes a group smaller by one of its machines, in one write, which is done once: a machine that is named in
// it already has been counted.
func (a *api) decrement(ctx context.Context, of *group, id string, done func(from, to int32)) error {
	return a.change(ctx, of.name, func(g *group) error {
		s, spec := g.scaling(), &g.node.Spec
		// Names of machines that are gone are dropped.
		s.Ending = slices.DeleteFunc(s.Ending, func(name string) bool {
			return !slices.ContainsFunc(g.machines, func(m *v1alpha1.Machine) bool { return m.Name == name })
		})
		size := spec.ScalingConfig.DesiredSize
		if slices.Contains(s.Ending, id) {
			done(size+1, size)
			return nil
		}
		if size <= spec.ScalingConfig.MinSize {
			return awsfault.Errorf(invalid, "Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. "+
				"Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", spec.ScalingConfig.MinSize)
		}
		s.Ending = append(s.Ending, id)
		spec.ScalingConfig.DesiredSize--
		done(size, size-1)
		return nil
	})
}
