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
	"muster.dev/muster/internal/machine/power"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeInstances", a.describeInstances())
	ec2resource.Register(a.ec2, f, "DescribeInstanceStatus", a.describeInstanceStatus())
	ec2resource.Register(a.ec2, f, "DescribeInstanceAttribute", a.describeInstanceAttribute())
	ec2resource.Register(a.ec2, f, "ModifyInstanceAttribute", a.modifyInstanceAttribute())
	ec2resource.Register(a.ec2, f, "RunInstances", a.runInstances())
	ec2resource.Register(a.ec2, f, "TerminateInstances", a.terminateInstances())
	ec2resource.Register(a.ec2, f, "StopInstances", a.stopInstances())
	ec2resource.Register(a.ec2, f, "StartInstances", a.startInstances())
	ec2resource.Register(a.ec2, f, "RebootInstances", a.rebootInstances())

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
	if m.Spec.MarketType != "" {
		conditions["ec2:InstanceMarketType"] = []string{string(m.Spec.MarketType)}
	}
	if m.Spec.InstanceProfile != "" {
		conditions["ec2:InstanceProfile"] = []string{profileARN(call, m.Spec.InstanceProfile)}
	}
	if zone := zoneOf(m); zone != "" {
		conditions["ec2:AvailabilityZone"] = []string{zone}
	}
	return a.ec2.Target(call, "instance", m.Name, awsresource.KeptTags(m.AWSTags()), conditions)
}

// instance is an instance as EC2 shows it.
type instance struct {
	InstanceID            string              `filter:"instance-id"`
	ImageID               string              `filter:"image-id"`
	InstanceType          string              `filter:"instance-type"`
	InstanceLifecycle     string              `filter:"instance-lifecycle,omitempty"` // empty for one on demand
	SpotInstanceRequestID string              `filter:"spot-instance-request-id,omitempty"`
	KeyName               string              `filter:"key-name"`
	ClientToken           string              `filter:"client-token"`
	Architecture          string              `filter:"architecture"`
	Hypervisor            string              `filter:"hypervisor"`
	VirtualizationType    string              `filter:"virtualization-type"`
	RootDeviceName        string              `filter:"root-device-name"`
	RootDeviceType        string              `filter:"root-device-type"`
	PrivateDNSName        string              `filter:"private-dns-name"`
	PrivateIPAddress      string              `filter:"private-ip-address"`
	SubnetID              string              `filter:"subnet-id"`
	VpcID                 string              `filter:"vpc-id"`
	StateTransitionReason string              `filter:"reason"`
	PlatformDetails       string              `filter:"platform-details"`
	UsageOperation        string              `filter:"usage-operation"`
	AmiLaunchIndex        int32               `filter:"launch-index"`
	LaunchTime            time.Time           `filter:"launch-time"`
	State                 instanceState       `filter:""`
	StateReason           *stateReason        `filter:""`
	Placement             placement           `filter:""`
	IamInstanceProfile    *instanceProfile    `filter:"iam-instance-profile."`
	SecurityGroups        []GroupIdentifier   `filter:"instance.,network-interface."` // before there is an interface, too
	NetworkInterfaces     []instanceInterface `filter:"network-interface."`
	BlockDeviceMappings   []struct{}
	MetadataOptions       *shownMetadataOptions `filter:"metadata-options."`
	Monitoring            monitoring            `filter:""`
	EbsOptimized          bool                  `filter:"ebs-optimized"`
	EnaSupport            bool                  `filter:"ena-support"`
	SourceDestCheck       *bool                 `filter:"source-dest-check"`
	Tags                  []awstag.Tag

	machine *v1alpha1.Machine
	// downSince is when the instance was asked to end or to stop, or ended; zero if it is to run.
	downSince time.Time
	owner     string `filter:"owner-id"`
	// requester is the account if Auto Scaling made the instance on its behalf.
	requester string `filter:"requester-id,omitempty"`
	// reservation is the id of the request that made the instance.
	reservation string `filter:"reservation-id"`
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
	stateStopping     = instanceState{64, "stopping"}
	stateStopped      = instanceState{80, "stopped"}
)

type stateReason struct {
	Code    string `filter:"state-reason-code"`
	Message string `filter:"state-reason-message"`
}

