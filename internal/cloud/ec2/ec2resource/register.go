// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/keylock"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/release"
)

// Service is the name of EC2 in ARNs, and at the front.
const Service = "ec2"

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// LocalMachines reports whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// Unbuilt says what is to be done before a release of Kubernetes can run on this host; empty if nothing is.
	Unbuilt func(release.Release) string
	// UserData reads what a machine of a node group was launched with; machine.ErrNotFound if nothing. Nil where there
	// are no machines.
	UserData func(id string) ([]byte, error)
	// Usage says of a VPC's subnets who has addresses of them.
	Usage func(vpc string) ([]machine.Usage, error)
	// HostRanges are the addresses of the host for load balancers, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
	// Room is what the host offers local machines. Nil: all that are asked for.
	Room *hostroom.Room
	// LaunchWait is how long RunInstances waits for the addresses of its instances, which are in EC2's answer. It
	// answers without them after that.
	LaunchWait time.Duration
}

// EC2 is what the actions of all nouns work with.
type EC2 struct {
	Config
	Place   region.Region
	Locks   keylock.Locks
	Taggers []Tagger
	// VPCUsers name what keeps a VPC from being deleted; VPCLeavings remove what goes with it.
	VPCUsers    []func(ctx context.Context, vpc string) ([]string, error)
	VPCLeavings []func(ctx context.Context, living map[string]bool) error
	// SubnetUsers name what keeps a subnet from being deleted.
	SubnetUsers []func(ctx context.Context, subnet *v1alpha1.Subnet) ([]string, error)
}

// New checks what the actions need.
func New(c Config) (*EC2, error) {
	if c.Management == nil || c.Pages == nil || c.Usage == nil || c.HostRanges == nil || c.Unbuilt == nil {
		return nil, errors.New("the actions of EC2 need a client of the management plane, a sealer of pages, who has addresses, those of the host, and releases")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return nil, fmt.Errorf("the actions of EC2: %w", err)
	}
	return &EC2{Config: c, Place: own}, nil
}

// Register adds an action. Its targets get the condition key that all requests to EC2 have.
func Register[In, Out any](a *EC2, f *awsfront.Front, name string, spec awsfront.Spec[In, Out]) {
	spec.Conditions = map[string][]string{"ec2:Region": {a.Region}}
	awsfront.Register(f, Service, name, spec)
}
