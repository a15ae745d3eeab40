// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/spotrequest"
	"muster.dev/muster/internal/machine/instancetype"
)

// SpotRequests are EC2's actions about Spot Instance requests, which are made of spot instances.
type SpotRequests struct{ a *Actions }

// NewSpotRequests makes SpotRequests of the actions about instances.
func NewSpotRequests(a *Actions) SpotRequests { return SpotRequests{a} }

// Register adds the actions to the front.
func (s SpotRequests) Register(f *awsfront.Front) {
	ec2resource.Register(s.a.ec2, f, "RequestSpotInstances", s.request())
	ec2resource.Register(s.a.ec2, f, "DescribeSpotInstanceRequests", s.describe())
	ec2resource.Register(s.a.ec2, f, "CancelSpotInstanceRequests", s.cancel())
	s.a.ec2.Tagged(s.tagger())
}

type describeSpotInstanceRequestsInput struct {
	ec2resource.Paged
	SpotInstanceRequestIDs []string
}

type describeSpotInstanceRequestsOutput struct {
	SpotInstanceRequests []spotRequest
	NextToken            string
}

// spotRequest is a Spot Instance request as EC2 shows it. Each request has its one instance from the start.
type spotRequest struct {
	SpotInstanceRequestID        string     `filter:"spot-instance-request-id"`
	InstanceID                   string     `filter:"instance-id"`
	State                        string     `filter:"state"`
	Status                       spotStatus `filter:""`
	Type                         string     `filter:"type"`
	SpotPrice                    string     `filter:"spot-price,omitempty"`
	ProductDescription           string     `filter:"product-description"`
	InstanceInterruptionBehavior string
	LaunchedAvailabilityZone     string              `filter:"launched-availability-zone"`
	LaunchedAvailabilityZoneID   string              `filter:"launched-availability-zone-id"`
	CreateTime                   time.Time           `filter:"create-time"`
	ValidUntil                   *time.Time          `filter:"valid-until"`
	LaunchSpecification          launchSpecification `filter:"launch."`
	Tags                         []awstag.Tag

	interfaces []launchInterface `filter:"network-interface."`
}

type spotStatus struct {
	Code       string `filter:"status-code"`
	Message    string `filter:"status-message"`
	UpdateTime time.Time
}

// launchSpecification is what the instance of a request was launched as.
type launchSpecification struct {
	ImageID             string            `filter:"image-id"`
	InstanceType        string            `filter:"instance-type"`
	KeyName             string            `filter:"key-name,omitempty"`
	EbsOptimized        bool              // no filter of EC2's
	Monitoring          launchMonitoring  `filter:""`
	SecurityGroups      []GroupIdentifier `filter:""`
	IamInstanceProfile  *launchProfile
	Placement           launchPlacement
	NetworkInterfaces   []launchInterface
	BlockDeviceMappings []struct{}
}

type launchMonitoring struct {
	Enabled bool `filter:"monitoring-enabled"`
}

type launchProfile struct{ ARN, Name string }

type launchPlacement struct{ AvailabilityZone, Tenancy string }

type launchInterface struct {
	DeleteOnTermination bool   `filter:"delete-on-termination"`
	DeviceIndex         int32  `filter:"device-index"`
	SubnetID            string `filter:"subnet-id"`

	groups []string `filter:"group-id"`
}

func (s SpotRequests) describe() awsfront.Spec[describeSpotInstanceRequestsInput, describeSpotInstanceRequestsOutput] {
	return awsfront.Spec[describeSpotInstanceRequestsInput, describeSpotInstanceRequestsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSpotInstanceRequestsInput) (*describeSpotInstanceRequestsOutput, error) {
			all, err := s.all(ctx, call)
			if err != nil {
				return nil, err
			}
			out := &describeSpotInstanceRequestsOutput{}
			out.SpotInstanceRequests, out.NextToken, err = ec2resource.Choose(s.a.ec2, call, spotRequestNoun(), all, in.SpotInstanceRequestIDs, in.Paged)
			return out, err
		},
	}
}

