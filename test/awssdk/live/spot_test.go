// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// marketOptions makes a launch template with spot options, reads it back, and has it launched and refused.
func marketOptions(w *world) {
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	create := func(name string, o types.LaunchTemplateSpotMarketOptionsRequest) (*ec2.CreateLaunchTemplateOutput, error) {
		return w.ec2.CreateLaunchTemplate(w.ctx(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: &types.RequestLaunchTemplateData{
			InstanceType: types.InstanceTypeT3Small, InstanceMarketOptions: &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: &o},
		}})
	}
	_, err := create("live-persistent", types.LaunchTemplateSpotMarketOptionsRequest{SpotInstanceType: types.SpotInstanceTypePersistent})
	w.refused("InvalidParameterValue", err)
	name := aws.String("live-market")
	need(create(*name, types.LaunchTemplateSpotMarketOptionsRequest{
		SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate, MaxPrice: aws.String("0.05"), ValidUntil: &until,
	}))
	versions := need(w.ec2.DescribeLaunchTemplateVersions(w.ctx(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: name})).LaunchTemplateVersions
	market := versions[0].LaunchTemplateData.InstanceMarketOptions
	if o := market.SpotOptions; market.MarketType != types.MarketTypeSpot || *o.MaxPrice != "0.05" || o.SpotInstanceType != types.SpotInstanceTypeOneTime ||
		o.InstanceInterruptionBehavior != types.InstanceInterruptionBehaviorTerminate || !o.ValidUntil.Equal(until) {
		w.Errorf("%+v %+v", market, o)
	}
	run := func(options *types.InstanceMarketOptionsRequest) error {
		_, err := w.ec2.RunInstances(w.ctx(), &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), ImageId: aws.String(w.notes["ami"]), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(w.subnets[0]),
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: name}, InstanceMarketOptions: options,
		})
		return err
	}
	w.refused("InvalidParameterCombination", run(nil)) // ValidUntil is of persistent requests
	w.refused("DryRunOperation", run(&types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}))
	_, err = w.eks.CreateNodegroup(w.ctx(), &eks.CreateNodegroupInput{
		ClusterName: aws.String(first), NodegroupName: aws.String("spot"), NodeRole: aws.String("arn:aws:iam::" + account + ":role/muster-node"), Subnets: w.subnets[:1],
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Name: name},
	})
	if w.refused("InvalidParameterException", err); err != nil && !strings.Contains(err.Error(), "Instance market options are not supported with the launch template.") {
		w.Error(err)
	}
	need(w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: name}))
}
