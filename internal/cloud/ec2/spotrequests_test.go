// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/machine/terminated"
)

// spotTags are tags of a launch for the request of a spot instance.
const spotTags = "&TagSpecification.3.ResourceType=spot-instances-request&TagSpecification.3.Tag.1.Key=team&TagSpecification.3.Tag.1.Value=blue"

// spotWorld has an instance on demand and a spot instance, whose machine is returned.
func spotWorld(t *testing.T) (w *world, spot *v1alpha1.Machine, request string) {
	t.Helper()
	w = runWorld(t)
	w.ask(fleetRequest(1, "on-demand", "t3.small"), 200)
	w.ask(fleetRequest(1, "spot", "t3.small")+spotTags, 200)
	for _, m := range w.machines() {
		if m.Spec.MarketType == v1alpha1.MarketSpot {
			spot = m.DeepCopy()
		}
	}
	return w, spot, "sir-" + strings.TrimPrefix(spot.Name, "i-")
}

func TestDescribeSpotInstanceRequests(t *testing.T) {
	w, spot, request := spotWorld(t)
	answer := w.ask("DescribeSpotInstanceRequests", 200, "<spotInstanceRequestId>"+request+"</spotInstanceRequestId>", "<instanceId>"+spot.Name+"</instanceId>", "<state>active</state>", "<code>fulfilled</code>",
		"<type>one-time</type>", "<spotPrice>0.020800</spotPrice>", "<productDescription>Linux/UNIX</productDescription>", "<instanceInterruptionBehavior>terminate</instanceInterruptionBehavior>",
		"<launchedAvailabilityZone>eu-west-1a</launchedAvailabilityZone>", "<imageId>"+testImage+"</imageId>", "<instanceType>t3.small</instanceType>", "<subnetId>"+subnetA+"</subnetId>",
		"<groupId>sg-0123456789abcdef0</groupId><groupName>mine</groupName>", "<tagSet><item><key>team</key><value>blue</value></item></tagSet>")
	if n := strings.Count(answer, "<spotInstanceRequestId>"); n != 1 {
		t.Errorf("%d requests: %s", n, answer)
	}
	w.wasAsked("ec2:DescribeSpotInstanceRequests * ec2:region=eu-west-1")
	w.ask("DescribeInstances&InstanceId.1="+spot.Name, 200, "<spotInstanceRequestId>"+request+"</spotInstanceRequestId>")
	for filter, want := range map[string]bool{
		"state=active": true, "state=open": false, "status-code=fulfilled": true, "instance-id=" + spot.Name: true, "instance-id=i-0": false, "launch-group=any": false,
		"launch.instance-type=t3.*": true, "launch.group-id=sg-0123456789abcdef0": true, "network-interface.subnet-id=" + subnetA: true, "network-interface.group-id=sg-1": false,
		"tag:team=blue": true, "tag:team=red": false, "tag-key=team": true, "type=one-time": true, "launched-availability-zone=eu-west-1a": true, "fault-code=any": false,
	} {
		name, value, _ := strings.Cut(filter, "=")
		answer := w.ask("DescribeSpotInstanceRequests&Filter.1.Name="+name+"&Filter.1.Value.1="+value, 200)
		if strings.Contains(answer, request) != want {
			t.Errorf("%s: %s, want it: %v", filter, answer, want)
		}
	}
	w.ask("DescribeSpotInstanceRequests&Filter.1.Name=colour&Filter.1.Value.1=red", 400, "<Code>InvalidParameterValue</Code><Message>The filter 'colour' is invalid</Message>")
	w.ask("DescribeSpotInstanceRequests&SpotInstanceRequestId.1="+request, 200, request)
	w.ask("DescribeSpotInstanceRequests&SpotInstanceRequestId.1=sir-x", 400, "InvalidSpotInstanceRequestID.Malformed")
	w.ask("DescribeSpotInstanceRequests&SpotInstanceRequestId.1=sir-0123456789abcdef0", 400, "<Code>InvalidSpotInstanceRequestID.NotFound</Code>", "The spot instance request ID 'sir-0123456789abcdef0' does not exist")
	w.ask("DescribeSpotInstanceRequests&DryRun=true", 412, "DryRunOperation")
	w.gate.Denies = true
	w.ask("DescribeSpotInstanceRequests", 403, "UnauthorizedOperation")
}

