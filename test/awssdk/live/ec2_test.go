// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// userData is a document that an instance could boot with.
func userData() *string {
	return aws.String(base64.StdEncoding.EncodeToString([]byte("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 30}}}\n")))
}

func ec2Actions() []action {
	return slices.Concat(networkActions(), launchTemplateActions(), catalogueActions(), instanceActions(), securityGroupActions())
}

func launchTemplateActions() []action {
	template := aws.String("live")
	return []action{
		{"DescribeAvailabilityZones", func(w *world) {
			out := need(w.ec2.DescribeAvailabilityZones(w.ctx(), &ec2.DescribeAvailabilityZonesInput{
				Filters: []types.Filter{{Name: aws.String("state"), Values: []string{"available"}}},
			}))
			w.has(out, "AvailabilityZones[].ZoneName", "AvailabilityZones[].ZoneId", "AvailabilityZones[].RegionName", "AvailabilityZones[].State")
		}},
		{"DescribeVpcs", func(w *world) {
			out := need(w.ec2.DescribeVpcs(w.ctx(), &ec2.DescribeVpcsInput{Filters: []types.Filter{{Name: aws.String("is-default"), Values: []string{"true"}}}}))
			w.has(out, "Vpcs[].VpcId", "Vpcs[].CidrBlock", "Vpcs[].State")
			w.notes["vpc"] = *out.Vpcs[0].VpcId
		}},
		{"CreateLaunchTemplate", func(w *world) {
			create := func(dry bool) (*ec2.CreateLaunchTemplateOutput, error) {
				return w.ec2.CreateLaunchTemplate(w.ctx(), &ec2.CreateLaunchTemplateInput{
					DryRun: aws.Bool(dry), LaunchTemplateName: template, LaunchTemplateData: &types.RequestLaunchTemplateData{UserData: userData()},
				})
			}
			_, err := create(true)
			w.refused("DryRunOperation", err)
			out := need(create(false))
			w.has(out, "LaunchTemplate.LaunchTemplateId", "LaunchTemplate.LaunchTemplateName", "LaunchTemplate.LatestVersionNumber", "LaunchTemplate.DefaultVersionNumber")
			w.notes["lt"] = *out.LaunchTemplate.LaunchTemplateId
			_, err = create(false)
			w.refused("InvalidLaunchTemplateName.AlreadyExistsException", err)
		}},
		{"CreateLaunchTemplateVersion", func(w *world) {
			out := need(w.ec2.CreateLaunchTemplateVersion(w.ctx(), &ec2.CreateLaunchTemplateVersionInput{
				LaunchTemplateId: aws.String(w.notes["lt"]), LaunchTemplateData: &types.RequestLaunchTemplateData{UserData: userData(), InstanceType: types.InstanceTypeT3Medium},
			}))
			if *out.LaunchTemplateVersion.VersionNumber != 2 {
				w.Errorf("%+v", out.LaunchTemplateVersion)
			}
		}},
		{"ModifyLaunchTemplate", func(w *world) {
			need(w.ec2.ModifyLaunchTemplate(w.ctx(), &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: aws.String(w.notes["lt"]), DefaultVersion: aws.String("2")}))
		}},
		{"DescribeLaunchTemplates", func(w *world) {
			out := need(w.ec2.DescribeLaunchTemplates(w.ctx(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{*template}}))
			if len(out.LaunchTemplates) != 1 || *out.LaunchTemplates[0].DefaultVersionNumber != 2 || *out.LaunchTemplates[0].LatestVersionNumber != 2 {
				w.Errorf("%+v", out.LaunchTemplates)
			}
			_, err := w.ec2.DescribeLaunchTemplates(w.ctx(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-0123456789abcdef0"}})
			w.refused("InvalidLaunchTemplateId.NotFound", err)
		}},
		{"DescribeLaunchTemplateVersions", func(w *world) {
			out := need(w.ec2.DescribeLaunchTemplateVersions(w.ctx(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: template, Versions: []string{"$Latest"}}))
			w.has(out, "LaunchTemplateVersions[].LaunchTemplateData.UserData", "LaunchTemplateVersions[].LaunchTemplateData.InstanceType", "LaunchTemplateVersions[].VersionNumber")
		}},
		{"DeleteLaunchTemplateVersions", func(w *world) {
			out := need(w.ec2.DeleteLaunchTemplateVersions(w.ctx(), &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(w.notes["lt"]), Versions: []string{"1"}}))
			w.has(out, "SuccessfullyDeletedLaunchTemplateVersions[].VersionNumber")
		}},
		{"DeleteLaunchTemplate", func(w *world) {
			need(w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: template}))
			_, err := w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(w.notes["lt"])})
			w.refused("InvalidLaunchTemplateId.NotFound", err)
		}},
	}
}

