// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeInstances", a.describeInstances())
	ec2resource.Register(a.ec2, f, "DescribeInstanceStatus", a.describeInstanceStatus())
	ec2resource.Register(a.ec2, f, "DescribeInstanceAttribute", a.describeInstanceAttribute())
	ec2resource.Register(a.ec2, f, "ModifyInstanceAttribute", a.modifyInstanceAttribute())
	ec2resource.Register(a.ec2, f, "RunInstances", a.runInstances())
	ec2resource.Register(a.ec2, f, "TerminateInstances", a.terminateInstances())

	a.ec2.Tagged(ec2resource.Tagger{
		Kind: ec2id.Instance, Resource: "instance",
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			m := &v1alpha1.Machine{}
			if err := a.ec2.Get(ctx, ec2id.Instance, id, m); err != nil {
				return awsfront.Target{}, err
			}
			return a.instanceTarget(call, m), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			m := &v1alpha1.Machine{}
			return a.ec2.Change(ctx, ec2id.Instance, id, m, func() error {
				changed, err := change(m.AWSTags())
				if err != nil {
					return err
				}
				m.Spec.Tags = ownTags(m, changed)
				return nil
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			var all v1alpha1.MachineList
			if err := a.ec2.List(ctx, &all); err != nil {
				return nil, err
			}
			tags := map[string]v1alpha1.Tags{}
			for i := range all.Items {
				tags[all.Items[i].Name] = awsresource.KeptTags(all.Items[i].AWSTags())
			}
			return tags, nil
		},
	})
}

// ownTags are those of an instance's tags that are kept on its machine: not those that it has for its node group,
// unless they were changed.
func ownTags(m *v1alpha1.Machine, tags map[string]string) v1alpha1.Tags {
	bare := m.DeepCopy()
	bare.Spec.Tags = nil
	given := bare.AWSTags()
	own := maps.Clone(tags)
	maps.DeleteFunc(own, func(key, value string) bool {
		_, explicit := m.Spec.Tags[key]
		return given[key] == value && !explicit
	})
	return awsresource.KeptTags(own)
}

// instanceTarget is an instance as IAM is asked about it.
func (a *Actions) instanceTarget(call *awsfront.Call, m *v1alpha1.Machine) awsfront.Target {
	conditions := map[string][]string{
		"ec2:InstanceID": {m.Name}, "ec2:InstanceMarketType": {"on-demand"}, "ec2:Tenancy": {"default"},
		"ec2:MetadataHttpEndpoint": {"enabled"}, "ec2:MetadataHttpTokens": {"required"},
	}
	if kind := m.Spec.Type(); kind != "" {
		conditions["ec2:InstanceType"] = []string{kind}
	}
	if m.Spec.InstanceProfile != "" {
		conditions["ec2:InstanceProfile"] = []string{profileARN(call, m.Spec.InstanceProfile)}
	}
	if zone := zoneOf(m); zone != "" {
		conditions["ec2:AvailabilityZone"] = []string{zone}
	}
	return a.ec2.Target(call, "instance", m.Name, awsresource.KeptTags(m.AWSTags()), conditions)
}

// instance is one as EC2 shows it.
type instance struct {
	InstanceID, ImageID, InstanceType, KeyName, ClientToken, Architecture, Hypervisor, VirtualizationType, RootDeviceName, RootDeviceType string
	PrivateDNSName, PrivateIPAddress, SubnetID, VpcID, StateTransitionReason, PlatformDetails, UsageOperation                             string
	AmiLaunchIndex                                                                                                                        int32
	LaunchTime                                                                                                                            time.Time
	State                                                                                                                                 instanceState
	StateReason                                                                                                                           *stateReason
	Placement                                                                                                                             placement
	IamInstanceProfile                                                                                                                    *instanceProfile
	SecurityGroups                                                                                                                        []GroupIdentifier
	NetworkInterfaces                                                                                                                     []instanceInterface
	BlockDeviceMappings                                                                                                                   []struct{}
	MetadataOptions                                                                                                                       *shownMetadataOptions
	Monitoring                                                                                                                            monitoring
	EbsOptimized, EnaSupport                                                                                                              bool
	SourceDestCheck                                                                                                                       *bool
	Tags                                                                                                                                  []awstag.Tag

	machine *v1alpha1.Machine
	owner   []string
	// reservation is the id of the request that made it.
	reservation string
}

type instanceState struct {
	Code int32  `filter:"instance-state-code"`
	Name string `filter:"instance-state-name"`
}

// The states of instances.
var (
	statePending      = instanceState{0, "pending"}
	stateRunning      = instanceState{16, "running"}
	stateShuttingDown = instanceState{32, "shutting-down"}
	stateTerminated   = instanceState{48, "terminated"}
)

type stateReason struct{ Code, Message string }

type placement struct{ AvailabilityZone, AvailabilityZoneID, GroupName, Tenancy string }

type instanceProfile struct{ ARN, ID string }

// GroupIdentifier is a security group, as others name it.
type GroupIdentifier struct {
	GroupID   string `filter:"group-id"`
	GroupName string `filter:"group-name"`
}

type instanceInterface struct {
	NetworkInterfaceID, MacAddress, Status, PrivateDNSName, PrivateIPAddress, SubnetID, VpcID, OwnerID, InterfaceType, Description string
	SourceDestCheck                                                                                                                bool
	Groups                                                                                                                         []GroupIdentifier
	PrivateIPAddresses                                                                                                             []PrivateAddress
	IPv4Prefixes                                                                                                                   []Ipv4Prefix
	Attachment                                                                                                                     interfaceAttachment
}

// Ipv4Prefix is a range of a subnet that pods of a machine have their addresses of.
type Ipv4Prefix struct{ IPv4Prefix string }

// PrivateAddress is an address of a network interface.
type PrivateAddress struct {
	Primary                          bool
	PrivateDNSName, PrivateIPAddress string
}

type interfaceAttachment struct {
	AttachmentID, Status          string
	DeviceIndex, NetworkCardIndex int32
	DeleteOnTermination           bool
	AttachTime                    time.Time
}

type shownMetadataOptions struct {
	State, HTTPEndpoint, HTTPTokens, HTTPProtocolIpv6, InstanceMetadataTags string
	HTTPPutResponseHopLimit                                                 int32
}

type monitoring struct{ State string }

// stateOf is the state of an instance whose machine is there.
func stateOf(m *v1alpha1.Machine) instanceState {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return stateShuttingDown
	case m.Status.ProviderID == "":
		return statePending
	}
	return stateRunning
}

// reservation has the instances of one request.
type reservation struct {
	ReservationID, OwnerID, RequesterID string
	Groups                              []GroupIdentifier
	Instances                           []instance
}

// reserved puts instances into their reservations, in the order in which the first of each comes.
func reserved(call *awsfront.Call, instances []instance) []reservation {
	all := []reservation{}
	for _, i := range instances {
		at := slices.IndexFunc(all, func(r reservation) bool { return r.ReservationID == i.reservation })
		if at < 0 {
			at = len(all)
			all = append(all, reservation{ReservationID: i.reservation, OwnerID: call.Caller.Account(), Groups: []GroupIdentifier{}})
			if i.machine.Spec.NodeGroup != "" {
				all[at].RequesterID = call.Caller.Account() // Auto Scaling, on behalf of the account
			}
		}
		all[at].Instances = append(all[at].Instances, i)
	}
	return all
}