// Pages have every request once.
func TestPagesOfSpotInstanceRequests(t *testing.T) {
	w := runWorld(t)
	w.ask(fleetRequest(7, "spot", "t3.small"), 200)
	seen := map[string]bool{}
	for token, pages := "", 0; ; pages++ {
		answer := w.ask("DescribeSpotInstanceRequests&MaxResults=5"+token, 200)
		for part := range strings.SplitSeq(answer, "<spotInstanceRequestId>sir-") {
			if id, _, found := strings.Cut(part, "</spotInstanceRequestId>"); found {
				seen[id] = true
			}
		}
		_, rest, more := strings.Cut(answer, "<nextToken>")
		if !more || strings.HasPrefix(rest, "<") {
			if len(seen) != 7 || pages != 1 {
				t.Errorf("%d requests on %d pages", len(seen), pages+1)
			}
			return
		}
		next, _, _ := strings.Cut(rest, "<")
		token = "&NextToken=" + next
	}
}

// A request that gets tags is asked about as EC2 does, and a request without tags is not.
func TestTagsOfSpotInstanceRequests(t *testing.T) {
	w, _, request := spotWorld(t)
	const made = "arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/*"
	w.wasAsked("ec2:CreateFleet "+made+" aws:requesttag/team=blue", "ec2:RunInstances "+made, "ec2:CreateTags "+made)
	w.gate.Asked = nil
	w.ask(fleetRequest(1, "spot", "t3.small"), 200)
	const none = "You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request."
	w.ask(fleetRequest(1, "on-demand", "t3.small")+spotTags, 400, "<Code>InvalidParameterValue</Code><Message>"+none)
	if asked := strings.Join(w.gate.Asked, "\n"); strings.Contains(asked, "spot-instances-request") {
		t.Errorf("IAM is asked %s", asked)
	}
	both := w.ask(fleetRequest(2, "spot", "t3.small")+"&TargetCapacitySpecification.OnDemandTargetCapacity=1&TargetCapacitySpecification.SpotTargetCapacity=1"+spotTags, 200,
		"<lifecycle>spot</lifecycle>", "<lifecycle>on-demand</lifecycle>")
	if strings.Contains(both, none) {
		t.Errorf("a fleet of both markets: %s", both)
	}
	if asked := strings.Join(w.gate.Asked, "\n"); strings.Contains(asked, "aws:tagkeys=team+team") || !strings.Contains(asked, "aws:tagkeys=team ") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.ask("CreateTags&ResourceId.1="+request+"&Tag.1.Key=env&Tag.1.Value=test", 200)
	w.wasAsked("ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/" + request + " aws:requesttag/env=test aws:resourcetag/team=blue ")
	w.ask("DescribeSpotInstanceRequests&Filter.1.Name=tag:env&Filter.1.Value.1=test", 200, "<key>team</key><value>blue</value>")
	w.ask("DescribeTags&Filter.1.Name=resource-type&Filter.1.Value.1=spot-instances-request", 200, "<resourceId>"+request+"</resourceId>", "<key>env</key>")
	w.ask("DeleteTags&ResourceId.1="+request+"&Tag.1.Key=env", 200)
	if answer := w.ask("DescribeSpotInstanceRequests&SpotInstanceRequestId.1="+request, 200, "<key>team</key>"); strings.Contains(answer, "env") {
		t.Errorf("a tag that was deleted: %s", answer)
	}
	onDemand := ""
	for _, m := range w.machines() {
		if m.Spec.MarketType != v1alpha1.MarketSpot {
			onDemand = "sir-" + strings.TrimPrefix(m.Name, "i-")
		}
	}
	for _, id := range []string{onDemand, "sir-0123456789abcdef0"} {
		w.ask("CreateTags&ResourceId.1="+id+"&Tag.1.Key=env&Tag.1.Value=test", 400, "InvalidSpotInstanceRequestID.NotFound")
	}
}