func instanceActions() []action {
	return []action{
		{"RunInstances", func(w *world) {
			in := &ec2.RunInstancesInput{
				ImageId: aws.String(w.notes["ami"]), InstanceType: types.InstanceTypeT3Small, MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(w.subnets[0]), DryRun: aws.Bool(true),
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("live")}}}}, ClientToken: aws.String("live"),
			}
			_, err := w.ec2.RunInstances(w.ctx(), in)
			w.refused("DryRunOperation", err)
			in.DryRun = nil
			out, again := need(w.ec2.RunInstances(w.ctx(), in)), need(w.ec2.RunInstances(w.ctx(), in))
			w.has(out, "ReservationId", "OwnerId", "Instances[].InstanceId", "Instances[].InstanceType", "Instances[].ImageId", "Instances[].State.Name", "Instances[].SubnetId", "Instances[].VpcId",
				"Instances[].Placement.AvailabilityZone", "Instances[].LaunchTime")
			id := *out.Instances[0].InstanceId
			if *again.Instances[0].InstanceId != id {
				w.Errorf("sent twice: %s and %s", id, *again.Instances[0].InstanceId)
			}
			of := &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
			must(ec2.NewInstanceRunningWaiter(w.ec2, func(o *ec2.InstanceRunningWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
			need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))
			must(ec2.NewInstanceTerminatedWaiter(w.ec2, func(o *ec2.InstanceTerminatedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
		}},
		{"CreateFleet", func(w *world) {
			template := need(w.ec2.CreateLaunchTemplate(w.ctx(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("live-fleet"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(w.notes["ami"])},
			})).LaunchTemplate
			in := &ec2.CreateFleetInput{
				Type: types.FleetTypeInstant, DryRun: aws.Bool(true), ClientToken: aws.String("live"), OnDemandOptions: &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyPrioritized},
				TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
				TagSpecifications:           []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("live")}}}},
				LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
					LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: template.LaunchTemplateName, Version: aws.String("$Latest")},
					Overrides: []types.FleetLaunchTemplateOverridesRequest{
						{InstanceType: types.InstanceTypeT3Small, SubnetId: aws.String("subnet-0123456789abcdef0"), Priority: aws.Float64(1)},
						{InstanceType: types.InstanceTypeT3Small, SubnetId: aws.String(w.subnets[0]), Priority: aws.Float64(2)},
					},
				}},
			}
			_, err := w.ec2.CreateFleet(w.ctx(), in)
			w.refused("DryRunOperation", err)
			in.DryRun = nil
			out, again := need(w.ec2.CreateFleet(w.ctx(), in)), need(w.ec2.CreateFleet(w.ctx(), in))
			w.has(out, "FleetId", "Instances[].InstanceIds", "Instances[].InstanceType", "Instances[].Lifecycle", "Instances[].LaunchTemplateAndOverrides.Overrides.ImageId",
				"Instances[].LaunchTemplateAndOverrides.Overrides.AvailabilityZone", "Instances[].LaunchTemplateAndOverrides.Overrides.SubnetId", "Errors[].LaunchTemplateAndOverrides.Overrides.SubnetId")
			if code := aws.ToString(out.Errors[0].ErrorCode); code != "InvalidSubnetID.NotFound" {
				w.Errorf("%s", code)
			}
			ids := out.Instances[0].InstanceIds
			if again.Instances[0].InstanceIds[0] != ids[0] {
				w.Errorf("sent twice: %s and %s", ids, again.Instances[0].InstanceIds)
			}
			need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: ids}))
			must(ec2.NewInstanceTerminatedWaiter(w.ec2, func(o *ec2.InstanceTerminatedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), &ec2.DescribeInstancesInput{InstanceIds: ids}, patience))
			need(w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: template.LaunchTemplateId}))
			in.ClientToken = aws.String("live-again")
			_, err = w.ec2.CreateFleet(w.ctx(), in)
			w.refused("InvalidLaunchTemplateName.NotFoundException", err)
		}},
		{"RequestSpotInstances", requestSpotInstances},
		{"DescribeSpotInstanceRequests", func(w *world) {
			marketOptions(w)
			template := need(w.ec2.CreateLaunchTemplate(w.ctx(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("live-spot"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(w.notes["ami"])},
			})).LaunchTemplate
			out := need(w.ec2.CreateFleet(w.ctx(), &ec2.CreateFleetInput{
				Type: types.FleetTypeInstant, TagSpecifications: tagged(types.ResourceTypeSpotInstancesRequest),
				TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeSpot},
				LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
					LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: template.LaunchTemplateId, Version: aws.String("$Latest")},
					Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: types.InstanceTypeT3Small, SubnetId: aws.String(w.subnets[0])}},
				}},
			}))
			need(w.ec2.DeleteLaunchTemplate(w.ctx(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: template.LaunchTemplateId}))
			w.notes["spot"] = out.Instances[0].InstanceIds[0]
			of := &ec2.DescribeSpotInstanceRequestsInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: []string{w.notes["spot"]}}}}
			must(ec2.NewSpotInstanceRequestFulfilledWaiter(w.ec2).Wait(w.ctx(), of, patience))
			requests := need(w.ec2.DescribeSpotInstanceRequests(w.ctx(), of))
			w.has(requests, "SpotInstanceRequests[].SpotInstanceRequestId", "SpotInstanceRequests[].InstanceId", "SpotInstanceRequests[].State", "SpotInstanceRequests[].Status.Code", "SpotInstanceRequests[].Status.UpdateTime",
				"SpotInstanceRequests[].CreateTime", "SpotInstanceRequests[].SpotPrice", "SpotInstanceRequests[].LaunchedAvailabilityZone", "SpotInstanceRequests[].LaunchSpecification.ImageId",
				"SpotInstanceRequests[].LaunchSpecification.NetworkInterfaces[].SubnetId", "SpotInstanceRequests[].Tags[].Key")
			w.notes["request"] = *requests.SpotInstanceRequests[0].SpotInstanceRequestId
		}},
		{"CancelSpotInstanceRequests", func(w *world) {
			out := need(w.ec2.CancelSpotInstanceRequests(w.ctx(), &ec2.CancelSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{w.notes["request"]}}))
			if state := out.CancelledSpotInstanceRequests[0].State; state != types.CancelSpotInstanceRequestStateCancelled {
				w.Errorf("%s", state)
			}
			_, err := w.ec2.CancelSpotInstanceRequests(w.ctx(), &ec2.CancelSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{"sir-0123456789abcdef0"}})
			w.refused("InvalidSpotInstanceRequestID.NotFound", err)
			need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{w.notes["spot"]}}))
			must(ec2.NewInstanceTerminatedWaiter(w.ec2, func(o *ec2.InstanceTerminatedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), &ec2.DescribeInstancesInput{InstanceIds: []string{w.notes["spot"]}}, patience))
			closed := need(w.ec2.DescribeSpotInstanceRequests(w.ctx(), &ec2.DescribeSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{w.notes["request"]}}))
			if code := *closed.SpotInstanceRequests[0].Status.Code; code != "instance-terminated-by-user" {
				w.Errorf("%s", code)
			}
		}},
		{"DescribeInstances", func(w *world) {
			out := need(w.ec2.DescribeInstances(w.ctx(), &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"running"}}}}))
			w.has(
				out, "Reservations[].Instances[].InstanceId", "Reservations[].Instances[].State.Name", "Reservations[].Instances[].PrivateDnsName", "Reservations[].Instances[].PrivateIpAddress",
				"Reservations[].Instances[].VpcId", "Reservations[].Instances[].SubnetId", "Reservations[].Instances[].InstanceType", "Reservations[].Instances[].Placement.AvailabilityZone",
			)
			w.notes["instance"] = *out.Reservations[0].Instances[0].InstanceId
		}},
		{"DescribeInstanceStatus", func(w *world) {
			out := need(w.ec2.DescribeInstanceStatus(w.ctx(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{w.notes["instance"]}}))
			w.has(out, "InstanceStatuses[].InstanceId", "InstanceStatuses[].InstanceState.Name")
		}},
		{"DescribeInstanceAttribute", func(w *world) {
			out := need(w.ec2.DescribeInstanceAttribute(w.ctx(), &ec2.DescribeInstanceAttributeInput{InstanceId: aws.String(w.notes["instance"]), Attribute: types.InstanceAttributeNameUserData}))
			w.has(out, "InstanceId", "UserData")
		}},
		{"ModifyInstanceAttribute", func(w *world) {
			protect := func(on bool) {
				need(w.ec2.ModifyInstanceAttribute(w.ctx(), &ec2.ModifyInstanceAttributeInput{
					InstanceId: aws.String(w.notes["instance"]), DisableApiTermination: &types.AttributeBooleanValue{Value: aws.Bool(on)},
				}))
			}
			protect(true)
			_, err := w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{w.notes["instance"]}})
			w.refused("OperationNotPermitted", err)
			protect(false)
		}},
		{"StopInstances", func(w *world) {
			out := need(w.ec2.RunInstances(w.ctx(), &ec2.RunInstancesInput{
				ImageId: aws.String(w.notes["ami"]), InstanceType: types.InstanceTypeT3Small, MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(w.subnets[0]), ClientToken: aws.String("stopped"),
			}))
			id := *out.Instances[0].InstanceId
			w.notes["stopped"] = id
			of := &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
			must(ec2.NewInstanceRunningWaiter(w.ec2, func(o *ec2.InstanceRunningWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
			_, err := w.ec2.StopInstances(w.ctx(), &ec2.StopInstancesInput{InstanceIds: []string{id}, Hibernate: aws.Bool(true)})
			w.refused("UnsupportedHibernationConfiguration", err)
			w.has(need(w.ec2.StopInstances(w.ctx(), &ec2.StopInstancesInput{InstanceIds: []string{id}})), "StoppingInstances[].InstanceId", "StoppingInstances[].CurrentState.Name", "StoppingInstances[].PreviousState.Name")
			must(ec2.NewInstanceStoppedWaiter(w.ec2, func(o *ec2.InstanceStoppedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
			w.has(need(w.ec2.DescribeInstances(w.ctx(), of)), "Reservations[].Instances[].StateTransitionReason", "Reservations[].Instances[].StateReason.Code", "Reservations[].Instances[].PrivateIpAddress")
		}},
		{"StartInstances", func(w *world) {
			id := w.notes["stopped"]
			w.has(need(w.ec2.StartInstances(w.ctx(), &ec2.StartInstancesInput{InstanceIds: []string{id}})), "StartingInstances[].InstanceId", "StartingInstances[].CurrentState.Name", "StartingInstances[].PreviousState.Name")
			of := &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
			must(ec2.NewInstanceRunningWaiter(w.ec2, func(o *ec2.InstanceRunningWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).Wait(w.ctx(), of, patience))
		}},
		{"RebootInstances", func(w *world) {
			id := w.notes["stopped"]
			need(w.ec2.RebootInstances(w.ctx(), &ec2.RebootInstancesInput{InstanceIds: []string{id}}))
			need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))
			_, err := w.ec2.StartInstances(w.ctx(), &ec2.StartInstancesInput{InstanceIds: []string{id}})
			w.refused("IncorrectInstanceState", err)
		}},
		{"TerminateInstances", func(w *world) {
			_, err := w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{w.notes["instance"]}, DryRun: aws.Bool(true)})
			w.refused("DryRunOperation", err)
			out := need(w.ec2.TerminateInstances(w.ctx(), &ec2.TerminateInstancesInput{InstanceIds: []string{w.notes["instance"]}}))
			w.has(out, "TerminatingInstances[].InstanceId", "TerminatingInstances[].CurrentState.Name", "TerminatingInstances[].PreviousState.Name")
			w.eventually(time.Minute, func() error {
				shown := need(w.ec2.DescribeInstanceStatus(w.ctx(), &ec2.DescribeInstanceStatusInput{}))
				for _, s := range shown.InstanceStatuses {
					if *s.InstanceId == w.notes["instance"] {
						return fmt.Errorf("instance %s is %s", *s.InstanceId, s.InstanceState.Name)
					}
				}
				return nil
			})
		}},
	}
}
