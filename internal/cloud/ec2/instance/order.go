// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/scalinglaunch"
)

// Orders launches instances for Auto Scaling.
type Orders struct{ a *Actions }

// NewOrders makes Orders of the actions about instances.
func NewOrders(a *Actions) Orders { return Orders{a} }

// Resolve returns what an order stands for, without launching anything: the number of the template's version and the instance
// type. The error is that of RunInstances.
func (l Orders) Resolve(ctx context.Context, o scalinglaunch.Order) (scalinglaunch.Resolved, error) {
	_, _, resolved, err := l.resolve(ctx, o)
	return resolved, err
}

// Template reads a launch template by its id or its name.
func (l Orders) Template(ctx context.Context, id, name string) (*v1alpha1.LaunchTemplate, error) {
	return l.a.templates.Template(ctx, template.NamedTemplate{LaunchTemplateID: id, LaunchTemplateName: name})
}

// About are the questions to IAM about an order: those that RunInstances asks. Who may not launch an instance may not have a group
// do it.
func (l Orders) About(ctx context.Context, call *awsfront.Call, o scalinglaunch.Order) ([]awsfront.Target, error) {
	targets, err := l.a.aboutRunInstances(ctx, call, &runInstancesInput{
		Data: launchtemplate.Data{InstanceType: o.InstanceType}, SubnetID: o.SubnetID,
		LaunchTemplate: &versionOfTemplate{LaunchTemplateID: o.Template.ID, LaunchTemplateName: o.Template.Name, Version: o.Template.Version},
		spot:           o.Spot,
	})
	for i := range targets {
		if targets[i].Action == "" {
			targets[i].Action = "ec2:RunInstances"
		}
		targets[i].Conditions["ec2:Region"] = []string{l.a.ec2.Region}
	}
	return targets, err
}

// Launch makes the Machine of an order. An order that was carried out before makes no other Machine: its id is the Machine's
// name. The error is that of RunInstances.
func (l Orders) Launch(ctx context.Context, o scalinglaunch.Order) error {
	in, wanted, _, err := l.resolve(ctx, o)
	if err != nil {
		return err
	}
	left, err := l.a.ec2.Room.Hold(ctx, l.a.ec2.Management)
	if err != nil {
		return ec2resource.Away(err)
	}
	defer left.Release()
	if _, err := l.a.countOf(ctx, in, wanted, nil, left); err != nil {
		return err
	}
	m := wanted.machine
	m.Name, m.Spec.ScalingGroup, m.Spec.ProtectedFromScaleIn = o.ID, &o.Group, o.Protected
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationLaunchCause, o.Cause)
	if len(o.Tags) > 0 {
		tags := maps.Clone(m.Spec.Tags)
		if tags == nil {
			tags = v1alpha1.Tags{}
		}
		maps.Copy(tags, o.Tags)
		m.Spec.Tags = tags
	}
	if m.Spec.ClusterName != "" {
		metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.LabelCluster, v1alpha1.ClusterSlug(m.Spec.ClusterName))
	}
	err = l.a.ec2.Management.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		there := &v1alpha1.Machine{}
		if err := l.a.ec2.Management.Get(ctx, client.ObjectKey{Name: o.ID}, there); err != nil {
			return ec2resource.Away(fmt.Errorf("reading machine %s: %w", o.ID, err))
		}
		if g := there.Spec.ScalingGroup; g != nil && g.UID == o.Group.UID {
			return nil
		}
	}
	if err != nil {
		return ec2resource.Away(fmt.Errorf("making machine %s: %w", o.ID, err))
	}
	return nil
}

// resolve is an order as a request of RunInstances for one instance, and what that asks for.
func (l Orders) resolve(ctx context.Context, o scalinglaunch.Order) (*runInstancesInput, *wantedInstances, scalinglaunch.Resolved, error) {
	of := &versionOfTemplate{LaunchTemplateID: o.Template.ID, LaunchTemplateName: o.Template.Name, Version: o.Template.Version}
	if of.LaunchTemplateID != "" {
		of.LaunchTemplateName = ""
	}
	found, version, err := findVersion(ctx, l.a.templates, of)
	if err != nil {
		return nil, nil, scalinglaunch.Resolved{}, err
	}
	data, err := l.a.launchData(ctx, &runInstancesInput{LaunchTemplate: of})
	if err != nil {
		return nil, nil, scalinglaunch.Resolved{}, err
	}
	data.InstanceType = cmp.Or(o.InstanceType, data.InstanceType)
	one := int32(1)
	in := &runInstancesInput{Data: data, MinCount: &one, MaxCount: &one, spot: o.Spot}
	if o.Mixed {
		in.noMarketOptions = scalinglaunch.NotMixed()
	}
	switch {
	case data.Placement != nil && data.Placement.AvailabilityZone != "":
		in.Placement = nil // the group's subnets decide
	case len(data.NetworkInterfaces) > 0 && data.NetworkInterfaces[0].SubnetID != "":
		return nil, nil, scalinglaunch.Resolved{}, awsfault.Errorf(ec2resource.InvalidParameter, "The launch template %s names the subnet %s: the group's subnets are used, so leave SubnetId out", found.Name, data.NetworkInterfaces[0].SubnetID)
	}
	if len(in.NetworkInterfaces) > 0 {
		in.NetworkInterfaces[0].SubnetID = o.SubnetID
	} else {
		in.SubnetID = o.SubnetID
	}
	wanted, err := l.a.wantedInstances(ctx, in)
	if err != nil {
		return nil, nil, scalinglaunch.Resolved{}, err
	}
	return in, wanted, scalinglaunch.Resolved{
		Template:     v1alpha1.LaunchTemplateReference{ID: found.Name, Name: found.Spec.Name, Version: strconv.FormatInt(version.Number, 10)},
		InstanceType: data.InstanceType, ImageID: data.ImageID, Spot: in.isSpot(data),
	}, nil
}
