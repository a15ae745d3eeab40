// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/keylock"
	"muster.dev/muster/internal/machine/machine"
)

const service = "ec2"

// Config is what the actions need.
type Config struct {
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what was written before.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
	// LocalMachines reports whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// UserData reads what a machine of a node group was launched with; machine.ErrNotFound if nothing. Nil where there are no machines.
	UserData func(id string) ([]byte, error)
	// Usage says of a VPC's subnets who has addresses of them.
	Usage func(vpc string) ([]machine.Usage, error)
	// HostRanges are the addresses of the host for load balancers, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
	// LaunchWait is how long RunInstances waits for the addresses of its instances, which are in EC2's answer. It answers without them after that.
	LaunchWait time.Duration
}

// api has the actions.
type api struct {
	Config
	region  region.Region
	locks   keylock.Locks
	taggers []tagger
	// vpcUsers name what keeps a VPC from being deleted; vpcLeavings remove what goes with it.
	vpcUsers    []func(ctx context.Context, vpc string) ([]string, error)
	vpcLeavings []func(ctx context.Context, living map[string]bool) error
	// subnetUsers name what keeps a subnet from being deleted.
	subnetUsers []func(ctx context.Context, subnet *v1alpha1.Subnet) ([]string, error)
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Usage == nil || c.HostRanges == nil {
		return errors.New("the actions of EC2 need a client of the management plane, a sealer of pages, who has addresses, and those of the host")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return fmt.Errorf("the actions of EC2: %w", err)
	}
	a := &api{Config: c, region: own}

	a.registerImages(f)
	a.registerInstanceTypes(f)
	a.registerKeyPairs(f)
	a.registerLaunchTemplates(f)
	a.registerVPCs(f)
	a.registerSecurityGroups(f)
	a.registerInstances(f)
	a.registerSubnets(f)
	a.registerZones(f)
	a.registerAccount(f)
	a.registerInternetGateways(f)
	a.registerNATGateways(f)
	a.registerAddresses(f)
	a.registerRouteTables(f)
	a.registerNetworkACLs(f)
	a.registerNothing(f)
	a.registerTags(f)
	return nil
}

// register adds an action. Its targets get the condition key that all requests to EC2 have.
func register[In, Out any](a *api, f *awsfront.Front, name string, spec awsfront.Spec[In, Out]) {
	about := spec.About
	spec.About = func(ctx context.Context, call *awsfront.Call, in *In) (targets []awsfront.Target, err error) {
		if about == nil {
			targets = []awsfront.Target{{Resource: "*"}}
		} else {
			targets, err = about(ctx, call, in)
		}
		for i := range targets {
			conditions := maps.Clone(targets[i].Conditions)
			if conditions == nil {
				conditions = map[string][]string{}
			}
			conditions["ec2:Region"] = []string{a.Region}
			targets[i].Conditions = conditions
		}
		return targets, err
	}
	awsfront.Register(f, service, name, spec)
}
