// SPDX-License-Identifier: Apache-2.0

// Package nodegroups has EKS's actions about managed node groups: their machines, launch templates, settings that are
// merely kept, and rollouts.
package nodegroups

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/platform/release"
)

// Config is what the actions need beside the store.
type Config struct {
	// LocalMachines says whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// Unbuilt says what is to be done before machines can be of a release; empty if nothing is.
	Unbuilt func(release.Release) string
	// KeyPair says whether EC2 has a key pair of a name.
	KeyPair func(ctx context.Context, name string) (bool, error)
}

// API has the actions.
type API struct {
	store  *eksresource.Store
	config Config
}

// New has the actions over a store.
func New(store *eksresource.Store, c Config) *API { return &API{store, c} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "CreateNodegroup", a.createNodegroup())
	awsfront.Register(f, eksresource.Service, "DeleteNodegroup", a.deleteNodegroup())
	awsfront.Register(f, eksresource.Service, "DescribeNodegroup", a.describeNodegroup())
	awsfront.Register(f, eksresource.Service, "ListNodegroups", a.listNodegroups())
	awsfront.Register(f, eksresource.Service, "UpdateNodegroupConfig", a.updateNodegroupConfig())
	awsfront.Register(f, eksresource.Service, "UpdateNodegroupVersion", a.updateNodegroupVersion())
}
