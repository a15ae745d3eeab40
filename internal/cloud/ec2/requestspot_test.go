// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/terminated"
)

// requestSpot is a request for spot instances in the subnet of the cluster blue.
var requestSpot = "RequestSpotInstances&LaunchSpecification.ImageId=" + testImage + "&LaunchSpecification.InstanceType=t3.small&LaunchSpecification.SubnetId=" + subnetA

const requestTags = "&TagSpecification.1.ResourceType=spot-instances-request&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=blue"

// Each instance has a request of its own, which is fulfilled when it is answered.
func TestRequestSpotInstances(t *testing.T) {
	w := runWorld(t)
	request := requestSpot + "&InstanceCount=2&SpotPrice=0.0150&Type=one-time&InstanceInterruptionBehavior=terminate&ValidUntil=2099-01-02T03:04:05Z&ClientToken=once&LaunchSpecification.SecurityGroupId.1=sg-0123456789abcdef0" +
		"&LaunchSpecification.IamInstanceProfile.Name=node&LaunchSpecification.Monitoring.Enabled=true&LaunchSpecification.BlockDeviceMapping.1.DeviceName=/dev/xvda&LaunchSpecification.BlockDeviceMapping.1.Ebs.VolumeSize=30" + requestTags
	w.ask(request+"&DryRun=true", 412, "DryRunOperation")
	if all := w.machines(); len(all) > 0 {
		t.Fatalf("a dry run made %d machines", len(all))
	}
	w.gate.Asked = nil
	answer := w.ask(request, 200, "<state>active</state>", "<code>fulfilled</code>", "<type>one-time</type>", "<spotPrice>0.015000</spotPrice>", "<validUntil>2099-01-02T03:04:05.000Z</validUntil>", "<enabled>true</enabled>",
		"<instanceInterruptionBehavior>terminate</instanceInterruptionBehavior>", "<imageId>"+testImage+"</imageId>", "<subnetId>"+subnetA+"</subnetId>", "<tagSet><item><key>team</key><value>blue</value></item></tagSet>",
		"<name>node</name>", "<groupId>sg-0123456789abcdef0</groupId>")
	const about = "ec2:RequestSpotInstances arn:aws:ec2:eu-west-1:000000000000:"
	w.wasAsked(about+"spot-instances-request/* aws:requesttag/team=blue", about+"subnet/"+subnetA, about+"security-group/sg-0123456789abcdef0", "ec2:RequestSpotInstances arn:aws:ec2:eu-west-1::image/"+testImage,
		"ec2:CreateTags arn:aws:ec2:eu-west-1:000000000000:spot-instances-request/* aws:requesttag/team=blue", "iam:PassRole arn:aws:iam::000000000000:role/of/NodeRole ec2:region=eu-west-1 iam:associatedresourcearn=arn:aws:ec2:eu-west-1:000000000000:instance/* iam:passedtoservice=ec2.amazonaws.com")
	if asked := strings.Join(w.gate.Asked, "\n"); strings.Contains(asked, "RequestSpotInstances arn:aws:ec2:eu-west-1:000000000000:instance/") || !strings.Contains(asked, "ec2:createaction=RequestSpotInstances") {
		t.Errorf("IAM is asked %s", asked)
	}
	all := w.machines()
	if len(all) != 2 || strings.Count(answer, "<spotInstanceRequestId>") != 2 {
		t.Fatalf("%d machines: %s", len(all), answer)
	}
	for _, m := range all {
		if m.Spec.MarketType != v1alpha1.MarketSpot || m.Spec.DiskSize != 30 || m.Spec.InstanceProfile != "node" || len(m.Spec.Tags) > 0 || !strings.Contains(answer, "sir-"+strings.TrimPrefix(m.Name, "i-")) {
			t.Errorf("machine %s %+v", m.Name, m.Spec)
		}
	}
	if again := w.ask(request, 200); between(again, "<spotInstanceRequestSet>", "</spotInstanceRequestSet>") != between(answer, "<spotInstanceRequestSet>", "</spotInstanceRequestSet>") {
		t.Errorf("sent again it is %s, and was %s", again, answer)
	}
	w.ask(strings.Replace(request, "InstanceCount=2", "InstanceCount=3", 1), 400, "<Code>IdempotentParameterMismatch</Code>")
	described := w.ask("DescribeSpotInstanceRequests&Filter.1.Name=valid-until&Filter.1.Value.1=2099-01-02T03:04:05.000Z", 200)
	if n := strings.Count(described, "<spotInstanceRequestId>"); n != 2 || len(w.machines()) != 2 {
		t.Errorf("%d requests of %d machines: %s", n, len(w.machines()), described)
	}
	w.ask(requestSpot, 200, "<validUntil>"+time.Now().Add(7*24*time.Hour).UTC().Format("2006-01-02"))
	w.gate.Denies = true
	w.ask(requestSpot, 403, "UnauthorizedOperation")
	if n := len(w.machines()); n != 3 {
		t.Errorf("%d machines after a request that was denied", n)
	}
}

