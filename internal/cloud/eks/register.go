// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/accessentries"
	"muster.dev/muster/internal/cloud/eks/addons"
	"muster.dev/muster/internal/cloud/eks/authorities"
	"muster.dev/muster/internal/cloud/eks/clusters"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/ekstags"
	"muster.dev/muster/internal/cloud/eks/fargateprofiles"
	"muster.dev/muster/internal/cloud/eks/insights"
	"muster.dev/muster/internal/cloud/eks/nodegroups"
	"muster.dev/muster/internal/cloud/eks/podassociations"
	"muster.dev/muster/internal/cloud/eks/updates"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/platform/release"
)

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// LocalMachines says whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// Cluster reads and writes the objects of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Insights finds the insights about a cluster.
	Insights func(context.Context, *v1alpha1.Cluster) []insight.Insight
	// CheckVersion says what keeps a cluster from a release: a refusal, or insights with the status ERROR.
	CheckVersion func(context.Context, *v1alpha1.Cluster, release.Release) (refusal string, against []insight.Insight, err error)
	// Key says why an account cannot use a KMS key, by its ARN.
	Key func(ctx context.Context, account, arn string) error
	// Unbuilt says what is to be done before a release of Kubernetes can run on this host; empty if nothing is.
	Unbuilt func(release.Release) string
	// Compute says why Karpenter cannot run in the control plane of a cluster with a spec and add-ons; empty if it can, or
	// is not asked for.
	Compute func(v1alpha1.ClusterSpec, []v1alpha1.Addon) string
	// KeyPair says whether EC2 has a key pair of a name.
	KeyPair func(ctx context.Context, name string) (bool, error)
	// Public returns the route table and the internet gateway that a subnet of a VPC has a route to; empty for a private
	// subnet.
	Public func(ctx context.Context, vpc, subnet string) (table, gateway string, err error)
	// AccessPolicies are the names of those that there are, and AccessPolicy says what is wrong with the ARN of one.
	AccessPolicies []string
	AccessPolicy   func(arn string) error
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Region == "" || c.Cluster == nil || c.Insights == nil || c.CheckVersion == nil || c.AccessPolicy == nil || c.Key == nil || c.KeyPair == nil || c.Public == nil || c.Unbuilt == nil || c.Compute == nil {
		return errors.New("the actions of EKS need a client of the management plane, a sealer of pages, a region, ways to clusters, their insights and versions, keys, key pairs, routes, releases, and access policies")
	}
	store := &eksresource.Store{Account: c.Account}
	groups := nodegroups.New(store, nodegroups.Config{LocalMachines: c.LocalMachines, KeyPair: c.KeyPair, Unbuilt: c.Unbuilt})
	added := addons.New(store)
	associations := podassociations.New(store)
	entries := accessentries.New(store, accessentries.Config{Cluster: c.Cluster, Policies: c.AccessPolicies, Policy: c.AccessPolicy})
	profiles := fargateprofiles.New(store, fargateprofiles.Config{LocalMachines: c.LocalMachines, Public: c.Public})
	for _, noun := range []interface{ Register(f *awsfront.Front) }{
		clusters.New(store, clusters.Config{Key: c.Key, Unbuilt: c.Unbuilt, Compute: c.Compute, CheckVersion: c.CheckVersion, Cluster: c.Cluster}), groups, profiles, added, associations, entries, authorities.New(store),
		insights.New(store, c.Insights),
		updates.New(store, groups, added), ekstags.New(store, groups, added, associations, entries, profiles),
	} {
		noun.Register(f)
	}
	return nil
}