// all are the requests of all spot instances of the account, those included that were terminated a while ago.
func (s SpotRequests) all(ctx context.Context, call *awsfront.Call) ([]spotRequest, error) {
	view, err := s.a.viewInstances(ctx, call)
	if err != nil {
		return nil, err
	}
	all, err := view.instances(ctx)
	if err != nil {
		return nil, err
	}
	requests := []spotRequest{}
	for i := range all {
		if all[i].InstanceLifecycle == string(v1alpha1.MarketSpot) {
			requests = append(requests, view.spotRequest(&all[i]))
		}
	}
	return requests, nil
}

// spotRequest is the request of an instance. An instance that has ended is shown without the network that it was
// launched into, which its Machine still has.
func (v *instanceView) spotRequest(i *instance) spotRequest {
	m, launched, kept := i.machine, v.show(i.machine), spotrequest.Of(i.machine)
	status := spotrequest.StatusOf(m, i.State.Name, i.downSince)
	r := spotRequest{
		SpotInstanceRequestID: i.SpotInstanceRequestID, InstanceID: i.InstanceID, State: status.State, Status: spotStatus{status.Code, status.Message, status.UpdateTime},
		Type: oneTime, ProductDescription: i.PlatformDetails, InstanceInterruptionBehavior: "terminate", CreateTime: m.CreationTimestamp.UTC(),
		LaunchedAvailabilityZone: i.Placement.AvailabilityZone, LaunchedAvailabilityZoneID: i.Placement.AvailabilityZoneID,
		Tags: awsresource.ShownTags(kept.Tags),
		LaunchSpecification: launchSpecification{
			ImageID: i.ImageID, InstanceType: i.InstanceType, KeyName: i.KeyName, EbsOptimized: i.EbsOptimized, Monitoring: launchMonitoring{keeps(m, keptMonitoring)},
			SecurityGroups: launched.SecurityGroups, Placement: launchPlacement{i.Placement.AvailabilityZone, i.Placement.Tenancy},
			NetworkInterfaces: []launchInterface{}, BlockDeviceMappings: []struct{}{},
		},
	}
	if kept.ValidUntil != nil {
		r.ValidUntil = new(kept.ValidUntil.UTC())
	}
	if kind, err := instancetype.Find(i.InstanceType); err == nil {
		r.SpotPrice = cmp.Or(kept.MaxPrice, usd(kind.USD))
	}
	if p := launched.IamInstanceProfile; p != nil {
		r.LaunchSpecification.IamInstanceProfile = &launchProfile{p.ARN, p.name}
	}
	if launched.SubnetID != "" {
		own := launchInterface{DeleteOnTermination: true, SubnetID: launched.SubnetID}
		for _, group := range launched.SecurityGroups {
			own.groups = append(own.groups, group.GroupID)
		}
		r.LaunchSpecification.NetworkInterfaces = append(r.LaunchSpecification.NetworkInterfaces, own)
	}
	r.interfaces = r.LaunchSpecification.NetworkInterfaces
	return r
}

// spotRequestNoun is how Spot Instance requests are chosen.
func spotRequestNoun() ec2resource.Noun[spotRequest] {
	return ec2resource.Noun[spotRequest]{
		Kind: ec2id.SpotRequest, ID: func(r *spotRequest) string { return r.SpotInstanceRequestID },
		Tags:   func(r *spotRequest) map[string]string { return awsresource.TagMap(r.Tags) },
		Fields: awsresource.FiltersOf[spotRequest](),
		Rules: ec2filter.Rules{Names: []string{ // no request has a value for them
			"availability-zone-group", "fault-code", "fault-message", "launch-group", "launch.block-device-mapping.delete-on-termination",
			"launch.block-device-mapping.device-name", "launch.block-device-mapping.snapshot-id", "launch.block-device-mapping.volume-size",
			"launch.block-device-mapping.volume-type", "launch.kernel-id", "launch.ramdisk-id", "network-interface.addresses.primary",
			"network-interface.description", "network-interface.network-interface-id", "network-interface.private-ip-address", "valid-from",
		}},
	}
}
