// SPDX-License-Identifier: Apache-2.0

// Package fargateprofiles has EKS's actions about Fargate profiles: which pods of a cluster have a machine each.
package fargateprofiles

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// Config is what the actions need beside the store.
type Config struct {
	// LocalMachines says whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// Public returns the route table and the internet gateway that a subnet of a VPC has a route to; empty for a private
	// subnet.
	Public func(ctx context.Context, vpc, subnet string) (table, gateway string, err error)
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
	awsfront.Register(f, eksresource.Service, "CreateFargateProfile", a.createFargateProfile())
	awsfront.Register(f, eksresource.Service, "DeleteFargateProfile", a.deleteFargateProfile())
	awsfront.Register(f, eksresource.Service, "DescribeFargateProfile", a.describeFargateProfile())
	awsfront.Register(f, eksresource.Service, "ListFargateProfiles", a.listFargateProfiles())
}