func TestCancelSpotInstanceRequests(t *testing.T) {
	w, spot, request := spotWorld(t)
	cancel, describe := "CancelSpotInstanceRequests&SpotInstanceRequestId.1="+request, "DescribeSpotInstanceRequests&SpotInstanceRequestId.1="+request
	w.ask("CancelSpotInstanceRequests", 400, "<Code>MissingParameter</Code>")
	w.ask("CancelSpotInstanceRequests&SpotInstanceRequestId.1=sir-x", 400, "InvalidSpotInstanceRequestID.Malformed")
	w.ask(cancel+"&SpotInstanceRequestId.2=", 400, "InvalidSpotInstanceRequestID.Malformed")
	w.ask("CancelSpotInstanceRequests&SpotInstanceRequestId.1=", 400, "InvalidSpotInstanceRequestID.Malformed")
	w.ask(cancel+"&SpotInstanceRequestId.2=sir-0123456789abcdef0", 400, "InvalidSpotInstanceRequestID.NotFound")
	w.ask(cancel+"&DryRun=true", 412, "DryRunOperation")
	w.gate.Denies = true
	w.ask(cancel, 403, "UnauthorizedOperation")
	w.gate.Denies = false
	w.ask(describe, 200, "<state>active</state>", "<code>fulfilled</code>")
	for range 2 {
		w.ask(cancel, 200, "<spotInstanceRequestId>"+request+"</spotInstanceRequestId><state>cancelled</state>")
		w.wasAsked("ec2:CancelSpotInstanceRequests arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/" + request + " aws:resourcetag/team=blue ")
		w.ask(describe, 200, "<state>cancelled</state>", "<code>request-canceled-and-instance-running</code>", "<key>team</key>")
	}
	if m := w.machine(spot.Name); m == nil || !m.DeletionTimestamp.IsZero() {
		t.Errorf("the machine is %+v", m)
	}
	w.ask("TerminateInstances&InstanceId.1="+spot.Name, 200)
	w.ask(describe, 200, "<state>cancelled</state>", "<code>instance-terminated-by-user</code>")
}

