// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/scalinglaunch"
)

const (
	templateID = "lt-0123456789abcdef0"
	subnetA    = "subnet-0000000000000000a"
	subnetB    = "subnet-0000000000000000b"
	instanceC  = "i-0000000000000000c"
)

// fakeLauncher is EC2 with one launch template of two versions; it launches nothing.
type fakeLauncher struct{ api client.Client }

func launcherOf(api client.Client) fakeLauncher { return fakeLauncher{api} }

func (fakeLauncher) Template(_ context.Context, id, name string) (*v1alpha1.LaunchTemplate, error) {
	if id != templateID && name != "web" {
		return nil, launchtemplate.NameNotFound(name)
	}
	t := &v1alpha1.LaunchTemplate{ObjectMeta: metav1.ObjectMeta{Name: templateID}, Spec: v1alpha1.LaunchTemplateSpec{Name: "web", DefaultVersion: 1, LatestVersion: 2}}
	for _, n := range []int64{1, 2} {
		t.Spec.Versions = append(t.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: n, Data: runtime.RawExtension{Raw: []byte("{}")}})
	}
	return t, nil
}

func (fakeLauncher) Resolve(_ context.Context, o scalinglaunch.Order) (scalinglaunch.Resolved, error) {
	if o.InstanceType == "m5.metal" {
		return scalinglaunch.Resolved{}, awsfault.Errorf("InvalidParameterValue", "no such type")
	}
	if o.Mixed && o.Template.Version == "2" { // the version with market options
		return scalinglaunch.Resolved{}, scalinglaunch.NotMixed()
	}
	return scalinglaunch.Resolved{Template: o.Template, InstanceType: o.InstanceType}, nil
}

func (fakeLauncher) Launch(context.Context, scalinglaunch.Order) error { return nil }

func (fakeLauncher) About(_ context.Context, _ *awsfront.Call, o scalinglaunch.Order) ([]awsfront.Target, error) {
	market := map[bool]string{false: "on-demand", true: "spot"}[o.Spot]
	return []awsfront.Target{
		{Action: "ec2:RunInstances", Resource: "arn:aws:ec2:eu-west-1:000000000000:launch-template/" + o.Template.Name, Conditions: map[string][]string{}},
		{Action: "ec2:RunInstances", Resource: "arn:aws:ec2:eu-west-1:000000000000:subnet/" + o.SubnetID, Conditions: map[string][]string{"ec2:InstanceMarketType": {market}}},
	}, nil
}

const create = "CreateAutoScalingGroup&AutoScalingGroupName=own&MinSize=1&MaxSize=4&DesiredCapacity=2&LaunchTemplate.LaunchTemplateName=web&LaunchTemplate.Version=$Latest&VPCZoneIdentifier=" + subnetA + "," + subnetB

func (w *world) own() *v1alpha1.AutoScalingGroup {
	w.t.Helper()
	g := &v1alpha1.AutoScalingGroup{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "own"}, g); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return g
}

