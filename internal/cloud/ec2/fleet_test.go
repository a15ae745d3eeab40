// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/machine/capacity"
)

// fleetRequest is what Karpenter sends, of one launch template and some types.
func fleetRequest(total int, market string, types ...string) string {
	request := fmt.Sprintf("CreateFleet&Type=instant&TargetCapacitySpecification.TotalTargetCapacity=%d&TargetCapacitySpecification.DefaultTargetCapacityType=%s", total, market) +
		"&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=nodes&LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=$Default" +
		"&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=karpenter.sh/nodepool&TagSpecification.1.Tag.1.Value=default" +
		"&TagSpecification.2.ResourceType=fleet&TagSpecification.2.Tag.1.Key=owner&TagSpecification.2.Tag.1.Value=karpenter"
	if market == "spot" {
		request += "&SpotOptions.AllocationStrategy=price-capacity-optimized"
	} else {
		request += "&OnDemandOptions.AllocationStrategy=lowest-price"
	}
	for i, name := range types {
		over := fmt.Sprintf("&LaunchTemplateConfigs.1.Overrides.%d.", i+1)
		request += over + "InstanceType=" + name + over + "SubnetId=" + subnetA + over + "AvailabilityZone=eu-west-1a" + over + "ImageId=" + testImage
	}
	return request
}

func TestCreateFleet(t *testing.T) {
	w := runWorld(t)
	w.ask(fleetRequest(2, "on-demand", "m5.xlarge", "m5.large", "t3.medium"), 200, "<fleetId>fleet-", "<errorSet></errorSet>", "<instanceType>t3.medium</instanceType>", "<lifecycle>on-demand</lifecycle>",
		"<launchTemplateName>nodes</launchTemplateName>", "<subnetId>"+subnetA+"</subnetId>", "<availabilityZone>eu-west-1a</availabilityZone>", "<imageId>"+testImage+"</imageId>")
	all := w.machines()
	if len(all) != 2 {
		t.Fatalf("%d machines", len(all))
	}
	for _, m := range all {
		tags := m.AWSTags()
		if m.Spec.InstanceType != "t3.medium" || tags["karpenter.sh/nodepool"] != "default" || tags["from"] != "template" || tags["owner"] != "" || !strings.HasPrefix(tags["aws:ec2:fleet-id"], "fleet-") {
			t.Errorf("machine %+v with the tags %v", m.Spec, tags)
		}
	}
	w.wasAsked("ec2:CreateFleet arn:aws:ec2:eu-west-1:000000000000:fleet/* aws:requesttag/owner=karpenter", "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:instance/*",
		"ec2:CreateFleet arn:aws:ec2:eu-west-1:000000000000:instance/* aws:requesttag/from=template aws:requesttag/karpenter.sh/nodepool=default",
		"ec2:CreateFleet arn:aws:ec2:eu-west-1:000000000000:launch-template/lt-0000000000000000a", "ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:instance/*")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "ec2:createaction=CreateFleet") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.gate.Denies = true
	w.ask(fleetRequest(1, "on-demand", "t3.medium"), 403, "UnauthorizedOperation")
	if n := len(w.machines()); n != 2 {
		t.Errorf("%d machines after a request that was denied", n)
	}
}

// A dry run asks IAM about CreateFleet alone: Karpenter tries RunInstances by a dry run of its own, and its spec for a role that may
// not use RunInstances wants the one of CreateFleet to pass.
func TestDryRunOfAFleetAsksForNoRunInstances(t *testing.T) {
	w := runWorld(t)
	w.ask(fleetRequest(1, "on-demand", "t3.medium")+"&DryRun=true", 412, "DryRunOperation")
	w.wasAsked("ec2:CreateFleet arn:aws:ec2:eu-west-1:000000000000:fleet/*", "ec2:CreateFleet arn:aws:ec2:eu-west-1:000000000000:instance/*", "ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:instance/*")
	if asked := strings.Join(w.gate.Asked, "\n"); strings.Contains(asked, "ec2:RunInstances") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.gate.Denies = true
	w.ask(fleetRequest(1, "on-demand", "t3.medium")+"&DryRun=true", 403, "UnauthorizedOperation")
}

