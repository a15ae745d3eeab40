// SPDX-License-Identifier: Apache-2.0

package ec2vpc

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

// Boolean is an attribute as EC2 sends and shows it.
type Boolean struct{ Value bool }

type describeVpcAttributeInput struct {
	VpcID     string
	Attribute string
	DryRun    bool
}

type describeVpcAttributeOutput struct {
	VpcID                            string
	EnableDNSSupport                 *Boolean
	EnableDNSHostnames               *Boolean
	EnableNetworkAddressUsageMetrics *Boolean
}

func (a *Actions) describeVpcAttribute() awsfront.Spec[describeVpcAttributeInput, describeVpcAttributeOutput] {
	return awsfront.Spec[describeVpcAttributeInput, describeVpcAttributeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeVpcAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.ec2.About(ctx, call, ec2id.VPC, in.VpcID)
			return WithAttribute(targets, in.Attribute, ""), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *describeVpcAttributeInput) (*describeVpcAttributeOutput, error) {
			found, err := a.ec2.VPC(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			out := &describeVpcAttributeOutput{VpcID: in.VpcID}
			switch in.Attribute {
			case "enableDnsSupport":
				out.EnableDNSSupport = &Boolean{true}
			case "enableDnsHostnames":
				out.EnableDNSHostnames = &Boolean{found.Spec.EnableDNSHostnames}
			case "enableNetworkAddressUsageMetrics":
				out.EnableNetworkAddressUsageMetrics = &Boolean{}
			default:
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter attribute is invalid. Unknown attribute.", in.Attribute)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

type modifyVpcAttributeInput struct {
	VpcID                            string
	EnableDNSSupport                 *Boolean
	EnableDNSHostnames               *Boolean
	EnableNetworkAddressUsageMetrics *Boolean
}

// attributes are those that a request sets, by the names that conditions have.
func (in *modifyVpcAttributeInput) attributes() map[string]*Boolean {
	return Given(map[string]*Boolean{
		"EnableDnsSupport": in.EnableDNSSupport, "EnableDnsHostnames": in.EnableDNSHostnames, "EnableNetworkAddressUsageMetrics": in.EnableNetworkAddressUsageMetrics,
	})
}

func (a *Actions) modifyVpcAttribute() awsfront.Spec[modifyVpcAttributeInput, struct{}] {
	return awsfront.Spec[modifyVpcAttributeInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyVpcAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.ec2.About(ctx, call, ec2id.VPC, in.VpcID)
			for name, value := range in.attributes() {
				targets = WithAttribute(targets, name, strconv.FormatBool(value.Value))
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifyVpcAttributeInput) (*struct{}, error) {
			if err := One(in.attributes()); err != nil {
				return nil, err
			}
			switch {
			case in.EnableDNSSupport != nil && !in.EnableDNSSupport.Value:
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (false) for parameter enableDnsSupport is invalid. Machines find their cluster by the VPC's name server, which is always there")
			case in.EnableNetworkAddressUsageMetrics != nil && in.EnableNetworkAddressUsageMetrics.Value:
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (true) for parameter enableNetworkAddressUsageMetrics is invalid. Muster has no such metrics")
			}
			if _, err := a.ec2.VPC(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if in.EnableDNSHostnames == nil {
				return nil, nil
			}
			v := &v1alpha1.VPC{}
			return nil, a.ec2.Change(ctx, ec2id.VPC, in.VpcID, v, func() error {
				v.Spec.EnableDNSHostnames = in.EnableDNSHostnames.Value
				return nil
			})
		},
	}
}

// Given leaves out what a request has not.
func Given(all map[string]*Boolean) map[string]*Boolean {
	for name, value := range all {
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// One refuses a request that sets no attribute, or several.
func One(attributes map[string]*Boolean) error {
	switch len(attributes) {
	case 0:
		return awsfault.Errorf(ec2resource.InvalidCombination, "No attributes specified.")
	case 1:
		return nil
	}
	return awsfault.Errorf(ec2resource.InvalidCombination, "Fields for multiple attribute types specified: %d. Change one attribute in a request.", len(attributes))
}

// WithAttribute adds the condition keys of an attribute that a request is about; value is what it sets, empty if it
// reads.
func WithAttribute(targets []awsfront.Target, name, value string) []awsfront.Target {
	for i := range targets {
		targets[i].Conditions["ec2:Attribute"] = append(targets[i].Conditions["ec2:Attribute"], name)
		if value != "" {
			targets[i].Conditions["ec2:Attribute/"+name] = []string{value}
		}
	}
	return targets
}