// The requests of a client token are described when their instances are gone, and no others are made in their place.
func TestRequestSpotInstancesAgainAfterTheEnd(t *testing.T) {
	w := runWorld(t)
	request := requestSpot + "&ClientToken=once" + requestTags
	id := between(w.ask(request, 200), "<spotInstanceRequestId>", "</spotInstanceRequestId>")
	m := w.machines()[0]
	if err := terminated.Remember(t.Context(), w.api, &m, time.Now()); err != nil {
		t.Fatal(err)
	}
	m.Finalizers = nil
	if err := w.api.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.ask(request, 200, "<spotInstanceRequestId>"+id+"</spotInstanceRequestId>", "<state>closed</state>", "<code>instance-terminated-by-user</code>", "<key>team</key>")
	if all := w.machines(); len(all) > 0 {
		t.Errorf("%d machines are made again", len(all))
	}
}

// A request that cannot be fulfilled at once, or that Muster does not keep, is refused, and nothing is made.
func TestRequestSpotInstancesRefuses(t *testing.T) {
	w := runWorld(t)
	for request, refusal := range map[string]string{
		requestSpot + "&Type=persistent":                                                    "<Code>InvalidParameterValue</Code><Message>Value (persistent) for parameter Type is invalid. Muster has one-time only",
		requestSpot + "&Type=weekly":                                                        "<Code>InvalidParameterValue</Code><Message>Value (weekly) for parameter Type",
		requestSpot + "&InstanceInterruptionBehavior=stop":                                  "<Code>InvalidParameterCombination</Code><Message>The request with type 'one-time' is not supported when instanceInterruptionBehavior is set to 'stop'.",
		requestSpot + "&InstanceInterruptionBehavior=hibernate":                             "<Code>InvalidParameterCombination</Code>",
		requestSpot + "&InstanceInterruptionBehavior=sleep":                                 "<Code>InvalidParameterValue</Code><Message>Value (sleep) for parameter InstanceInterruptionBehavior",
		requestSpot + "&InstanceCount=0":                                                    "<Code>InvalidParameterValue</Code><Message>Value (0) for parameter InstanceCount",
		requestSpot + "&InstanceCount=101":                                                  "<Code>MaxSpotInstanceCountExceeded</Code>",
		requestSpot + "&SpotPrice=cheap":                                                    "<Code>InvalidParameterValue</Code><Message>Value (cheap) for parameter SpotPrice",
		requestSpot + "&SpotPrice=0.001":                                                    "<Code>SpotMaxPriceTooLow</Code>",
		requestSpot + "&ValidUntil=2020-01-02T03:04:05Z":                                    "<Code>InvalidParameterValue</Code><Message>Value (2020-01-02T03:04:05Z) for parameter ValidUntil is invalid. It must be in the future",
		requestSpot + "&ValidFrom=2099-01-02T03:04:05Z":                                     "Muster does not support ValidFrom",
		requestSpot + "&LaunchGroup=together":                                               "Muster does not support LaunchGroup",
		requestSpot + "&AvailabilityZoneGroup=together":                                     "Muster does not support AvailabilityZoneGroup",
		requestSpot + "&BlockDurationMinutes=60":                                            "Muster does not support BlockDurationMinutes",
		requestSpot + "&LaunchSpecification.KernelId=aki-1":                                 "Muster does not support LaunchSpecification.KernelId",
		requestSpot + "&LaunchSpecification.Placement.AvailabilityZone=eu-west-1b":          "<Code>InvalidParameterCombination</Code>",
		requestSpot + "&LaunchSpecification.KeyName=none":                                   "<Code>InvalidKeyPair.NotFound</Code>",
		requestSpot + "&LaunchSpecification.IamInstanceProfile.Name=none":                   "Invalid IAM Instance Profile name",
		requestSpot + strings.Replace(requestTags, "spot-instances-request", "instance", 1): "<Code>InvalidParameterValue</Code><Message>'instance' is not a valid taggable resource type for this operation.",
		requestSpot + strings.Replace(requestTags, "=team", "=aws:team", 1):                 "aws:",
		strings.Replace(requestSpot, subnetA, "subnet-0000000000000000f", 1):                "<Code>InvalidSubnetID.NotFound</Code>",
		strings.Replace(requestSpot, "t3.small", "x9.huge", 1):                              "x9.huge",
		strings.Replace(requestSpot, "InstanceType=t3.small", "EbsOptimized=true", 1):       "<Code>MissingParameter</Code>",
		"RequestSpotInstances":                                                              "<Code>MissingParameter</Code>",
	} {
		w.ask(request, 400, refusal)
	}
	w.hostHas = capacity.Host{CPUs: 2, Memory: 4 << 30}
	w.ask(requestSpot+"&InstanceCount=50", 500, "<Code>InsufficientInstanceCapacity</Code>")
	w.ask("RequestSpotInstances&DryRun=true&Type=persistent", 400, "<Code>InvalidParameterValue</Code>")
	if all := w.machines(); len(all) > 0 {
		t.Errorf("requests that were refused made %d machines", len(all))
	}
}
