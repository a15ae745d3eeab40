// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
)

const (
	instanceA = "i-0000000000000000a"
	instanceB = "i-0000000000000000b"
	subnetA   = "subnet-0000000000000000a"
)

func aSubnet(id, vpc, cidr, zone string) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: cidr, AvailabilityZone: zone}}
}

// aGroupsMachine is one of a node group, that runs.
func aGroupsMachine(id string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID("uid-of-" + id), Finalizers: []string{v1alpha1.FinalizerMachine}},
		Spec: v1alpha1.MachineSpec{
			ClusterName: "blue", NodeGroup: "workers", NodeGroupUID: "11111111-2222-3333-4444-555555555555", Provider: v1alpha1.ProviderLocal, SubnetID: subnetA,
			InstanceType: "m5.large", InstanceProfile: "node", Tags: v1alpha1.Tags{"Name": "one"},
		},
		Status: v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineReady, ProviderID: v1alpha1.ProviderID("eu-west-1a", id), NodeName: "ip-10-0-0-5.eu-west-1.compute.internal",
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}},
			Join:      []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(time.Date(2026, 11, 22, 12, 0, 0, 5000, time.UTC))}},
		},
	}
}

func instancesWorld(t *testing.T) *world {
	t.Helper()
	pending := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: instanceB, UID: "b"},
		Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: subnetA, UserData: []byte("its own"), Reservation: &v1alpha1.Reservation{ID: "r-0000000000000000c", Index: 1}},
	}
	profile := &v1alpha1.IAMInstanceProfile{ObjectMeta: metav1.ObjectMeta{Name: "000000000000.node"}}
	profile.Spec.Name, profile.Spec.ARN, profile.Spec.ProfileID = "node", "arn:aws:iam::000000000000:instance-profile/of/node", "AIPAAAAAAAAAAAAAAAAAA"
	return newWorld(t, aVPC(vpcA, "10.0.0.0/16"), aSubnet(subnetA, vpcA, "10.0.0.0/24", "eu-west-1a"), aGroupsMachine(instanceA), pending, profile)
}

func TestDescribeInstances(t *testing.T) {
	w := instancesWorld(t)
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<reservationId>r-0000000000000000a</reservationId>", "<ownerId>000000000000</ownerId>", "<instanceId>"+instanceA+"</instanceId>",
		"<instanceState><code>16</code><name>running</name></instanceState>", "<privateDnsName>ip-10-0-0-5.eu-west-1.compute.internal</privateDnsName>", "<privateIpAddress>10.0.0.5</privateIpAddress>",
		"<subnetId>"+subnetA+"</subnetId>", "<vpcId>"+vpcA+"</vpcId>", "<availabilityZone>eu-west-1a</availabilityZone>", "<availabilityZoneId>euw1-az1</availabilityZoneId>", "<tenancy>default</tenancy>",
		"<launchTime>2026-11-22T12:00:00", "<arn>arn:aws:iam::000000000000:instance-profile/of/node</arn>", "<id>AIPAAAAAAAAAAAAAAAAAA</id>", "<instanceType>m5.large</instanceType>",
		"<networkInterfaceId>eni-0000000000000000a</networkInterfaceId>", "<macAddress>0a:6d:0a:00:00:05</macAddress>", "<deviceIndex>0</deviceIndex>", "<httpTokens>required</httpTokens>",
		"<architecture>x86_64</architecture>", "<rootDeviceName>/dev/xvda</rootDeviceName>", "<sourceDestCheck>true</sourceDestCheck>",
		"<key>aws:autoscaling:groupName</key><value>eks-workers-11111111-2222-3333-4444-555555555555</value>", "<key>eks:cluster-name</key><value>blue</value>",
		"<key>eks:nodegroup-name</key><value>workers</value>", "<key>kubernetes.io/cluster/blue</key><value>owned</value>", "<key>Name</key><value>one</value>")
	w.ask("DescribeInstances&InstanceId.1="+instanceB, 200, "<reservationId>r-0000000000000000c</reservationId>", "<amiLaunchIndex>1</amiLaunchIndex>", "<name>pending</name>", "<instanceType>local</instanceType>")
	for filter, want := range map[string]string{
		"instance-state-name=running": instanceA, "instance-state-code=0": instanceB, "tag:eks:nodegroup-name=work*": instanceA, "tag-key=kubernetes.io/cluster/blue": instanceA,
		"private-dns-name=ip-10-0-0-5.*": instanceA, "vpc-id=" + vpcA: instanceA, "network-interface.private-ip-address=10.0.0.5": instanceA,
		"network-interface.addresses.private-ip-address=10.0.0.5": instanceA, "iam-instance-profile.arn=*/of/node": instanceA, "reservation-id=r-0000000000000000c": instanceB,
		"metadata-options.http-tokens=required": instanceB, "instance-type=m5.*": instanceA, "subnet-id=" + subnetA: instanceB,
	} {
		name, value, _ := strings.Cut(filter, "=")
		w.ask("DescribeInstances&Filter.1.Name="+name+"&Filter.1.Value.1="+value, 200, want)
	}
	if answer := w.ask("DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=stopped", 200); strings.Contains(answer, "<instanceId>") {
		t.Errorf("instances that are stopped: %s", answer)
	}
	w.ask("DescribeInstances&InstanceId.1=i-1", 400, "InvalidInstanceID.Malformed")
	w.ask("DescribeInstances&InstanceId.1=i-0000000000000000f", 400, "<Code>InvalidInstanceID.NotFound</Code>", "The instance ID 'i-0000000000000000f' does not exist")
	w.ask("DescribeInstances&DryRun=true", 412, "DryRunOperation")
	w.wasAsked("ec2:DescribeInstances * ec2:region=eu-west-1")
	w.ask("DescribeInstances&MaxResults=5&InstanceId.1="+instanceA, 400, "<Code>InvalidParameterCombination</Code><Message>The parameter instancesSet cannot be used with the parameter maxResults</Message>")
	w.gate.Denies = true
	w.ask("DescribeInstances", 403, "UnauthorizedOperation")
}

