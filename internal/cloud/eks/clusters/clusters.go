// SPDX-License-Identifier: Apache-2.0

// Package clusters has EKS's actions about clusters, and those that list what no cluster of Muster's ever has.
package clusters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/platform/release"
)

// API has the actions.
type API struct {
	store *eksresource.Store
	Config
}

// Config is what the actions about clusters need beside the store.
type Config struct {
	// Key says why an account cannot use a KMS key, by its ARN.
	Key func(ctx context.Context, account, arn string) error
	// Cluster reads and writes the objects of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Unbuilt says what is to be done before a release can run; empty if nothing is.
	Unbuilt func(release.Release) string
	// Compute says why Karpenter cannot run in the control plane of a cluster with a spec and add-ons; empty if it can, or
	// is not asked for.
	Compute func(v1alpha1.ClusterSpec, []v1alpha1.Addon) string
	// CheckVersion says what keeps a cluster from a release: a refusal, or insights with the status ERROR.
	CheckVersion func(context.Context, *v1alpha1.Cluster, release.Release) (refusal string, against []insight.Insight, err error)
}

// New has the actions over a store.
func New(store *eksresource.Store, config Config) *API { return &API{store, config} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "CreateCluster", a.createCluster())
	awsfront.Register(f, eksresource.Service, "DeleteCluster", a.deleteCluster())
	awsfront.Register(f, eksresource.Service, "DescribeCluster", a.describeCluster())
	awsfront.Register(f, eksresource.Service, "DescribeClusterVersions", a.describeClusterVersions())
	awsfront.Register(f, eksresource.Service, "ListClusters", a.listClusters())
	awsfront.Register(f, eksresource.Service, "UpdateClusterConfig", a.updateClusterConfig())
	awsfront.Register(f, eksresource.Service, "UpdateClusterVersion", a.updateClusterVersion())
	awsfront.Register(f, eksresource.Service, "AssociateEncryptionConfig", a.associateEncryptionConfig())
	awsfront.Register(f, eksresource.Service, "ListCapabilities", a.listCapabilities())
	awsfront.Register(f, eksresource.Service, "ListEksAnywhereSubscriptions", a.listEksAnywhereSubscriptions())
	awsfront.Register(f, eksresource.Service, "ListIdentityProviderConfigs", a.listIdentityProviderConfigs())
}
