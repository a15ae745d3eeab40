// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"net/http"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/power"
)

// incorrectState is the code of requests that an instance's state does not allow.
const incorrectState = "IncorrectInstanceState"

type stopInstancesInput struct {
	InstanceIDs []string
	DryRun      bool
	Hibernate   bool
	// Force and SkipOsShutdown hasten the end of an instance's programs, which have seconds in any case.
	Force, SkipOsShutdown bool
}

type stopInstancesOutput struct{ StoppingInstances []instanceStateChange }

func (a *Actions) stopInstances() awsfront.Spec[stopInstancesInput, stopInstancesOutput] {
	return awsfront.Spec[stopInstancesInput, stopInstancesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *stopInstancesInput) ([]awsfront.Target, error) {
			return a.aboutInstances(ctx, call, in.InstanceIDs...)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *stopInstancesInput) (*stopInstancesOutput, error) {
			chosen, err := a.chosen(ctx, call, in.InstanceIDs, in.DryRun, func(i *instance) error { return mayStop(i, in.Hibernate) })
			if err != nil {
				return nil, err
			}
			changes, err := a.power(ctx, chosen, v1alpha1.PowerStopped, stateStopping)
			return &stopInstancesOutput{changes}, err
		},
	}
}

// mayStop says why an instance cannot be stopped, or protected against it.
func mayStop(i *instance, hibernate bool) error {
	switch {
	case i.State == statePending && i.machine.Status.ProviderID == "":
		return awsfault.Errorf(incorrectState, "Instance '%s' cannot be stopped as it has never reached the 'running' state.", i.InstanceID)
	case !slices.Contains([]instanceState{stateRunning, stateStopping, stateStopped}, i.State):
		return awsfault.Errorf(incorrectState, "This instance '%s' is not in a state from which it can be stopped.", i.InstanceID)
	case i.machine.Spec.MarketType == v1alpha1.MarketSpot:
		return awsfault.Errorf("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.", i.InstanceID)
	case keeps(i.machine, keptStop):
		return awsfault.Errorf(ec2resource.NotPermitted, "The instance '%s' may not be stopped. Modify its 'disableApiStop' instance attribute and try again.", i.InstanceID)
	case hibernate:
		return awsfault.Errorf("UnsupportedHibernationConfiguration", "The instance '%s' is not configured for hibernation. Muster's machines keep nothing of their memory: leave Hibernate out", i.InstanceID)
	}
	return nil
}

type startInstancesInput struct {
	InstanceIDs []string
	DryRun      bool
	// AdditionalInfo is reserved.
	AdditionalInfo string
}

type startInstancesOutput struct{ StartingInstances []instanceStateChange }

func (a *Actions) startInstances() awsfront.Spec[startInstancesInput, startInstancesOutput] {
	return awsfront.Spec[startInstancesInput, startInstancesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *startInstancesInput) ([]awsfront.Target, error) {
			return a.aboutInstances(ctx, call, in.InstanceIDs...)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *startInstancesInput) (*startInstancesOutput, error) {
			chosen, err := a.chosen(ctx, call, in.InstanceIDs, in.DryRun, func(i *instance) error {
				if !slices.Contains([]instanceState{stateStopped, statePending, stateRunning}, i.State) {
					return awsfault.Errorf(incorrectState, "The instance '%s' is not in a state from which it can be started.", i.InstanceID)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			left, err := a.ec2.Room.Hold(ctx, a.ec2.Management)
			if err != nil {
				return nil, ec2resource.Away(err)
			}
			defer left.Release()
			if err := haveRoom(left, chosen); err != nil {
				return nil, err
			}
			changes, err := a.power(ctx, chosen, v1alpha1.PowerRunning, statePending)
			return &startInstancesOutput{changes}, err
		},
	}
}

// haveRoom says that the host has no room for instances that are stopped.
func haveRoom(left *hostroom.Left, chosen []instance) error {
	for _, i := range chosen {
		if !power.IsStopped(i.machine) || !i.machine.Spec.Provider.Can(v1alpha1.RunPods) {
			continue
		}
		if err := left.Take(i.machine.Spec.Type()); err != nil {
			return awsfault.Errorf("InsufficientInstanceCapacity", "Insufficient capacity to start instance '%s' of type %s: %v.", i.InstanceID, i.machine.Spec.Type(), err).
				WithStatus(http.StatusInternalServerError)
		}
	}
	return nil
}

// power has instances run or not, and returns what becomes of each: those that are as they are to be stay so.
func (a *Actions) power(ctx context.Context, chosen []instance, to v1alpha1.PowerState, by instanceState) ([]instanceStateChange, error) {
	var changes []instanceStateChange
	for i := range chosen {
		change := instanceStateChange{chosen[i].InstanceID, chosen[i].State, chosen[i].State}
		if isStopped := chosen[i].machine.Spec.PowerState == v1alpha1.PowerStopped; isStopped != (to == v1alpha1.PowerStopped) {
			change.CurrentState = by
			m := &v1alpha1.Machine{}
			if err := a.ec2.Change(ctx, ec2id.Instance, chosen[i].InstanceID, m, func() error { m.Spec.PowerState = to; return nil }); err != nil {
				return nil, err
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

type rebootInstancesInput struct {
	InstanceIDs []string
	DryRun      bool
}

func (a *Actions) rebootInstances() awsfront.Spec[rebootInstancesInput, struct{}] {
	return awsfront.Spec[rebootInstancesInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *rebootInstancesInput) ([]awsfront.Target, error) {
			return a.aboutInstances(ctx, call, in.InstanceIDs...)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *rebootInstancesInput) (*struct{}, error) {
			chosen, err := a.chosen(ctx, call, in.InstanceIDs, in.DryRun, func(i *instance) error {
				if slices.Contains([]instanceState{statePending, stateStopping, stateStopped}, i.State) {
					return awsfault.Errorf(incorrectState, "The instance '%s' is not in a state from which it can be rebooted.", i.InstanceID)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for i := range chosen {
				if chosen[i].State != stateRunning {
					continue // terminated instances are ignored, as on EC2
				}
				m := &v1alpha1.Machine{}
				if err := a.ec2.Change(ctx, ec2id.Instance, chosen[i].InstanceID, m, func() error { m.Spec.Reboots++; return nil }); err != nil {
					return nil, err
				}
			}
			return nil, nil //nolint:nilnil // the answer has no members
		},
	}
}