func TestDescribeInstanceStatus(t *testing.T) {
	w := instancesWorld(t)
	answer := w.ask("DescribeInstanceStatus", 200, instanceA, "<status>ok</status>", "<status>passed</status>", "<availabilityZone>eu-west-1a</availabilityZone>")
	if strings.Contains(answer, instanceB) {
		t.Errorf("one that does not run is there: %s", answer)
	}
	w.ask("DescribeInstanceStatus&IncludeAllInstances=true", 200, instanceB, "<status>initializing</status>")
	if answer := w.ask("DescribeInstanceStatus&InstanceId.1="+instanceB, 200); strings.Contains(answer, instanceB) {
		t.Errorf("one that does not run is there: %s", answer)
	}
	w.ask("DescribeInstanceStatus&InstanceId.1=i-0000000000000000f", 400, "InvalidInstanceID.NotFound")
	w.ask("DescribeInstanceStatus&Filter.1.Name=instance-status.status&Filter.1.Value.1=ok", 200, instanceA)
}

func TestDescribeInstanceAttribute(t *testing.T) {
	w := instancesWorld(t)
	w.ask("DescribeInstanceAttribute&Attribute=userData&InstanceId="+instanceA, 200, "<userData><value>"+base64.StdEncoding.EncodeToString([]byte("told to "+instanceA)))
	w.ask("DescribeInstanceAttribute&Attribute=userData&InstanceId="+instanceB, 200, "<value>"+base64.StdEncoding.EncodeToString([]byte("its own")))
	w.ask("DescribeInstanceAttribute&Attribute=instanceType&InstanceId="+instanceA, 200, "<instanceType><value>m5.large</value></instanceType>")
	w.ask("DescribeInstanceAttribute&Attribute=disableApiTermination&InstanceId="+instanceA, 200, "<disableApiTermination><value>false</value></disableApiTermination>")
	w.ask("DescribeInstanceAttribute&Attribute=colour&InstanceId="+instanceA, 400, "InvalidParameterValue")
	w.ask("DescribeInstanceAttribute&Attribute=userData&InstanceId=i-0000000000000000f", 400, "InvalidInstanceID.NotFound")
	w.wasAsked("ec2:DescribeInstanceAttribute arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA + " aws:resourcetag/")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "ec2:attribute=userData") {
		t.Errorf("IAM is asked %s", asked)
	}
}

func TestModifyInstanceAttribute(t *testing.T) {
	w := instancesWorld(t)
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&DisableApiTermination.Value=true&DryRun=true", 412, "DryRunOperation")
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&DisableApiTermination.Value=true", 200)
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&Attribute=sourceDestCheck&Value=false", 200)
	m := w.machine(instanceA)
	if !m.Spec.DisableAPITermination || !m.Spec.DisableSourceCheck {
		t.Errorf("spec %+v", m.Spec)
	}
	w.ask("TerminateInstances&InstanceId.1="+instanceA+"&InstanceId.2="+instanceB, 400, "OperationNotPermitted", "Modify its 'disableApiTermination' instance attribute")
	if w.machine(instanceB) == nil {
		t.Error("of a refused request an instance was terminated")
	}
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&InstanceType.Value=m5.xlarge", 400, "UnsupportedOperation")
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA, 400, "No attributes specified.")
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&DisableApiTermination.Value=true&SourceDestCheck.Value=true", 400, "InvalidParameterCombination")
	w.ask("ModifyInstanceAttribute&InstanceId=i-0000000000000000f&SourceDestCheck.Value=true", 400, "InvalidInstanceID.NotFound")
	w.wasAsked("ec2:ModifyInstanceAttribute arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA)
	w.gate.Denies = true
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&DisableApiTermination.Value=false", 403, "UnauthorizedOperation")
	if !w.machine(instanceA).Spec.DisableAPITermination {
		t.Error("it was changed by somebody who may not")
	}
}

