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

// requestSpotInstances requests an instance, twice with one token, fails to stop it, and ends it.
func requestSpotInstances(w *world) {
	in := &ec2.RequestSpotInstancesInput{
		ClientToken: aws.String("live-request"), DryRun: aws.Bool(true), Type: types.SpotInstanceTypeOneTime, SpotPrice: aws.String("0.05"), TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}}},
		LaunchSpecification: &types.RequestSpotLaunchSpecification{ImageId: aws.String(w.notes["ami"]), InstanceType: types.InstanceTypeT3Small, SubnetId: aws.String(w.subnets[0])},
	}
	_, err := w.ec2.RequestSpotInstances(w.ctx(), in)
	w.refused("DryRunOperation", err)
	persistent := *in
	persistent.Type = types.SpotInstanceTypePersistent
	_, err = w.ec2.RequestSpotInstances(w.ctx(), &persistent)
	w.refused("InvalidParameterValue", err)
	in.DryRun = nil
	out := need(w.ec2.RequestSpotInstances(w.ctx(), in))
	w.has(out, "SpotInstanceRequests[].SpotInstanceRequestId", "SpotInstanceRequests[].InstanceId", "SpotInstanceRequests[].State", "SpotInstanceRequests[].Status.Code", "SpotInstanceRequests[].Type",
		"SpotInstanceRequests[].ValidUntil", "SpotInstanceRequests[].Tags[].Key")
	request := out.SpotInstanceRequests[0]
	if again := need(w.ec2.RequestSpotInstances(w.ctx(), in)).SpotInstanceRequests; len(again) != 1 || *again[0].SpotInstanceRequestId != *request.SpotInstanceRequestId {
		w.Errorf("sent again it is %+v, and was %s", again, *request.SpotInstanceRequestId)
	}
	must(ec2.NewSpotInstanceRequestFulfilledWaiter(w.ec2).Wait(w.ctx(), &ec2.DescribeSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{*request.SpotInstanceRequestId}}, patience))
	id := []string{*request.InstanceId}
	of := &ec2.DescribeInstancesInput{InstanceIds: id}
	must(ec2.NewInstanceRunningWaiter(w.ec2, func(o *ec2.InstanceRunningWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
	_, err = w.ec2.StopInstances(w.ctx(), &ec2.StopInstancesInput{InstanceIds: id})
	w.refused("UnsupportedOperation", err)
	need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: id}))
	must(ec2.NewInstanceTerminatedWaiter(w.ec2, func(o *ec2.InstanceTerminatedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
}
