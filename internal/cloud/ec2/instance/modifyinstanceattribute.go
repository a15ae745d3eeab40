// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type modifyInstanceAttributeInput struct {
	InstanceID, Attribute, Value                                                     string
	DryRun                                                                           bool
	Groups                                                                           []string
	SourceDestCheck, DisableAPITermination, DisableAPIStop, EbsOptimized, EnaSupport *flagValue
	InstanceType, Kernel, Ramdisk, SriovNetSupport                                   *textValue
	InstanceInitiatedShutdownBehavior                                                *textValue
	UserData                                                                         *struct{ Value []byte }
}

func (a *Actions) modifyInstanceAttribute() awsfront.Spec[modifyInstanceAttributeInput, struct{}] {
	return awsfront.Spec[modifyInstanceAttributeInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyInstanceAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.aboutInstances(ctx, call, in.InstanceID)
			if err != nil {
				return nil, err
			}
			change, err := in.change()
			if err != nil {
				return nil, err
			}
			targets[0].Conditions["ec2:Attribute"] = []string{change.name}
			if change.value != "" {
				targets[0].Conditions["ec2:Attribute/"+change.name] = []string{change.value}
			}
			for _, id := range in.Groups {
				used, err := aboutUsed(ctx, call, a.ec2, ec2id.SecurityGroup, id, map[string][]string{"ec2:SecurityGroupID": {id}})
				if err != nil {
					return nil, err
				}
				targets = append(targets, used)
			}
			return targets, nil
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifyInstanceAttributeInput) (*struct{}, error) {
			change, err := in.change()
			if err != nil {
				return nil, err
			}
			m := &v1alpha1.Machine{}
			err = a.ec2.Change(ctx, ec2id.Instance, in.InstanceID, m, func() error {
				if !m.DeletionTimestamp.IsZero() {
					return awsfault.Errorf(incorrectState, "Instance %s is not in a state that allows this operation: it is %s", m.Name, stateOf(m).Name)
				}
				if change.name == attributeGroups {
					if err := a.checkGroupsOf(ctx, m, in.Groups); err != nil {
						return err
					}
				}
				if err := dryrun.Would(in.DryRun); err != nil {
					return err
				}
				change.apply(m)
				return nil
			})
			return nil, err
		},
	}
}

// attributeChange is a change of one attribute.
type attributeChange struct {
	name, value string
	apply       func(*v1alpha1.Machine)
}

// change is what the request asks for: exactly one attribute.
func (in *modifyInstanceAttributeInput) change() (attributeChange, error) {
	var changes []attributeChange
	flag := func(name string, value *flagValue, apply func(*v1alpha1.Machine, bool)) {
		if in.Attribute == name {
			value = &flagValue{in.Value == "true"}
		}
		if value != nil {
			changes = append(changes, attributeChange{name, strconv.FormatBool(value.Value), func(m *v1alpha1.Machine) { apply(m, value.Value) }})
		}
	}
	flag(attributeSourceCheck, in.SourceDestCheck, func(m *v1alpha1.Machine, on bool) { m.Spec.DisableSourceCheck = !on })
	flag(attributeTermination, in.DisableAPITermination, func(m *v1alpha1.Machine, on bool) { m.Spec.DisableAPITermination = on })
	flag(keptStop, in.DisableAPIStop, keepStop)
	if len(in.Groups) > 0 {
		changes = append(changes, attributeChange{attributeGroups, "", func(m *v1alpha1.Machine) { m.Spec.SecurityGroupIDs = in.Groups }})
	}
	// Attributes that EC2 changes of stopped instances alone.
	stopped := in.InstanceType != nil || in.UserData != nil || in.Kernel != nil || in.Ramdisk != nil || in.EbsOptimized != nil || in.EnaSupport != nil || in.SriovNetSupport != nil
	switch in.Attribute {
	case attributeType, attributeUserData, "kernel", "ramdisk", "ebsOptimized", "enaSupport", "sriovNetSupport":
		stopped = true
	case "", attributeSourceCheck, attributeTermination, keptStop, "instanceInitiatedShutdownBehavior":
	default:
		return attributeChange{}, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter attribute is invalid. Unknown attribute.", in.Attribute)
	}
	switch {
	case stopped:
		return attributeChange{}, awsfault.Errorf("UnsupportedOperation", "Muster's machines keep such attributes, stopped or not: make another one in place of '%.40s'", in.InstanceID)
	case in.InstanceInitiatedShutdownBehavior != nil || in.Attribute == "instanceInitiatedShutdownBehavior":
		return attributeChange{}, awsfault.Errorf("UnsupportedOperation", "Muster's machines boot again when they shut themselves down: leave instanceInitiatedShutdownBehavior out")
	case in.Attribute != "" && in.Value != "true" && in.Value != "false":
		return attributeChange{}, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter value is invalid. It must be true or false", in.Value)
	case len(changes) == 0:
		return attributeChange{}, awsfault.Errorf(ec2resource.InvalidCombination, "No attributes specified.")
	case len(changes) > 1:
		return attributeChange{}, awsfault.Errorf(ec2resource.InvalidCombination, "Fields for multiple attribute types specified")
	}
	return changes[0], nil
}