// The request of an instance that is gone is closed, and has what the instance was launched as, for as long as the instance is described.
func TestSpotInstanceRequestOfATerminatedInstance(t *testing.T) {
	w, spot, request := spotWorld(t)
	describe := "DescribeSpotInstanceRequests&SpotInstanceRequestId.1=" + request
	m := w.machine(spot.Name)
	began := metav1.NewMicroTime(time.Now().Truncate(time.Second))
	m.Spec.Drill = &v1alpha1.MachineDrill{Kind: v1alpha1.DrillSpotInterruption, Began: began, Ends: metav1.NewTime(began.Add(2 * time.Minute))}
	m.Status.Drill = &v1alpha1.MachineDrillStatus{Kind: v1alpha1.DrillSpotInterruption, Began: began}
	reasons := map[string]string{"instance-terminated-by-experiment": "Server.SpotInstanceTermination", "instance-terminated-by-user": "Client.UserInitiatedShutdown"}
	for name, interrupted := range map[string]*v1alpha1.Machine{"instance-terminated-by-experiment": m, "instance-terminated-by-user": spot} {
		w, _, _ := spotWorld(t)
		if err := terminated.Remember(t.Context(), w.api, interrupted, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.ask(describe, 200, "<state>closed</state>", "<code>"+name+"</code>", "<subnetId>"+subnetA+"</subnetId>", "<groupId>sg-0123456789abcdef0</groupId>", "<key>team</key>")
		w.ask("DescribeInstances&InstanceId.1="+spot.Name, 200, "<stateReason><code>"+reasons[name]+"</code>")
		w.ask("CancelSpotInstanceRequests&SpotInstanceRequestId.1="+request, 200, "<state>closed</state>")
		w.ask("CreateTags&ResourceId.1="+request+"&Tag.1.Key=env&Tag.1.Value=test", 400, "InvalidSpotInstanceRequestID.NotFound")
	}
}

// RunInstances buys spot instances, too, and refuses what they cannot be before it makes one.
func TestRunInstancesOfSpotInstances(t *testing.T) {
	w := runWorld(t)
	market := run + "&MaxCount=1&SubnetId=" + subnetA + "&InstanceMarketOptions.MarketType=spot"
	option := market + "&InstanceMarketOptions.SpotOptions."
	for request, code := range map[string]string{
		strings.Replace(market, "=spot", "=capacity-block", 1): "InvalidParameterValue",
		option + "SpotInstanceType=persistent":                 "InvalidParameterValue",
		option + "InstanceInterruptionBehavior=hibernate":      "InvalidParameterValue",
		option + "MaxPrice=cheap":                              "InvalidParameterValue",
		option + "MaxPrice=NaN":                                "InvalidParameterValue",
		option + "MaxPrice=-1":                                 "InvalidParameterValue",
		option + "MaxPrice=0x1p-3":                             "InvalidParameterValue",
		option + "MaxPrice=1_0":                                "InvalidParameterValue",
		option + "MaxPrice=0.03":                               "SpotMaxPriceTooLow",
		option + "BlockDurationMinutes=60":                     "InvalidParameter",
		option + "ValidUntil=2026-12-01T00:00:00Z":             "InvalidParameterCombination",
		strings.Replace(option, "MarketType=spot&InstanceMarketOptions.", "", 1) + "MaxPrice=0.05": "MissingParameter",
		option + "MaxPrice=0.05&" + "InstanceInterruptionBehavior=stop":                            "UnknownParameter",
	} {
		w.ask(request, 400, "<Code>"+code)
	}
	if all := w.machines(); len(all) > 0 {
		t.Errorf("requests that were refused made %d machines", len(all))
	}
	w.gate.Asked = nil
	w.ask(option+"MaxPrice=0.05&InstanceMarketOptions.SpotOptions.SpotInstanceType=one-time&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=terminate"+strings.ReplaceAll(spotTags, "TagSpecification.3", "TagSpecification.1"), 200,
		"<instanceLifecycle>spot</instanceLifecycle>", "<spotInstanceRequestId>sir-")
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/* aws:requesttag/team=blue", "ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/*")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "ec2:instancemarkettype=spot") || strings.Contains(asked, "ec2:instancemarkettype=on-demand") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.ask("DescribeSpotInstanceRequests", 200, "<spotPrice>0.050000</spotPrice>", "<key>team</key>")
}

// A spot instance of a one-time request is not stopped, as on EC2, nor is another that is named with it.
func TestSpotInstancesAreNotStopped(t *testing.T) {
	w, spot, _ := spotWorld(t)
	onDemand := ""
	for _, m := range w.machines() {
		m.Status.Phase, m.Status.ProviderID = v1alpha1.MachineReady, "local:///"+m.Name
		if err := w.api.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		if m.Name != spot.Name {
			onDemand = m.Name
		}
	}
	stop := "StopInstances&InstanceId.1=" + onDemand
	w.ask(stop+"&InstanceId.2="+spot.Name, 400, "<Code>UnsupportedOperation</Code><Message>You can't stop the Spot Instance '"+spot.Name+"' because it is associated with a one-time Spot Instance request.")
	for _, m := range w.machines() {
		if m.Spec.PowerState != "" {
			t.Errorf("a request that was refused stopped %s", m.Name)
		}
	}
	w.ask(stop, 200, "<name>stopping</name>")
}

// The spot options of a launch template make its instances spot instances, and options of RunInstances replace them.
func TestRunInstancesOfASpotTemplate(t *testing.T) {
	w := runWorld(t)
	const options = "LaunchTemplateData.InstanceMarketOptions."
	w.ask("CreateLaunchTemplate&LaunchTemplateName=spot&LaunchTemplateData.InstanceType=t3.small&LaunchTemplateData.ImageId="+testImage+"&"+options+"MarketType=spot&"+options+"SpotOptions.MaxPrice=0.0150&"+
		options+"SpotOptions.SpotInstanceType=one-time&"+options+"SpotOptions.InstanceInterruptionBehavior=terminate", 200)
	const kept = "<instanceMarketOptions><marketType>spot</marketType><spotOptions><instanceInterruptionBehavior>terminate</instanceInterruptionBehavior><maxPrice>0.0150</maxPrice><spotInstanceType>one-time</spotInstanceType></spotOptions></instanceMarketOptions>"
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=spot&SourceVersion=1&LaunchTemplateData.InstanceType=m5.large", 200, kept)
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=spot&SourceVersion=1&"+options+"SpotOptions.ValidUntil=2030-01-02T03:04:05Z", 200, "<instanceMarketOptions><spotOptions><validUntil>2030-01-02T03:04:05.000Z</validUntil></spotOptions></instanceMarketOptions>")
	w.ask("DescribeLaunchTemplateVersions&LaunchTemplateName=spot&LaunchTemplateVersion.1=1", 200, kept)
	of := "RunInstances&MinCount=1&MaxCount=1&SubnetId=" + subnetA + "&LaunchTemplate.LaunchTemplateName=spot&LaunchTemplate.Version="
	for request, refusal := range map[string]string{
		of + "2": "<Code>SpotMaxPriceTooLow</Code>", // the type of version 2 costs more
		of + "3": "<Code>MissingParameter</Code><Message>The request must contain the parameter MarketType",
		of + "3&InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.ValidUntil=2030-01-02T03:04:05Z": "<Code>InvalidParameterCombination</Code>",
	} {
		w.ask(request, 400, refusal)
	}
	w.ask(strings.ReplaceAll(fleetRequest(1, "on-demand"), "=nodes", "=spot")+"&LaunchTemplateConfigs.1.Overrides.1.SubnetId="+subnetA, 400, "<Code>InvalidParameterCombination</Code>", "The launch template has InstanceMarketOptions")
	if all := w.machines(); len(all) > 0 {
		t.Errorf("requests that were refused made %d machines", len(all))
	}
	w.gate.Asked = nil
	w.ask(of+"1", 200, "<instanceLifecycle>spot</instanceLifecycle>", "<spotInstanceRequestId>sir-")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "ec2:instancemarkettype=spot") || strings.Contains(asked, "ec2:instancemarkettype=on-demand") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.ask("DescribeSpotInstanceRequests", 200, "<spotPrice>0.015000</spotPrice>")
	w.ask(of+"2&InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.MaxPrice=0.09", 200, "<instanceLifecycle>spot</instanceLifecycle>")
	w.ask("DescribeSpotInstanceRequests&Filter.1.Name=spot-price&Filter.1.Value.1=0.090000", 200, "<instanceType>m5.large</instanceType>")
}

// An Auto Scaling group of a template with spot options has spot instances. A policy of mixed instances says itself which
// instances are spot instances, so that the template is refused.
func TestOrdersOfASpotTemplate(t *testing.T) {
	w := runWorld(t)
	w.ask("CreateLaunchTemplate&LaunchTemplateName=spot&LaunchTemplateData.InstanceType=t3.small&LaunchTemplateData.ImageId="+testImage+"&LaunchTemplateData.InstanceMarketOptions.MarketType=spot", 200)
	order := scalinglaunch.Order{ID: "i-0123456789abcdef0", SubnetID: subnetA, Template: v1alpha1.LaunchTemplateReference{Name: "spot", Version: "1"}, Mixed: true}
	want := scalinglaunch.NotMixed().Error()
	for _, spot := range []bool{false, true} {
		order.Spot = spot
		if _, err := w.orders.Resolve(t.Context(), order); err == nil || err.Error() != want {
			t.Errorf("a policy of mixed instances, spot %v: %v", spot, err)
		}
		if err := w.orders.Launch(t.Context(), order); err == nil || err.Error() != want {
			t.Errorf("a launch of a policy of mixed instances, spot %v: %v", spot, err)
		}
	}
	if all := w.machines(); len(all) > 0 {
		t.Fatalf("orders that were refused made %d machines", len(all))
	}
	order.Mixed, order.Spot = false, false
	if of, err := w.orders.Resolve(t.Context(), order); err != nil || !of.Spot {
		t.Errorf("%+v, %v", of, err)
	}
	targets, err := w.orders.About(t.Context(), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: ec2resource.Service}, order)
	if err != nil || !slices.ContainsFunc(targets, func(target awsfront.Target) bool {
		return slices.Equal(target.Conditions["ec2:InstanceMarketType"], []string{"spot"})
	}) {
		t.Errorf("IAM is asked about %v, %v", targets, err)
	}
	if err := w.orders.Launch(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	w.ask("DescribeSpotInstanceRequests", 200, "<spotInstanceRequestId>sir-0123456789abcdef0</spotInstanceRequestId>")
}
