// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/machine"
)

// The attributes of an instance, as they are asked for.
const (
	attributeGroups      = "groupSet"
	attributeSourceCheck = "sourceDestCheck"
	attributeTermination = "disableApiTermination"
	attributeType        = "instanceType"
	attributeUserData    = "userData"
)

type textValue struct{ Value string }

type flagValue struct{ Value bool }

type describeInstanceAttributeInput struct {
	Attribute, InstanceID string
	DryRun                bool
}

type instanceAttribute struct {
	InstanceID                                                                       string
	UserData, InstanceType, RootDeviceName, KernelID, RamdiskID, SriovNetSupport     *textValue
	InstanceInitiatedShutdownBehavior                                                *textValue
	SourceDestCheck, DisableAPITermination, DisableAPIStop, EbsOptimized, EnaSupport *flagValue
	EnclaveOptions                                                                   *struct{ Enabled bool }
	Groups                                                                           []GroupIdentifier
	BlockDeviceMappings, ProductCodes                                                []struct{}
}

func (a *Actions) describeInstanceAttribute() awsfront.Spec[describeInstanceAttributeInput, instanceAttribute] {
	return awsfront.Spec[describeInstanceAttributeInput, instanceAttribute]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeInstanceAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.aboutInstances(ctx, call, in.InstanceID)
			for i := range targets {
				targets[i].Conditions["ec2:Attribute"] = []string{in.Attribute}
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInstanceAttributeInput) (*instanceAttribute, error) {
			if err := ec2id.Instance.Check(in.InstanceID); err != nil {
				return nil, err
			}
			all, err := a.instances(ctx, call)
			if err != nil {
				return nil, err
			}
			for i := range all {
				if all[i].InstanceID == in.InstanceID {
					if err := dryrun.Would(in.DryRun); err != nil {
						return nil, err
					}
					return a.attributeOf(&all[i], in.Attribute)
				}
			}
			return nil, ec2id.Instance.NotFound(in.InstanceID)
		},
	}
}

func (a *Actions) attributeOf(i *instance, name string) (*instanceAttribute, error) {
	out := &instanceAttribute{InstanceID: i.InstanceID}
	switch name {
	case attributeUserData:
		raw, err := a.userDataOf(i)
		if err != nil {
			return nil, err
		}
		out.UserData = &textValue{base64.StdEncoding.EncodeToString(raw)}
	case attributeType:
		out.InstanceType = &textValue{i.InstanceType}
	case attributeGroups:
		out.Groups = i.SecurityGroups
	case attributeSourceCheck:
		out.SourceDestCheck = &flagValue{*i.SourceDestCheck}
	case attributeTermination:
		out.DisableAPITermination = &flagValue{i.machine.Spec.DisableAPITermination}
	case keptStop:
		out.DisableAPIStop = &flagValue{keeps(i.machine, keptStop)}
	case "rootDeviceName":
		out.RootDeviceName = &textValue{i.RootDeviceName}
	case "ebsOptimized":
		out.EbsOptimized = &flagValue{i.EbsOptimized}
	case "enaSupport":
		out.EnaSupport = &flagValue{i.EnaSupport}
	case "instanceInitiatedShutdownBehavior":
		out.InstanceInitiatedShutdownBehavior = &textValue{"terminate"}
	case "kernel":
		out.KernelID = &textValue{}
	case "ramdisk":
		out.RamdiskID = &textValue{}
	case "sriovNetSupport":
		out.SriovNetSupport = &textValue{}
	case "blockDeviceMapping":
		out.BlockDeviceMappings = []struct{}{}
	case "productCodes":
		out.ProductCodes = []struct{}{}
	case "enclaveOptions":
		out.EnclaveOptions = &struct{ Enabled bool }{}
	default:
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter attribute is invalid. Unknown attribute.", name)
	}
	return out, nil
}

// userDataOf is what an instance was launched with; empty if nothing.
func (a *Actions) userDataOf(i *instance) ([]byte, error) {
	if i.machine.Spec.NodeGroup == "" {
		return i.machine.Spec.UserData, nil
	}
	if a.ec2.UserData == nil {
		return nil, nil
	}
	raw, err := a.ec2.UserData(i.InstanceID)
	switch {
	case errors.Is(err, machine.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, ec2resource.Away(fmt.Errorf("reading the user data of %s: %w", i.InstanceID, err))
	}
	return raw, nil
}

// aboutInstances are instances as IAM is asked about them. A missing instance has * for its id, and no tags.
func (a *Actions) aboutInstances(ctx context.Context, call *awsfront.Call, ids ...string) ([]awsfront.Target, error) {
	var targets []awsfront.Target
	for _, id := range ids {
		m := &v1alpha1.Machine{}
		err := a.ec2.Get(ctx, ec2id.Instance, id, m)
		if fault := (*awsfault.Error)(nil); errors.As(err, &fault) && strings.HasPrefix(fault.Code, "InvalidInstanceID.") {
			targets = append(targets, a.ec2.Target(call, "instance", "*", nil, nil))
			continue
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, a.instanceTarget(call, m))
	}
	return targets, nil
}
