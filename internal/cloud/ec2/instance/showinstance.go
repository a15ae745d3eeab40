// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/spotrequest"
	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
	network "muster.dev/muster/internal/network/vpc"
)

const (
	rootDevice = "/dev/xvda"
	// annotationToken on a Machine is the client token of the request that made it, as DescribeInstances shows it.
	annotationToken = "muster.dev/run-instances-token" //nolint:gosec // G101: the name of an annotation
	// annotationKept on a Machine are the settings of that request that are on and have no effect, sorted and with
	// commas between.
	annotationKept = "muster.dev/run-instances-kept"
)

// instanceView has what machines are shown with.
type instanceView struct {
	call     *awsfront.Call
	api      *Actions
	subnets  map[string]*v1alpha1.Subnet
	profiles map[string]*v1alpha1.IAMInstanceProfile
	groups   map[string]*v1alpha1.SecurityGroup
	// clusters are the security groups of clusters, by the name of the cluster.
	clusters map[string]string
}

// viewInstances reads what machines are shown with.
func (a *Actions) viewInstances(ctx context.Context, call *awsfront.Call) (*instanceView, error) {
	var subnets v1alpha1.SubnetList
	if err := a.ec2.List(ctx, &subnets); err != nil {
		return nil, err
	}
	var profiles v1alpha1.IAMInstanceProfileList
	if err := a.ec2.List(ctx, &profiles); err != nil {
		return nil, err
	}
	var groups v1alpha1.SecurityGroupList
	if err := a.ec2.List(ctx, &groups); err != nil {
		return nil, err
	}
	v := &instanceView{
		call: call, api: a, subnets: map[string]*v1alpha1.Subnet{}, profiles: map[string]*v1alpha1.IAMInstanceProfile{},
		groups: map[string]*v1alpha1.SecurityGroup{}, clusters: map[string]string{},
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		if v.groups[g.Name] = g; g.Spec.ClusterName != "" {
			v.clusters[g.Spec.ClusterName] = g.Name
		}
	}
	for i := range subnets.Items {
		v.subnets[subnets.Items[i].Name] = &subnets.Items[i]
	}
	for i := range profiles.Items {
		v.profiles[profiles.Items[i].Spec.Name] = &profiles.Items[i]
	}
	return v, nil
}

// show is an instance as EC2 tells of it.
func (v *instanceView) show(m *v1alpha1.Machine) instance {
	shown := instance{
		InstanceID: m.Name, ImageID: ami.OfMachine(m), InstanceType: cmp.Or(m.Spec.Type(), machine.DefaultType), KeyName: m.Spec.KeyName,
		Architecture: instancetype.Architecture, Hypervisor: "xen", VirtualizationType: "hvm", RootDeviceName: rootDevice, RootDeviceType: "ebs", PlatformDetails: "Linux/UNIX",
		UsageOperation: "RunInstances", LaunchTime: m.StartedAt().UTC().Truncate(time.Second), State: stateOf(m), Monitoring: monitoring{"disabled"}, EbsOptimized: keeps(m, keptOptimized),
		EnaSupport: true, SourceDestCheck: new(!m.Spec.DisableSourceCheck), Tags: awstag.Sorted(m.AWSTags()),
		SecurityGroups: []GroupIdentifier{}, NetworkInterfaces: []instanceInterface{}, BlockDeviceMappings: []struct{}{},
		SubnetID: string(m.Spec.SubnetID), ClientToken: m.Annotations[annotationToken],
		PrivateDNSName: m.Status.NodeName, machine: m, owner: v.call.Caller.Account(), reservation: ec2id.Reservation.Prefix + strings.TrimPrefix(m.Name, ec2id.Instance.Prefix),
		Placement: placement{AvailabilityZone: zoneOf(m), Tenancy: "default"},
	}
	if m.Spec.NodeGroup != "" || m.Spec.ScalingGroup != nil {
		shown.requester = shown.owner
	}
	if m.Spec.MarketType == v1alpha1.MarketSpot {
		shown.InstanceLifecycle, shown.SpotInstanceRequestID = string(v1alpha1.MarketSpot), spotrequest.ID(m.Name)
	}
	if keeps(m, keptMonitoring) {
		shown.Monitoring = monitoring{"enabled"}
	}
	if r := m.Spec.Reservation; r != nil {
		shown.reservation, shown.AmiLaunchIndex = r.ID, r.Index
	}
	if subnet := v.subnets[string(m.Spec.SubnetID)]; subnet != nil {
		shown.VpcID, shown.Placement.AvailabilityZone = subnet.Spec.VPCID, subnet.Spec.AvailabilityZone
	}
	if zone, err := v.api.ec2.Place.Zone(shown.Placement.AvailabilityZone); err == nil {
		shown.Placement.AvailabilityZoneID = zone.ID
	}
	if name := m.Spec.InstanceProfile; name != "" {
		shown.IamInstanceProfile = &instanceProfile{ARN: profileARN(v.call, name), name: name}
		if p := v.profiles[name]; p != nil {
			shown.IamInstanceProfile.ARN, shown.IamInstanceProfile.ID = p.Spec.ARN, p.Spec.ProfileID
		}
	}
	hops := m.Spec.Metadata().HTTPPutResponseHopLimit
	shown.MetadataOptions = &shownMetadataOptions{"applied", "enabled", "required", "disabled", "disabled", max(hops, 1)}
	for _, id := range v.groupsOf(m, shown.VpcID) {
		group := GroupIdentifier{GroupID: id}
		if g := v.groups[id]; g != nil {
			group.GroupName = g.Spec.GroupName
		}
		shown.SecurityGroups = append(shown.SecurityGroups, group)
	}
	if address := AddressOf(m); address.IsValid() && m.DeletionTimestamp.IsZero() {
		shown.PrivateIPAddress = address.String()
		own := v.networkInterface(shown, address)
		own.IPv4Prefixes = PrefixesOf(m, shown.VpcID, maps.Values(v.subnets))
		shown.NetworkInterfaces = append(shown.NetworkInterfaces, own)
	}
	if shown.downSince = downSince(m); !shown.downSince.IsZero() {
		shown.StateTransitionReason, shown.StateReason = ended(m, shown.downSince)
	}
	return shown
}

