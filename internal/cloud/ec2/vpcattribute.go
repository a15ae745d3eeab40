// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
)

// boolean is an attribute as EC2 sends and shows it.
type boolean struct{ Value bool }

type describeVpcAttributeInput struct {
	VpcID     string
	Attribute string
	DryRun    bool
}

type describeVpcAttributeOutput struct {
	VpcID                            string
	EnableDNSSupport                 *boolean
	EnableDNSHostnames               *boolean
	EnableNetworkAddressUsageMetrics *boolean
}

func (a *api) describeVpcAttribute() awsfront.Spec[describeVpcAttributeInput, describeVpcAttributeOutput] {
	return awsfront.Spec[describeVpcAttributeInput, describeVpcAttributeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeVpcAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.about(ctx, call, ec2id.VPC, in.VpcID)
			return withAttribute(targets, in.Attribute, ""), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *describeVpcAttributeInput) (*describeVpcAttributeOutput, error) {
			found, err := a.vpc(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			out := &describeVpcAttributeOutput{VpcID: in.VpcID}
			switch in.Attribute {
			case "enableDnsSupport":
				out.EnableDNSSupport = &boolean{true}
			case "enableDnsHostnames":
				out.EnableDNSHostnames = &boolean{found.Spec.EnableDNSHostnames}
			case "enableNetworkAddressUsageMetrics":
				out.EnableNetworkAddressUsageMetrics = &boolean{}
			default:
				return nil, awsfault.Errorf(invalidParameter, "Value (%.64s) for parameter attribute is invalid. Unknown attribute.", in.Attribute)
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
	EnableDNSSupport                 *boolean
	EnableDNSHostnames               *boolean
	EnableNetworkAddressUsageMetrics *boolean
}

// attributes are those that a request sets, by the names that conditions have.
func (in *modifyVpcAttributeInput) attributes() map[string]*boolean {
	return given(map[string]*boolean{
		"EnableDnsSupport": in.EnableDNSSupport, "EnableDnsHostnames": in.EnableDNSHostnames, "EnableNetworkAddressUsageMetrics": in.EnableNetworkAddressUsageMetrics,
	})
}

func (a *api) modifyVpcAttribute() awsfront.Spec[modifyVpcAttributeInput, struct{}] {
	return awsfront.Spec[modifyVpcAttributeInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyVpcAttributeInput) ([]awsfront.Target, error) {
			targets, err := a.about(ctx, call, ec2id.VPC, in.VpcID)
			for name, value := range in.attributes() {
				targets = withAttribute(targets, name, text(value.Value))
			}
			return targets, err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *modifyVpcAttributeInput) (*struct{}, error) {
			if err := one(in.attributes()); err != nil {
				return nil, err
			}
			switch {
			case in.EnableDNSSupport != nil && !in.EnableDNSSupport.Value:
				return nil, awsfault.Errorf(invalidParameter, "Value (false) for parameter enableDnsSupport is invalid. Machines find their cluster by the VPC's name server, which is always there")
			case in.EnableNetworkAddressUsageMetrics != nil && in.EnableNetworkAddressUsageMetrics.Value:
				return nil, awsfault.Errorf(invalidParameter, "Value (true) for parameter enableNetworkAddressUsageMetrics is invalid. Muster has no such metrics")
			}
			if _, err := a.vpc(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if in.EnableDNSHostnames == nil {
				return nil, nil
			}
			v := &v1alpha1.VPC{}
			return nil, a.change(ctx, ec2id.VPC, in.VpcID, v, func() error {
				v.Spec.EnableDNSHostnames = in.EnableDNSHostnames.Value
				return nil
			})
		},
	}
}

// given leaves out what a request has not.
func given(all map[string]*boolean) map[string]*boolean {
	for name, value := range all {
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// one refuses a request that sets no attribute, or several.
func one(attributes map[string]*boolean) error {
	switch len(attributes) {
	case 0:
		return awsfault.Errorf(invalidCombination, "No attributes specified.")
	case 1:
		return nil
	}
	return awsfault.Errorf(invalidCombination, "Fields for multiple attribute types specified: %d. Change one attribute in a request.", len(attributes))
}

// withAttribute adds the condition keys of an attribute that a request is about; value is what it sets, empty if it reads.
func withAttribute(targets []awsfront.Target, name, value string) []awsfront.Target {
	for i := range targets {
		targets[i].Conditions["ec2:Attribute"] = append(targets[i].Conditions["ec2:Attribute"], name)
		if value != "" {
			targets[i].Conditions["ec2:Attribute/"+name] = []string{value}
		}
	}
	return targets
}