type placement struct {
	AvailabilityZone   string `filter:"availability-zone"`
	AvailabilityZoneID string `filter:"availability-zone-id"`
	GroupName          string
	Tenancy            string `filter:"tenancy"`
}

type instanceProfile struct {
	ARN string `filter:"arn"`
	ID  string `filter:"id"`

	name string `filter:"name"`
}

// GroupIdentifier is a security group, as others name it.
type GroupIdentifier struct {
	GroupID   string `filter:"group-id"`
	GroupName string `filter:"group-name"`
}

type instanceInterface struct {
	NetworkInterfaceID string `filter:"network-interface-id"`
	MacAddress         string `filter:"mac-address"`
	Status             string `filter:"status"`
	PrivateDNSName     string `filter:"private-dns-name,omitempty"`
	PrivateIPAddress   string `filter:"private-ip-address"`
	SubnetID           string `filter:"subnet-id,omitempty"`
	VpcID              string `filter:"vpc-id,omitempty"`
	OwnerID            string `filter:"owner-id,attachment.instance-owner-id"`
	InterfaceType      string
	Description        string
	SourceDestCheck    bool `filter:"source-dest-check"`
	Groups             []GroupIdentifier
	PrivateIPAddresses []PrivateAddress `filter:"addresses."`
	IPv4Prefixes       []Ipv4Prefix
	Attachment         interfaceAttachment `filter:"attachment."`

	instance string `filter:"attachment.instance-id"`
	zone     string `filter:"availability-zone,omitempty"`
	_        bool   `filter:"requester-managed,ipv6-native,operator.managed"`
}

// Ipv4Prefix is a range of a subnet that pods of a machine have their addresses of.
type Ipv4Prefix struct{ IPv4Prefix string }

// PrivateAddress is an address of a network interface.
type PrivateAddress struct {
	Primary          bool   `filter:"primary"`
	PrivateDNSName   string `filter:"private-dns-name,omitempty"`
	PrivateIPAddress string `filter:"private-ip-address"`
}

type interfaceAttachment struct {
	AttachmentID        string    `filter:"attachment-id"`
	Status              string    `filter:"status"`
	DeviceIndex         int32     `filter:"device-index"`
	NetworkCardIndex    int32     `filter:"network-card-index"`
	DeleteOnTermination bool      `filter:"delete-on-termination"`
	AttachTime          time.Time `filter:"attach-time"`
}

type shownMetadataOptions struct {
	State                   string
	HTTPEndpoint            string `filter:"http-endpoint,http-protocol-ipv4"`
	HTTPTokens              string `filter:"http-tokens"`
	HTTPProtocolIpv6        string `filter:"http-protocol-ipv6"`
	InstanceMetadataTags    string `filter:"instance-metadata-tags"`
	HTTPPutResponseHopLimit int32  `filter:"http-put-response-hop-limit"`
}

type monitoring struct {
	State string `filter:"monitoring-state"`
}

// stateOf is the state of an instance whose machine is there. An instance that reboots is running.
func stateOf(m *v1alpha1.Machine) instanceState {
	was := power.Was(m)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return stateShuttingDown
	case power.IsStopped(m):
		return stateStopped
	case power.Stops(m):
		return stateStopping
	case m.Status.ProviderID == "" || was != "" && was != v1alpha1.ReasonRebooting:
		return statePending
	}
	return stateRunning
}

// StateName is the state of an instance whose machine is there, in EC2's words.
func StateName(m *v1alpha1.Machine) string { return stateOf(m).Name }

// reservation has the instances of one request.
type reservation struct {
	ReservationID, OwnerID, RequesterID string
	Groups                              []GroupIdentifier
	Instances                           []instance
}

// reserved puts instances into their reservations, in the order in which the first of each comes.
func reserved(instances []instance) []reservation {
	all := []reservation{}
	for _, i := range instances {
		at := slices.IndexFunc(all, func(r reservation) bool { return r.ReservationID == i.reservation })
		if at < 0 {
			at = len(all)
			all = append(all, reservation{ReservationID: i.reservation, OwnerID: i.owner, RequesterID: i.requester, Groups: []GroupIdentifier{}})
		}
		all[at].Instances = append(all[at].Instances, i)
	}
	return all
}