func TestCreateFleetOfSpotInstances(t *testing.T) {
	w := runWorld(t)
	w.ask(fleetRequest(1, "spot", "t3.large", "t3.small"), 200, "<lifecycle>spot</lifecycle>", "<instanceType>t3.small</instanceType>")
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:instance/*")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "ec2:instancemarkettype=spot") || strings.Contains(asked, "ec2:instancemarkettype=on-demand") {
		t.Errorf("IAM is asked %s", asked)
	}
	w.ask("DescribeInstances&Filter.1.Name=instance-lifecycle&Filter.1.Value.1=spot", 200, "<instanceLifecycle>spot</instanceLifecycle>", "<spotInstanceRequestId>sir-", "fleet-")
	// Some of both.
	w.ask(fleetRequest(3, "on-demand", "t3.small")+"&TargetCapacitySpecification.SpotTargetCapacity=1", 200, "<lifecycle>on-demand</lifecycle>", "<lifecycle>spot</lifecycle>")
	if all := w.machines(); len(all) != 4 {
		t.Errorf("%d machines", len(all))
	}
}

// IAM is asked about each market that instances are bought of, whatever the default one is.
func TestCreateFleetAsksAboutEachMarket(t *testing.T) {
	for request, markets := range map[string]string{
		fleetRequest(2, "on-demand", "t3.small") + "&TargetCapacitySpecification.SpotTargetCapacity=2": "spot",
		fleetRequest(2, "on-demand", "t3.small") + "&TargetCapacitySpecification.SpotTargetCapacity=1": "on-demand spot",
		fleetRequest(2, "spot", "t3.small") + "&TargetCapacitySpecification.OnDemandTargetCapacity=2":  "on-demand",
		fleetRequest(2, "spot", "t3.small"): "spot",
	} {
		w := runWorld(t)
		w.ask(request, 200)
		asked := strings.Join(w.gate.Asked, "\n")
		for _, market := range []string{"on-demand", "spot"} {
			if is := strings.Contains(asked, "ec2:instancemarkettype="+market); is != slices.Contains(strings.Fields(markets), market) {
				t.Errorf("%s: IAM is asked about %s: %v, want those of %s", request, market, is, markets)
			}
		}
	}
}

// IAM is asked about the subnet and the security groups of a launch with their tags, by which policies tell one cluster's
// from another's.
func TestLaunchesAreAskedAboutWithTags(t *testing.T) {
	const group = "sg-0123456789abcdef0"
	for action, request := range map[string]string{
		"RunInstances":            run + "&MaxCount=1&SubnetId=" + subnetA + "&SecurityGroupId.1=" + group,
		"CreateFleet":             fleetRequest(1, "on-demand", "t3.small"),
		"ModifyInstanceAttribute": "",
	} {
		w := runWorld(t)
		w.ask("CreateTags&ResourceId.1="+subnetA+"&ResourceId.2="+group+"&Tag.1.Key=env&Tag.1.Value=prod", 200)
		wants := []string{"security-group/" + group, "subnet/" + subnetA}
		if request == "" {
			w.ask(run+"&MaxCount=1&SubnetId="+subnetA, 200)
			request, wants = "ModifyInstanceAttribute&InstanceId="+w.machines()[0].Name+"&GroupId.1="+group, wants[:1]
		}
		w.gate.Asked = nil
		w.ask(request, 200)
		for _, want := range wants {
			w.wasAsked("ec2:" + action + " arn:aws:ec2:eu-west-1:000000000000:" + want + " aws:resourcetag/env=prod ")
		}
	}
}

// IAM is asked about launches by an Auto Scaling group with the tags of what they use, too.
func TestOrdersAreAskedAboutWithTags(t *testing.T) {
	w := runWorld(t)
	w.ask("CreateTags&ResourceId.1="+subnetA+"&Tag.1.Key=env&Tag.1.Value=prod", 200)
	w.ask("CreateLaunchTemplate&LaunchTemplateName=web&LaunchTemplateData.InstanceType=t3.small&LaunchTemplateData.ImageId="+testImage, 200)
	targets, err := w.orders.About(t.Context(), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: ec2resource.Service}, scalinglaunch.Order{SubnetID: subnetA, Template: v1alpha1.LaunchTemplateReference{Name: "web", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	is := slices.IndexFunc(targets, func(target awsfront.Target) bool { return strings.HasSuffix(target.Resource, "subnet/"+subnetA) })
	if is < 0 || !slices.Equal(targets[is].Conditions["aws:ResourceTag/env"], []string{"prod"}) {
		t.Errorf("IAM is asked about %v", targets)
	}
}

// A request with too many pools is refused before IAM is asked about each.
func TestCreateFleetBoundsItsPoolsFirst(t *testing.T) {
	w := runWorld(t)
	w.gate.Denies = true
	request := fleetRequest(1, "on-demand", "t3.small")
	for i := 2; i <= 301; i++ {
		request += fmt.Sprintf("&LaunchTemplateConfigs.1.Overrides.%d.InstanceType=t3.small", i)
	}
	w.ask(request, 400, "there may be 300")
}

// A pool without room is named, and the next one is tried.
func TestCreateFleetTriesOtherPools(t *testing.T) {
	w := runWorld(t)
	w.hostHas = capacity.Host{CPUs: 2, Memory: 12 << 30}
	priority := "&OnDemandOptions.AllocationStrategy=prioritized&LaunchTemplateConfigs.1.Overrides.1.Priority=1&LaunchTemplateConfigs.1.Overrides.2.Priority=2"
	w.ask(fleetRequest(1, "on-demand", "m5.4xlarge", "t3.small")+priority, 200, "<errorCode>InsufficientInstanceCapacity</errorCode>", "<instanceType>m5.4xlarge</instanceType>", "<instanceType>t3.small</instanceType>", "<instanceIds>")
	if all := w.machines(); len(all) != 1 || all[0].Spec.InstanceType != "t3.small" {
		t.Errorf("machines %+v", all)
	}
	// No pool has room: the errors, and no instance.
	text := w.ask(fleetRequest(1, "on-demand", "m5.4xlarge", "m5.2xlarge"), 200, "<errorCode>InsufficientInstanceCapacity</errorCode>", "<fleetInstanceSet></fleetInstanceSet>")
	if strings.Count(text, "<errorCode>") != 2 {
		t.Error(text)
	}
	w.ask(fleetRequest(1, "spot", "m5.4xlarge"), 200, "<errorCode>UnfulfillableCapacity</errorCode>", "<fleetInstanceSet></fleetInstanceSet>")
	// A pool that is not valid is named beside one that is.
	w.ask(fleetRequest(1, "on-demand", "x9.huge", "t3.small"), 200, "<instanceIds>")
	w.ask(fleetRequest(1, "on-demand", "x9.huge", "t3.small")+priority, 200, "<errorCode>InvalidParameterValue</errorCode>", "x9.huge", "<instanceIds>")
	if n := len(w.machines()); n != 3 {
		t.Errorf("%d machines", n)
	}
}

// A request without a usable pool is refused in one line, and nothing is made.
func TestCreateFleetRefuses(t *testing.T) {
	w := runWorld(t)
	good := fleetRequest(1, "on-demand", "t3.small")
	for request, code := range map[string]string{
		strings.Replace(good, "LaunchTemplateName=nodes", "LaunchTemplateId=lt-0000000000000000f", 1): "InvalidLaunchTemplateId.NotFound", // also that of another account
		strings.Replace(good, "LaunchTemplateName=nodes", "LaunchTemplateName=theirs", 1):             "InvalidLaunchTemplateName.NotFoundException",
		strings.Replace(good, "$Default", "9", 1):                                                     "InvalidLaunchTemplateId.VersionNotFound",
		fleetRequest(1, "on-demand", "x9.huge"):                                                       "InvalidParameterValue",
		strings.Replace(good, subnetA, "subnet-0000000000000000f", 1):                                 "InvalidSubnetID.NotFound",
		strings.Replace(good, "eu-west-1a", "eu-west-1b", 1):                                          "InvalidParameterCombination",
		strings.Replace(good, "Type=instant", "Type=maintain", 1):                                     "InvalidParameterValue",
		fleetRequest(0, "on-demand", "t3.small"):                                                      "InvalidParameterValue",
		fleetRequest(101, "on-demand", "t3.small"):                                                    "InvalidParameterValue",
		fleetRequest(1, "capacity-block", "t3.small"):                                                 "InvalidParameterValue",
		good + "&OnDemandOptions.AllocationStrategy=cheapest":                                         "InvalidParameterValue",
		good + "&SpotOptions.AllocationStrategy=cheapest":                                             "InvalidParameterValue",
		good + "&TargetCapacitySpecification.OnDemandTargetCapacity=2":                                "InvalidParameterValue",
		good + "&LaunchTemplateConfigs.1.Overrides.1.WeightedCapacity=2":                              "does not support",
		good + "&SpotOptions.MaxTotalPrice=1":                                                         "does not support",
		"CreateFleet&Type=instant&TargetCapacitySpecification.TotalTargetCapacity=1":                  "MissingParameter",
	} {
		text := w.ask(request, 400, code)
		if strings.Count(text, "<Message>") != 1 || strings.Contains(text, "\n<") {
			t.Errorf("%s: %s", request, text)
		}
		w.ask(request+"&DryRun=true", 400, code)
	}
	many := good
	for i := 2; i <= 301; i++ {
		many += fmt.Sprintf("&LaunchTemplateConfigs.1.Overrides.%d.InstanceType=t3.small", i)
	}
	w.ask(many, 400, "there may be 300")
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
}

func TestCreateFleetDryRun(t *testing.T) {
	w := runWorld(t)
	for _, market := range []string{"on-demand", "spot"} {
		w.ask(fleetRequest(1, market, "x9.huge", "t3.small")+"&DryRun=true", 412, "DryRunOperation")
	}
	w.hostHas = capacity.Host{CPUs: 2, Memory: 1 << 30}
	w.ask(fleetRequest(1, "on-demand", "t3.small")+"&DryRun=true", 412, "DryRunOperation")
	if n := len(w.machines()); n != 0 {
		t.Errorf("%d machines", n)
	}
}

// crashing fails all writes after some, as those of a service that is killed.
type crashing struct {
	client.Client
	left int
}

func (c *crashing) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if _, is := object.(*v1alpha1.Machine); is {
		if c.left--; c.left < 0 {
			return errors.New("killed")
		}
	}
	return c.Client.Create(ctx, object, options...)
}

// Killed after any of three writes, the same token makes what lacks: no machine twice, each with its owner's tag from the
// write on that made it.
func TestCreateFleetIsSentAgain(t *testing.T) {
	for after := range 4 {
		w := runWorld(t)
		c := &crashing{w.api, after}
		w.api = c
		w.management = c
		request := fleetRequest(3, "on-demand", "t3.small") + "&ClientToken=once"
		if after < 3 {
			w.ask(request, 503, "Unavailable")
		}
		c.left = 10
		for _, m := range w.machines() {
			if m.AWSTags()["karpenter.sh/nodepool"] != "default" {
				t.Errorf("%s has no owner: %v", m.Name, m.AWSTags())
			}
		}
		first := w.ask(request, 200, "<fleetId>fleet-")
		if again := w.ask(request, 200); between(again, "<fleetInstanceSet>", "</fleetInstanceSet>") != between(first, "<fleetInstanceSet>", "</fleetInstanceSet>") ||
			between(again, "<fleetId>", "<") != between(first, "<fleetId>", "<") {
			t.Errorf("after %d writes: %s and then %s", after, first, again)
		}
		if n := len(w.machines()); n != 3 {
			t.Errorf("after %d writes: %d machines", after, n)
		}
		w.ask(strings.Replace(request, "TotalTargetCapacity=3", "TotalTargetCapacity=2", 1), 400, "IdempotentParameterMismatch")
	}
}

// counting counts all writes.
type counting struct {
	client.Client
	writes int
}

func (c *counting) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.writes++
	return c.Client.Create(ctx, object, options...)
}

func (c *counting) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	c.writes++
	return c.Client.Update(ctx, object, options...)
}

func (c *counting) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.writes++
	return c.Client.Patch(ctx, object, patch, options...)
}

// A pod that asks for what the host has not is asked for again and again, for on-demand and spot instances: each time with
// the same answer by override, nothing is written, and no room is taken from a request that fits.
func TestCreateFleetOfWhatTheHostHasNot(t *testing.T) {
	w := runWorld(t)
	w.hostHas = capacity.Host{CPUs: 2, Memory: 12 << 30}
	c := &counting{Client: w.api}
	w.api = c
	w.management = c
	for market, code := range map[string]string{"on-demand": "InsufficientInstanceCapacity", "spot": "UnfulfillableCapacity"} {
		for n := range 20 {
			text := w.ask(fmt.Sprintf("%s&ClientToken=%s-%d", fleetRequest(1, market, "m5.2xlarge", "m5.4xlarge"), market, n), 200, "<fleetInstanceSet></fleetInstanceSet>")
			if strings.Count(text, "<errorCode>"+code+"</errorCode>") != 2 {
				t.Fatalf("%s, request %d: %s", market, n, text)
			}
		}
	}
	if c.writes != 0 || len(w.machines()) != 0 {
		t.Errorf("%d writes, %d machines", c.writes, len(w.machines()))
	}
	w.ask(fleetRequest(1, "on-demand", "m5.2xlarge", "t3.small"), 200, "<instanceIds>")
}

func TestDescribeSpotPriceHistory(t *testing.T) {
	w := newWorld(t)
	// As Karpenter asks.
	text := w.ask("DescribeSpotPriceHistory&ProductDescription.1=Linux/UNIX&ProductDescription.2=Linux/UNIX (Amazon VPC)&StartTime=2026-01-01T00:00:00Z", 200,
		"<instanceType>m5.large</instanceType>", "<spotPrice>0.038400</spotPrice>", "<productDescription>Linux/UNIX</productDescription>", "<timestamp>")
	if n := strings.Count(text, "<spotPrice>"); n != 60 {
		t.Errorf("%d prices of 20 types in 3 zones", n)
	}
	w.ask("DescribeSpotPriceHistory&ProductDescription.1=Windows", 200, "<spotPriceHistorySet></spotPriceHistorySet>")
	one := w.ask("DescribeSpotPriceHistory&InstanceType.1=m5.large&AvailabilityZone=eu-west-1b&Filter.1.Name=product-description&Filter.1.Value.1=Linux/UNIX", 200, "eu-west-1b")
	if n := strings.Count(one, "<spotPrice>"); n != 1 {
		t.Error(one)
	}
	w.ask("DescribeSpotPriceHistory&MaxResults=2000", 200, "t3a.medium")
	w.ask("DescribeSpotPriceHistory&DryRun=true", 412)
}
