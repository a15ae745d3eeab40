// SPDX-License-Identifier: Apache-2.0

// Package accessentries has EKS's actions about access entries of a cluster, and about the access policies that are
// associated with them.
package accessentries

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// Config is what the actions need beside the store.
type Config struct {
	// Cluster reads and writes the objects of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Policies are the names of all access policies, and Policy says what is wrong with the ARN of one.
	Policies []string
	Policy   func(arn string) error
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
	awsfront.Register(f, eksresource.Service, "CreateAccessEntry", a.createAccessEntry())
	awsfront.Register(f, eksresource.Service, "DeleteAccessEntry", a.deleteAccessEntry())
	awsfront.Register(f, eksresource.Service, "DescribeAccessEntry", a.describeAccessEntry())
	awsfront.Register(f, eksresource.Service, "ListAccessEntries", a.listAccessEntries())
	awsfront.Register(f, eksresource.Service, "UpdateAccessEntry", a.updateAccessEntry())
	awsfront.Register(f, eksresource.Service, "AssociateAccessPolicy", a.associateAccessPolicy())
	awsfront.Register(f, eksresource.Service, "DisassociateAccessPolicy", a.disassociateAccessPolicy())
	awsfront.Register(f, eksresource.Service, "ListAssociatedAccessPolicies", a.listAssociatedAccessPolicies())
	awsfront.Register(f, eksresource.Service, "ListAccessPolicies", a.listAccessPolicies())
}
