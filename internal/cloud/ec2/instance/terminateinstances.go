// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type terminateInstancesInput struct {
	InstanceIDs []string
	DryRun      bool
	// Force and SkipOsShutdown hasten the end of an instance's programs. Its pods are evicted all the same.
	Force, SkipOsShutdown bool
}

type terminateInstancesOutput struct{ TerminatingInstances []instanceStateChange }

type instanceStateChange struct {
	InstanceID                  string
	CurrentState, PreviousState instanceState
}

func (a *Actions) terminateInstances() awsfront.Spec[terminateInstancesInput, terminateInstancesOutput] {
	return awsfront.Spec[terminateInstancesInput, terminateInstancesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *terminateInstancesInput) ([]awsfront.Target, error) {
			return a.aboutInstances(ctx, call, in.InstanceIDs...)
		},
		Do: a.doTerminateInstances,
	}
}

// doTerminateInstances deletes the machines.
func (a *Actions) doTerminateInstances(ctx context.Context, call *awsfront.Call, in *terminateInstancesInput) (*terminateInstancesOutput, error) {
	chosen, err := a.chosen(ctx, call, in.InstanceIDs, in.DryRun, func(i *instance) error {
		if i.State != stateTerminated && i.machine.Spec.DisableAPITermination {
			return awsfault.Errorf(ec2resource.NotPermitted, "The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", i.InstanceID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &terminateInstancesOutput{}
	for i := range chosen {
		change := instanceStateChange{chosen[i].InstanceID, stateTerminated, chosen[i].State}
		if chosen[i].State != stateTerminated {
			change.CurrentState = stateShuttingDown
			if err := a.terminate(ctx, chosen[i].machine, call.Now.UTC().Format("2006-01-02T15:04:05Z")); err != nil {
				return nil, err
			}
		}
		out.TerminatingInstances = append(out.TerminatingInstances, change)
	}
	return out, nil
}

// chosen returns the instances that a request names, once it is known that all of them are there and may be changed:
// of a request that is refused none is.
func (a *Actions) chosen(ctx context.Context, call *awsfront.Call, ids []string, dryRun bool, may func(*instance) error) ([]instance, error) {
	all, err := a.instances(ctx, call)
	if err != nil {
		return nil, err
	}
	var chosen []instance
	var missing []string
	for _, id := range ids {
		if err := ec2id.Instance.Check(id); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(i instance) bool { return i.InstanceID == id })
		if at < 0 {
			missing = append(missing, id)
			continue
		}
		if slices.ContainsFunc(chosen, func(i instance) bool { return i.InstanceID == id }) { // named twice
			continue
		}
		if err := may(&all[at]); err != nil {
			return nil, err
		}
		chosen = append(chosen, all[at])
	}
	switch {
	case len(missing) > 0:
		return nil, ec2id.Instance.NotFound(missing...)
	case len(chosen) == 0:
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter InstanceId")
	}
	return chosen, dryrun.Would(dryRun)
}

// terminate deletes a machine, whose controller ends its instance.
func (a *Actions) terminate(ctx context.Context, m *v1alpha1.Machine, at string) error {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	before := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[v1alpha1.AnnotationTerminationCause] = "At " + at + " an instance was taken out of service in response to a request of TerminateInstances."
	if err := a.ec2.Management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return ec2resource.Away(fmt.Errorf("noting why machine %s goes: %w", m.Name, err))
	}
	if err := a.ec2.Management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return ec2resource.Away(fmt.Errorf("deleting machine %s: %w", m.Name, err))
	}
	return nil
}