// ownWorld has a group of its own with two instances in service, and a machine of no group.
func ownWorld(t *testing.T) *world {
	t.Helper()
	w := groupWorld(t)
	w.ask(create+"&Tags.member.1.Key=team&Tags.member.1.Value=a&Tags.member.1.PropagateAtLaunch=true", 200)
	g := w.own()
	g.UID = "own-uid"
	now := metav1.Now()
	g.Status.Instances = []v1alpha1.ScalingInstance{
		{ID: "i-0000000000000001a", State: v1alpha1.LifecycleInService, Since: now, Launched: now, SubnetID: subnetA, InstanceType: "t3.small", Weight: 1, LaunchTemplate: &v1alpha1.LaunchTemplateReference{ID: templateID, Name: "web", Version: "2"}},
		{ID: "i-0000000000000001b", State: v1alpha1.LifecycleInService, Since: now, Launched: now, SubnetID: subnetB, InstanceType: "t3.small", Weight: 1},
	}
	status := g.Status
	if err := w.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	g.Status = status
	if err := w.api.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for _, i := range status.Instances {
		m := aMachine(i.ID, true)
		m.Spec = v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: i.SubnetID, ScalingGroup: &v1alpha1.MachineScalingGroup{Name: "own", UID: "own-uid"}}
		if err := w.api.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	alone := aMachine(instanceC, true)
	alone.Spec = v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: subnetA}
	if err := w.api.Create(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestCreateAutoScalingGroup(t *testing.T) {
	w := groupWorld(t)
	w.ask(create+"&Tags.member.1.Key=team&Tags.member.1.Value=a&TerminationPolicies.member.1=OldestInstance&HealthCheckGracePeriod=60&NewInstancesProtectedFromScaleIn=true"+
		"&LifecycleHookSpecificationList.member.1.LifecycleHookName=up&LifecycleHookSpecificationList.member.1.LifecycleTransition=autoscaling:EC2_INSTANCE_LAUNCHING", 200)
	g := w.own()
	if g == nil || g.Spec.MinSize != 1 || g.Spec.MaxSize != 4 || g.Spec.DesiredCapacity != 2 || *g.Spec.LaunchTemplate != (v1alpha1.LaunchTemplateReference{ID: templateID, Name: "web", Version: "$Latest"}) ||
		!slices.Equal(g.Spec.SubnetIDs, []v1alpha1.SubnetID{subnetA, subnetB}) || len(g.Spec.Hooks) != 1 || g.Spec.AutoScaling.Tags[0].PropagateAtLaunch || !g.Spec.AutoScaling.ProtectNewMachines {
		t.Fatalf("group %+v", g)
	}
	w.wasAsked("autoscaling:CreateAutoScalingGroup arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:*:autoScalingGroupName/own", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:launch-template/web")
	w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=own", 200, "<AutoScalingGroupName>own<", "<Version>$Latest<", "<LaunchTemplateName>web<", "<member>OldestInstance<", "<HealthCheckGracePeriod>60<",
		"<member>eu-west-1a</member><member>eu-west-1b</member>", "<Key>team<")
	w.ask(create, 400, "AlreadyExists", "A group with the name own already exists")
	w.ask(strings.Replace(create, "own", workers, 1), 400, "AlreadyExists")
	for request, says := range map[string]string{
		"&MinSize=5":                             "Min bound, 5, must be less than or equal to max bound, 4",
		"&DesiredCapacity=9":                     "Desired capacity:9 must be between the specified min size:1 and max size:4",
		"&MaxSize=1001":                          "must be at most 1000",
		"&LaunchTemplate.LaunchTemplateName=no":  "You must use a valid fully-formed launch template. The specified launch template, with template name no, does not exist.",
		"&LaunchTemplate.Version=3":              "Could not find the specified version 3",
		"&VPCZoneIdentifier=subnet-1":            "The subnet ID 'subnet-1' does not exist",
		"&AvailabilityZones.member.1=mars-1a":    "Invalid availability zones: [mars-1a]",
		"&AvailabilityZones.member.1=eu-west-1a": "availability zones of the specified subnets and the Auto Scaling group do not match",
		"&HealthCheckType=EBS":                   "HealthCheckType",
		"&AvailabilityZoneDistribution.CapacityDistributionStrategy=balanced-only": "CapacityDistributionStrategy",
		"&TerminationPolicies.member.1=Any":                                        "The termination policy",
		"&DesiredCapacityType=vcpu":                                                "must be units",
		"&MaxInstanceLifetime=86400":                                               "MaxInstanceLifetime",
		"&Tags.member.1.Key=aws:x":                                                 "ValidationError",
		"&AutoScalingGroupName=a:b":                                                "is not valid",
	} {
		name := "other"
		parameters := strings.Replace(create, "=own", "="+name, 1)
		key, value, _ := strings.Cut(strings.TrimPrefix(request, "&"), "=")
		if i := strings.Index(parameters, "&"+key+"="); i >= 0 {
			rest := parameters[i+1:]
			end := strings.Index(rest, "&")
			if end < 0 {
				end = len(rest)
			}
			parameters = parameters[:i] + rest[end:]
		}
		w.ask(parameters+"&"+key+"="+value, 400, says)
	}
	w.ask("CreateAutoScalingGroup&AutoScalingGroupName=x&MinSize=0&MaxSize=1&VPCZoneIdentifier="+subnetA, 400, "Valid requests must contain either LaunchTemplate")
	w.ask("CreateAutoScalingGroup&AutoScalingGroupName=x&MinSize=0&MaxSize=1&LaunchTemplate.LaunchTemplateName=web", 400, "At least one Availability Zone or VPC Subnet is required.")
	mixed := "CreateAutoScalingGroup&AutoScalingGroupName=mixed&MinSize=0&MaxSize=4&VPCZoneIdentifier=" + subnetA + "&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateId=" + templateID +
		"&MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.InstanceType=m5.large&MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.WeightedCapacity=2&MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.InstanceType="
	w.ask(mixed+"t3.small", 400, "If any of the overrides has a weight, all must have one: 1 of 2")
	plain, _, _ := strings.Cut(mixed, "&MixedInstancesPolicy.LaunchTemplate.Overrides")
	for _, of := range []string{mixed + "t3.small&MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.WeightedCapacity=1&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version=2", plain + "&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version=2"} {
		w.ask(of, 400, "<Code>InvalidQueryParameter</Code><Message>Incompatible launch template: You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions)")
	}
	w.ask(mixed+"x9.huge", 400, "The instance type", "x9.huge", "is not known")
	w.ask(mixed+"t3.small&MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.WeightedCapacity=0", 400, "must be a number from 1 to 999")
	w.ask(mixed+"t3.small&MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.WeightedCapacity=1&MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity=0", 200)
	w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=mixed", 200, "<InstanceType>m5.large<", "<WeightedCapacity>2<", "<OnDemandPercentageAboveBaseCapacity>0<", "<Version>$Default<")
	w.gate.Denies = true
	w.ask(strings.Replace(create, "=own", "=denied", 1), 403, "AccessDenied")
}

func TestOwnGroupIsChanged(t *testing.T) {
	w := ownWorld(t)
	w.ask("SetDesiredCapacity&AutoScalingGroupName=own&DesiredCapacity=3", 200)
	if g := w.own(); g.Spec.DesiredCapacity != 3 || !strings.Contains(g.Spec.Change.Cause, "a user request explicitly set group desired capacity changing the desired capacity from 2 to 3.") {
		t.Errorf("group %+v", g.Spec)
	}
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&MaxSize=2&LaunchTemplate.LaunchTemplateId="+templateID+"&LaunchTemplate.Version=1&VPCZoneIdentifier="+subnetB, 200)
	if g := w.own(); g.Spec.DesiredCapacity != 2 || g.Spec.LaunchTemplate.Version != "1" || len(g.Spec.SubnetIDs) != 1 || !strings.Contains(g.Spec.Change.Cause, "user request update of AutoScalingGroup constraints to min: 1, max: 2, desired: 2") {
		t.Errorf("group %+v", g.Spec)
	}
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&MinSize=3", 400, "Min bound, 3, must be less than or equal to max bound, 2")
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName="+workers+"&LaunchTemplate.LaunchTemplateName=web", 400, "use UpdateNodegroupVersion")
	w.ask("SuspendProcesses&AutoScalingGroupName=own&ScalingProcesses.member.1=Launch", 200)
	w.ask("CreateOrUpdateTags&Tags.member.1.ResourceId=own&Tags.member.1.ResourceType=auto-scaling-group&Tags.member.1.Key=k8s.io/cluster-autoscaler/node-template/label/a&Tags.member.1.Value=b&Tags.member.1.PropagateAtLaunch=true", 200)
	w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=own", 200, "<ProcessName>Launch<", "<Key>k8s.io/cluster-autoscaler/node-template/label/a<", "<InstanceId>i-0000000000000001a<", "<LifecycleState>InService<")
	w.ask("DescribeAutoScalingInstances&InstanceIds.member.1=i-0000000000000001a", 200, "<AutoScalingGroupName>own<", "<Version>2<", "<InstanceType>t3.small<")
	w.ask("DescribeScalingActivities&AutoScalingGroupName=own", 200, "Launching a new EC2 instance: i-0000000000000001b", "<StatusCode>Successful<")
	w.ask("SetInstanceProtection&AutoScalingGroupName=own&ProtectedFromScaleIn=true&InstanceIds.member.1=i-0000000000000001a", 200)
	w.ask("DescribeAutoScalingInstances&InstanceIds.member.1=i-0000000000000001a", 200, "<ProtectedFromScaleIn>true<")
	w.ask("DeleteAutoScalingGroup&AutoScalingGroupName=own", 400, "ResourceInUse", "ForceDelete")
	w.ask("DeleteAutoScalingGroup&AutoScalingGroupName="+workers+"&ForceDelete=true", 400, "DeleteNodegroup")
	w.ask("DeleteAutoScalingGroup&AutoScalingGroupName=own&ForceDelete=true", 200)
	w.ask("DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=own", 200, "<Status>Delete in progress<")
	w.ask("SetDesiredCapacity&AutoScalingGroupName=own&DesiredCapacity=2", 400, "ScalingActivityInProgress")
	w.wasAsked("autoscaling:DeleteAutoScalingGroup arn:aws:autoscaling:eu-west-1:000000000000:autoScalingGroup:own-uid:autoScalingGroupName/own")
}

func TestWishes(t *testing.T) {
	w := ownWorld(t)
	one, two := "i-0000000000000001a", "i-0000000000000001b"
	wish := func(id string, want v1alpha1.Wish, desired int32) {
		t.Helper()
		g := w.own()
		got := v1alpha1.Wish("")
		for _, x := range g.Spec.Wishes {
			if x.InstanceID == id {
				got = x.Wish
			}
		}
		if got != want || g.Spec.DesiredCapacity != desired {
			t.Errorf("wish %q, desired %d; want %q, %d", got, g.Spec.DesiredCapacity, want, desired)
		}
	}
	enter := "EnterStandby&AutoScalingGroupName=own&ShouldDecrementDesiredCapacity=true&InstanceIds.member.1="
	w.ask(enter+one, 200, "Moving EC2 instance to Standby: "+one, "shrinking the capacity from 2 to 1")
	wish(one, v1alpha1.WishStandby, 1)
	w.ask(enter+two, 400, "desiredSize equals minSize (1)")
	w.ask(enter+instanceA, 400, "is not part of Auto Scaling group own")
	w.ask("EnterStandby&AutoScalingGroupName="+workers+"&ShouldDecrementDesiredCapacity=true&InstanceIds.member.1="+instanceA, 400, "of the EKS node group workers")
	w.ask("ExitStandby&AutoScalingGroupName=own&InstanceIds.member.1="+one, 400, "is not in [Standby]: it is in InService")
	g := w.own()
	g.Status.Instances[0].State = v1alpha1.LifecycleStandby
	if err := w.api.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask("ExitStandby&AutoScalingGroupName=own&InstanceIds.member.1="+one, 200, "Moving EC2 instance out of Standby: "+one)
	wish(one, "", 2)

	terminate := "TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=true&InstanceId="
	w.ask(terminate+two, 200, "Terminating EC2 instance: "+two, "shrinking the capacity from 2 to 1")
	w.ask(terminate+two, 200, "shrinking the capacity from 2 to 1") // sent again, it is done once
	wish(two, v1alpha1.WishTerminated, 1)

	attach := "AttachInstances&AutoScalingGroupName=own&InstanceIds.member.1="
	w.ask(attach+instanceC, 200)
	w.ask(attach+instanceC, 200)
	wish(instanceC, v1alpha1.WishAttached, 2)
	w.ask(attach+instanceA, 400, "Instance "+instanceA+" is already a member of AutoScalingGroup "+workers)
	w.ask(attach+"i-0000000000000000f", 400, "Invalid Instance ID(s)")
	w.ask("DetachInstances&AutoScalingGroupName=own&ShouldDecrementDesiredCapacity=false&InstanceIds.member.1="+one, 200, "Detaching EC2 instance: "+one)
	wish(one, v1alpha1.WishDetached, 2)

	health := "SetInstanceHealth&InstanceId="
	w.ask(health+two+"&HealthStatus=Sick", 400, "Valid instance health states are: [Healthy, Unhealthy]")
	w.ask(health+instanceC+"&HealthStatus=Unhealthy", 400, "No managed instance found")
	w.ask(health+two+"&HealthStatus=Unhealthy", 200) // it is to be terminated already
	wish(two, v1alpha1.WishTerminated, 2)
	g = w.own()
	g.Spec.Wishes = nil
	if err := w.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask(health+two+"&HealthStatus=Unhealthy", 200)
	wish(two, v1alpha1.WishUnhealthy, 2)
	w.ask("DescribeAutoScalingInstances&InstanceIds.member.1="+two, 200, "<HealthStatus>UNHEALTHY<")
	w.ask(health+two+"&HealthStatus=Healthy", 200)
	wish(two, "", 2)
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&HealthCheckGracePeriod=3600", 200)
	w.ask(health+two+"&HealthStatus=Unhealthy", 200) // within its grace period
	wish(two, "", 2)
	w.ask(health+two+"&HealthStatus=Unhealthy&ShouldRespectGracePeriod=false", 200)
	wish(two, v1alpha1.WishUnhealthy, 2)
}

func TestLifecycleHooks(t *testing.T) {
	w := ownWorld(t)
	put := "PutLifecycleHook&AutoScalingGroupName=own&LifecycleHookName=down&LifecycleTransition=autoscaling:EC2_INSTANCE_TERMINATING"
	for request, says := range map[string]string{
		"&HeartbeatTimeout=29": "it must be from 30 to 7200",
		"&DefaultResult=MAYBE": "must be CONTINUE or ABANDON",
		"&NotificationTargetARN=arn:aws:sqs:eu-west-1:000000000000:q": "Muster sends no notifications",
	} {
		w.ask(put+request, 400, says)
	}
	w.ask("PutLifecycleHook&AutoScalingGroupName=own&LifecycleHookName=x", 400, "The lifecycle transition")
	w.ask(strings.Replace(put, "=own", "="+workers, 1), 400, "its nodes are drained")
	w.ask(put+"&HeartbeatTimeout=60", 200)
	w.ask("PutLifecycleHook&AutoScalingGroupName=own&LifecycleHookName=down&DefaultResult=CONTINUE", 200)
	w.ask("DescribeLifecycleHooks&AutoScalingGroupName=own", 200, "<LifecycleHookName>down<", "<GlobalTimeout>6000<", "<HeartbeatTimeout>60<", "<DefaultResult>CONTINUE<")

	complete := "CompleteLifecycleAction&AutoScalingGroupName=own&LifecycleHookName=down&LifecycleActionResult=CONTINUE"
	w.ask(complete+"&InstanceId=i-0000000000000001a", 400, "No active Lifecycle Action found with instance ID i-0000000000000001a")
	hold := func() {
		t.Helper()
		g := w.own()
		g.Status.Instances[0].State = v1alpha1.LifecycleTerminatingWait
		g.Status.Instances[0].Actions = []v1alpha1.LifecycleAction{{Hook: "down", Token: "token-1", Deadline: metav1.NewTime(time.Now().Add(time.Minute)), Last: metav1.NewTime(time.Now().Add(time.Hour)), DefaultResult: v1alpha1.LifecycleContinue}}
		if err := w.api.Status().Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	hold()
	before := w.own().Status.Instances[0].Actions[0].Deadline
	beat := "RecordLifecycleActionHeartbeat&AutoScalingGroupName=own&LifecycleHookName=down"
	w.ask(beat+"&InstanceId="+instanceA, 400, "The instance "+instanceA+" is not part of Auto Scaling group own")
	w.ask(beat+"&InstanceId=i-0000000000000001b", 400, "No active Lifecycle Action found with instance ID i-0000000000000001b")
	w.ask(beat+"&LifecycleActionToken=11111111-2222-3333-4444-555555555555", 400, "No active Lifecycle Action found with token")
	w.ask(beat, 400, "write InstanceId or LifecycleActionToken")
	w.ask("RecordLifecycleActionHeartbeat&AutoScalingGroupName=own&LifecycleHookName=up&InstanceId=i-0000000000000001a", 400, "No Lifecycle Hook found with name: up")
	if after := w.own().Status.Instances[0].Actions[0].Deadline; !after.Equal(&before) {
		t.Errorf("a heartbeat that is refused moved the deadline: %v, %v", before, after)
	}
	w.ask(beat+"&InstanceId=i-0000000000000001a", 200)
	w.ask(strings.Replace(complete, "CONTINUE", "STOP", 1)+"&InstanceId=i-0000000000000001a", 400, "must be CONTINUE or ABANDON")
	w.ask(complete+"&InstanceId=i-0000000000000001a", 200)
	if got := w.own().Status.Instances[0].Actions[0].Result; got != v1alpha1.LifecycleContinue {
		t.Errorf("result %q", got)
	}
	w.ask(complete+"&InstanceId=i-0000000000000001a", 400, "it was completed, or its time is up")
	w.ask("DescribeScalingActivities&AutoScalingGroupName=own", 200)
	hold()
	w.ask("DeleteLifecycleHook&AutoScalingGroupName=own&LifecycleHookName=down", 200)
	if g := w.own(); len(g.Spec.Hooks) != 0 || g.Status.Instances[0].Actions[0].Result != v1alpha1.LifecycleContinue {
		t.Errorf("group %+v", g)
	}
	w.ask("DeleteLifecycleHook&AutoScalingGroupName=own&LifecycleHookName=down", 400, "No Lifecycle Hook found")
	w.gate.Denies = true
	w.ask(complete+"&InstanceId=i-0000000000000001a", 403, "AccessDenied")
}

func TestScheduledActions(t *testing.T) {
	w := ownWorld(t)
	put := func(name string) string {
		return "PutScheduledUpdateGroupAction&AutoScalingGroupName=" + name + "&ScheduledActionName=night&Recurrence=0 22 * * *&TimeZone=Europe/Berlin&DesiredCapacity="
	}
	w.ask(put("own")+"1", 200)
	w.ask(put(workers)+"1", 200)
	if s := w.nodeGroup().Spec.ScalingGroup().ScheduledActions; len(s) != 1 || *s[0].DesiredCapacity != 1 {
		t.Errorf("of the node group: %+v", s)
	}
	w.ask("DescribeScheduledActions", 200, "<AutoScalingGroupName>own<", "<AutoScalingGroupName>"+workers, "<Recurrence>0 22 * * *<", "<TimeZone>Europe/Berlin<", "<StartTime>", ":scheduledActionName/night<")
	w.ask("DescribeScheduledActions&AutoScalingGroupName=none", 400, "name not found")
	for parameters, says := range map[string]string{
		"&Recurrence=0 22 * * *":                                                         "changes no size",
		"&DesiredCapacity=1":                                                             "has no time",
		"&DesiredCapacity=1&StartTime=2020-01-01T00:00:00Z":                              "Given start time is in the past",
		"&DesiredCapacity=1&Recurrence=61 * * * *":                                       "Given recurrence string",
		"&DesiredCapacity=1&Recurrence=0 0 31 2 *":                                       "would never run",
		"&DesiredCapacity=1&Recurrence=* * * * *&TimeZone=Mars/X":                        "The time zone",
		"&MinSize=3&MaxSize=2&Recurrence=* * * * *":                                      "Min bound, 3, must be less than or equal to max bound, 2",
		"&DesiredCapacity=3&MaxSize=2&Recurrence=* * * * *":                              "Desired capacity:3 must be between",
		"&MaxSize=1001&Recurrence=* * * * *":                                             "it must be from 0 to 1000",
		"&MinSize=-1&Recurrence=* * * * *":                                               "it must be from 0 to 1000",
		"&DesiredCapacity=3&StartTime=2046-01-02T00:00:00Z&EndTime=2046-01-01T00:00:00Z": "must be after the start time",
	} {
		w.ask("PutScheduledUpdateGroupAction&AutoScalingGroupName=own&ScheduledActionName=bad"+parameters, 400, "ValidationError", says)
	}
	w.ask("BatchPutScheduledUpdateGroupAction&AutoScalingGroupName=own&ScheduledUpdateGroupActions.member.1.ScheduledActionName=good&ScheduledUpdateGroupActions.member.1.MinSize=0"+
		"&ScheduledUpdateGroupActions.member.1.Recurrence=0 5 * * *&ScheduledUpdateGroupActions.member.2.ScheduledActionName=bad", 200, "<ScheduledActionName>bad<", "<ErrorCode>ValidationError<")
	w.ask("BatchDeleteScheduledAction&AutoScalingGroupName=own&ScheduledActionNames.member.1=good&ScheduledActionNames.member.2=bad", 200, "<ScheduledActionName>bad<")
	w.ask("DeleteScheduledAction&AutoScalingGroupName=own&ScheduledActionName=night", 200)
	w.ask("DeleteScheduledAction&AutoScalingGroupName=own&ScheduledActionName=night", 400, "Scheduled action name not found")
	if s := w.own().Spec.AutoScaling.ScheduledActions; len(s) != 0 {
		t.Errorf("left %+v", s)
	}
}

func TestInstanceRefreshes(t *testing.T) {
	w := ownWorld(t)
	start := "StartInstanceRefresh&AutoScalingGroupName=own"
	for parameters, says := range map[string]string{
		"&Strategy=ReplaceRootVolume":                                  "must be Rolling",
		"&Preferences.MinHealthyPercentage=101":                        "from 0 to 100",
		"&Preferences.MaxHealthyPercentage=99":                         "from 100 to 200",
		"&Preferences.MinHealthyPercentage=100":                        "lets no instance go before another is in service",
		"&Preferences.StandbyInstances=Terminate":                      "must be Ignore",
		"&Preferences.ScaleInProtectedInstances=Any":                   "must be Refresh, Ignore or Wait",
		"&Preferences.AutoRollback=true":                               "AutoRollback needs a DesiredConfiguration",
		"&Preferences.CheckpointDelay=5":                               "CheckpointDelay",
		"&DesiredConfiguration.LaunchTemplate.LaunchTemplateName=none": "fully-formed launch template",
	} {
		w.ask(start+parameters, 400, says)
	}
	w.ask(strings.Replace(start, "=own", "="+workers, 1), 400, "UpdateNodegroupVersion")
	w.ask("CancelInstanceRefresh&AutoScalingGroupName=own", 400, "ActiveInstanceRefreshNotFound")
	w.ask(start+"&Preferences.MinHealthyPercentage=50&Preferences.SkipMatching=true", 200, "<InstanceRefreshId>")
	id := w.own().Spec.Refresh.ID
	w.ask(start, 400, "InstanceRefreshInProgress", id)
	w.ask("DescribeInstanceRefreshes&AutoScalingGroupName=own", 200, "<InstanceRefreshId>"+id, "<Status>Pending<", "<MinHealthyPercentage>50<", "<SkipMatching>true<")
	w.ask("RollbackInstanceRefresh&AutoScalingGroupName=own", 400, "IrreversibleInstanceRefresh")
	w.ask("CancelInstanceRefresh&AutoScalingGroupName=own", 200, id)
	g := w.own()
	if g.Spec.Refresh.Ended != v1alpha1.RefreshCancelled {
		t.Errorf("refresh %+v", g.Spec.Refresh)
	}
	g.Status.Refreshes = []v1alpha1.RefreshStatus{{ID: id, Status: v1alpha1.RefreshCancelledState, StartTime: metav1.Now(), EndTime: new(metav1.Now()), Total: 4, Left: 1, Asked: *g.Spec.Refresh}}
	if err := w.api.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeInstanceRefreshes&AutoScalingGroupName=own&InstanceRefreshIds.member.1="+id, 200, "<Status>Cancelled<", "<PercentageComplete>75<", "<InstancesToUpdate>1<")
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&LaunchTemplate.LaunchTemplateName=web&LaunchTemplate.Version=1", 200)
	w.ask(start+"&Preferences.AutoRollback=true&DesiredConfiguration.LaunchTemplate.LaunchTemplateName=web&DesiredConfiguration.LaunchTemplate.Version=2", 200)
	w.ask("RollbackInstanceRefresh&AutoScalingGroupName=own", 200)
	if r := w.own().Spec.Refresh; r.Ended != v1alpha1.RefreshRolledBack || r.LaunchTemplate.Version != "2" {
		t.Errorf("refresh %+v", r)
	}
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:launch-template/web")
}