func TestTerminateInstances(t *testing.T) {
	w := instancesWorld(t)
	request := "TerminateInstances&InstanceId.1=" + instanceA + "&InstanceId.2=" + instanceB
	w.ask(request+"&DryRun=true", 412, "DryRunOperation")
	w.ask(request+"&InstanceId.3=i-0000000000000000f", 400, "InvalidInstanceID.NotFound")
	if m := w.machine(instanceA); m == nil || !m.DeletionTimestamp.IsZero() {
		t.Error("a request that was refused terminated an instance")
	}
	w.ask(request, 200, "<currentState><code>32</code><name>shutting-down</name></currentState><instanceId>"+instanceA+"</instanceId><previousState><code>16</code><name>running</name></previousState>")
	if m := w.machine(instanceA); m == nil || m.DeletionTimestamp.IsZero() || !strings.Contains(m.Annotations[v1alpha1.AnnotationTerminationCause], "TerminateInstances") {
		t.Errorf("the machine is %+v", m)
	}
	if m := w.machine(instanceB); m != nil {
		t.Errorf("the other is still there: %+v", m)
	}
	w.ask("TerminateInstances&InstanceId.1="+instanceA, 200, "<name>shutting-down</name>")
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>32</code>", "User initiated (", "Client.UserInitiatedShutdown")
	w.wasAsked("ec2:TerminateInstances arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA)
}

func (w *world) machine(id string) *v1alpha1.Machine {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: id}, m); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return m
}

// powered sets what the controller of a machine says of it.
func (w *world) powered(id, reason string) {
	w.t.Helper()
	m := w.machine(id)
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonRunning {
		status = metav1.ConditionTrue
	}
	at := metav1.NewTime(time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC))
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: status, Reason: reason, LastTransitionTime: at})
	if err := w.api.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