// downSince is when an instance was asked to end or to stop; zero if it is to run.
func downSince(m *v1alpha1.Machine) time.Time {
	switch running := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning); {
	case !m.DeletionTimestamp.IsZero():
		return m.DeletionTimestamp.Time
	case power.Stops(m) && running != nil && running.Status == metav1.ConditionFalse:
		return running.LastTransitionTime.Time
	}
	return time.Time{}
}

// groupsOf are the security groups that a machine is in.
func (v *instanceView) groupsOf(m *v1alpha1.Machine, vpcID string) []string {
	own := v.clusters[m.Spec.ClusterName]
	switch {
	case len(m.Spec.SecurityGroupIDs) > 0:
		return m.Spec.SecurityGroupIDs
	case m.Spec.NodeGroup != "" && own != "":
		return []string{own}
	case m.Spec.NodeGroup != "" || vpcID == "":
		return nil
	}
	return []string{v1alpha1.DefaultSecurityGroupID(vpcID)}
}

// showTerminated is an instance that is gone: it has no network any more.
func (v *instanceView) showTerminated(m *v1alpha1.Machine, at time.Time) instance {
	shown := v.show(m)
	shown.State, shown.SubnetID, shown.VpcID, shown.PrivateDNSName, shown.PrivateIPAddress = stateTerminated, "", "", "", ""
	shown.NetworkInterfaces, shown.SecurityGroups, shown.IamInstanceProfile = []instanceInterface{}, []GroupIdentifier{}, nil
	if m.DeletionTimestamp != nil {
		at = m.DeletionTimestamp.Time
	}
	shown.downSince = at
	shown.StateTransitionReason, shown.StateReason = ended(m, at)
	return shown
}

func (v *instanceView) networkInterface(of instance, address netip.Addr) instanceInterface {
	id := strings.TrimPrefix(of.InstanceID, ec2id.Instance.Prefix)
	return instanceInterface{
		NetworkInterfaceID: ec2id.NetworkInterface.Prefix + id, MacAddress: network.MAC(address).String(), Status: "in-use", PrivateDNSName: of.PrivateDNSName,
		PrivateIPAddress: address.String(), SubnetID: of.SubnetID, VpcID: of.VpcID, OwnerID: v.call.Caller.Account(), InterfaceType: "interface",
		SourceDestCheck: *of.SourceDestCheck, Groups: of.SecurityGroups,
		PrivateIPAddresses: []PrivateAddress{{true, of.PrivateDNSName, address.String()}},
		Attachment:         interfaceAttachment{AttachmentID: "eni-attach-" + id, Status: "attached", DeleteOnTermination: true, AttachTime: of.LaunchTime},
		instance:           of.InstanceID, zone: of.Placement.AvailabilityZone,
	}
}

// ended is why and when the instance of a Machine was terminated or stopped, in EC2's words: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html.
// The interruption of a spot instance is no user's, and its transition has no reason.
func ended(m *v1alpha1.Machine, at time.Time) (transition string, reason *stateReason) {
	if _, interrupted := spotrequest.Interruption(m); interrupted {
		return "", &stateReason{"Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"}
	}
	return "User initiated (" + at.UTC().Format("2006-01-02 15:04:05") + " GMT)",
		&stateReason{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
}

// zoneOf is the availability zone of an instance that has been launched.
func zoneOf(m *v1alpha1.Machine) string {
	zone, _, _ := strings.Cut(strings.TrimPrefix(m.Status.ProviderID, "aws:///"), "/")
	return zone
}

// AddressOf is the private address of an instance that has been launched.
func AddressOf(m *v1alpha1.Machine) netip.Addr {
	for _, address := range m.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			if ip, err := netip.ParseAddr(address.Address); err == nil {
				return ip
			}
		}
	}
	return netip.Addr{}
}

// PrefixesOf are the ranges of subnets of its VPC that the pods of a machine have their addresses of. Other ranges of
// pods are not EC2's.
func PrefixesOf(m *v1alpha1.Machine, vpcID string, subnets iter.Seq[*v1alpha1.Subnet]) []Ipv4Prefix {
	pods, err := netip.ParsePrefix(m.Status.PodCIDR)
	if err != nil {
		return nil
	}
	for subnet := range subnets {
		if subnet.Spec.VPCID == vpcID && ec2resource.Overlaps(*subnet, pods) {
			return []Ipv4Prefix{{pods.String()}}
		}
	}
	return nil
}

// profileARN is the ARN of an instance profile that has no path.
func profileARN(call *awsfront.Call, name string) string {
	return "arn:aws:iam::" + call.Caller.Account() + ":instance-profile/" + name
}