func TestStopAndStartInstances(t *testing.T) {
	w := instancesWorld(t)
	stop, start := "StopInstances&InstanceId.1="+instanceA, "StartInstances&InstanceId.1="+instanceA
	w.ask(stop+"&DryRun=true", 412, "DryRunOperation")
	w.ask(stop+"&InstanceId.2="+instanceB, 400, "<Code>IncorrectInstanceState</Code><Message>Instance '"+instanceB+"' cannot be stopped as it has never reached the 'running' state.</Message>")
	w.ask(stop+"&Hibernate=true", 400, "UnsupportedHibernationConfiguration")
	w.ask(stop+"&InstanceId.2=i-0000000000000000f", 400, "InvalidInstanceID.NotFound")
	w.ask("StopInstances", 400, "MissingParameter")
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&DisableApiStop.Value=true", 200)
	w.ask(stop, 400, "OperationNotPermitted", "Modify its 'disableApiStop' instance attribute")
	w.ask("DescribeInstanceAttribute&Attribute=disableApiStop&InstanceId="+instanceA, 200, "<disableApiStop><value>true</value></disableApiStop>")
	w.ask("ModifyInstanceAttribute&InstanceId="+instanceA+"&Attribute=disableApiStop&Value=false", 200)
	if m := w.machine(instanceA); m.Spec.PowerState != "" {
		t.Errorf("a request that was refused stopped it: %+v", m.Spec)
	}

	w.ask(stop, 200, "<StopInstancesResponse", "<instancesSet><item>", "<currentState><code>64</code><name>stopping</name></currentState>", "<previousState><code>16</code><name>running</name></previousState>")
	if m := w.machine(instanceA); m.Spec.PowerState != v1alpha1.PowerStopped {
		t.Errorf("the machine is to be %q", m.Spec.PowerState)
	}
	w.ask(start, 400, "<Code>IncorrectInstanceState</Code><Message>The instance '"+instanceA+"' is not in a state from which it can be started.</Message>")
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>64</code><name>stopping</name>")
	w.powered(instanceA, v1alpha1.ReasonStopping)
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>64</code><name>stopping</name>", "<reason>User initiated (2026-11-22 13:00:00 GMT)</reason>")
	w.powered(instanceA, v1alpha1.ReasonStopped)
	w.ask("DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=stopped", 200, instanceA, "<code>80</code><name>stopped</name>", "<reason>User initiated (2026-11-22 13:00:00 GMT)</reason>",
		"<stateReason><code>Client.UserInitiatedShutdown</code><message>Client.UserInitiatedShutdown: User initiated shutdown</message></stateReason>",
		"<privateIpAddress>10.0.0.5</privateIpAddress>", "<networkInterfaceId>eni-0000000000000000a</networkInterfaceId>", "<status>in-use</status>", "<privateDnsName>ip-10-0-0-5")
	w.ask(stop, 200, "<currentState><code>80</code><name>stopped</name></currentState>", "<previousState><code>80</code><name>stopped</name></previousState>")
	if answer := w.ask("DescribeInstanceStatus", 200); strings.Contains(answer, instanceA) {
		t.Errorf("one that is stopped is there: %s", answer)
	}
	w.ask("DescribeInstanceStatus&IncludeAllInstances=true", 200, "<name>stopped</name>", "<status>not-applicable</status>")
	w.ask("RebootInstances&InstanceId.1="+instanceA, 400, "IncorrectInstanceState")

	w.hostHas = capacity.Host{CPUs: 2, Memory: 4 << 30}
	w.ask(start, 500, "<Code>InsufficientInstanceCapacity</Code><Message>Insufficient capacity to start instance '"+instanceA+"' of type m5.large: one takes 8.0 GiB of memory and 2 vCPUs, and the host has ")
	if m := w.machine(instanceA); m.Spec.PowerState != v1alpha1.PowerStopped {
		t.Errorf("the machine is to be %q", m.Spec.PowerState)
	}
	w.hostHas = capacity.Host{CPUs: 2, Memory: 16 << 30} // for one of them
	if answer := w.ask(start+"&InstanceId.2="+instanceA, 200); strings.Count(answer, "<item>") != 1 {
		t.Errorf("an instance that is named twice: %s", answer)
	}
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>0</code><name>pending</name>")
	m := w.machine(instanceA)
	m.Spec.PowerState, w.hostHas = v1alpha1.PowerStopped, capacity.Host{}
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.ask(start, 200, "<StartInstancesResponse", "<currentState><code>0</code><name>pending</name></currentState>", "<previousState><code>80</code><name>stopped</name></previousState>")
	if m := w.machine(instanceA); m.Spec.PowerState != v1alpha1.PowerRunning {
		t.Errorf("the machine is to be %q", m.Spec.PowerState)
	}
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>0</code><name>pending</name>")
	w.ask(start, 200, "<currentState><code>0</code><name>pending</name></currentState>", "<previousState><code>0</code><name>pending</name></previousState>")
	w.ask(stop, 400, "IncorrectInstanceState", "is not in a state from which it can be stopped")
	w.powered(instanceA, v1alpha1.ReasonRunning)
	w.ask(start, 200, "<currentState><code>16</code><name>running</name></currentState>")
	w.wasAsked("ec2:StopInstances arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA)
	w.wasAsked("ec2:StartInstances arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA)
	w.gate.Denies = true
	w.ask(stop, 403, "UnauthorizedOperation")
	w.ask(start, 403, "UnauthorizedOperation")
}

func TestRebootInstances(t *testing.T) {
	w := instancesWorld(t)
	reboot := "RebootInstances&InstanceId.1=" + instanceA
	w.ask(reboot+"&DryRun=true", 412, "DryRunOperation")
	w.ask(reboot+"&InstanceId.2="+instanceB, 400, "IncorrectInstanceState")
	if m := w.machine(instanceA); m.Spec.Reboots != 0 {
		t.Errorf("a request that was refused rebooted it %d times", m.Spec.Reboots)
	}
	w.ask(reboot, 200, "<RebootInstancesResponse", "<return>true</return>")
	w.ask(reboot, 200, "<return>true</return>")
	if m := w.machine(instanceA); m.Spec.Reboots != 2 || m.Spec.PowerState != "" {
		t.Errorf("the machine is to be %+v", m.Spec)
	}
	w.powered(instanceA, v1alpha1.ReasonRebooting)
	w.ask("DescribeInstances&InstanceId.1="+instanceA, 200, "<code>16</code><name>running</name>")
	w.ask("TerminateInstances&InstanceId.1="+instanceA, 200)
	w.ask(reboot, 200, "<return>true</return>") // ignored
	w.wasAsked("ec2:RebootInstances arn:aws:ec2:eu-west-1:000000000000:instance/" + instanceA)
	w.gate.Denies = true
	w.ask(reboot, 403, "UnauthorizedOperation")
}
