// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/keylock"
	"muster.dev/muster/internal/plane/deprecation"
)

const service = "eks"

// Config is what the actions need.
type Config struct {
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what was written before.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
	// LocalMachines says whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
	// Cluster reads and writes the objects of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Deprecated reads which deprecated APIs of a cluster that is served, by its namespace, were requested.
	Deprecated func(ctx context.Context, namespace string) (deprecation.Seen, error)
	// Key says why an account cannot use a KMS key, by its ARN.
	Key func(ctx context.Context, account, arn string) error
	// KeyPair says whether EC2 has a key pair of a name.
	KeyPair func(ctx context.Context, name string) (bool, error)
	// AccessPolicies are the names of those that there are, and AccessPolicy says what is wrong with the ARN of one.
	AccessPolicies []string
	AccessPolicy   func(arn string) error
}

// api has the actions.
type api struct {
	Config
	// locks have one change at a time of each cluster.
	locks keylock.Locks
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Region == "" || c.Cluster == nil || c.Deprecated == nil || c.AccessPolicy == nil || c.Key == nil || c.KeyPair == nil {
		return errors.New("the actions of EKS need a client of the management plane, a sealer of pages, a region, ways to clusters and to what is deprecated, keys, key pairs, and access policies")
	}
	a := &api{Config: c}

	awsfront.Register(f, service, "CreateCluster", a.createCluster())
	awsfront.Register(f, service, "DeleteCluster", a.deleteCluster())
	awsfront.Register(f, service, "DescribeCluster", a.describeCluster())
	awsfront.Register(f, service, "DescribeClusterVersions", a.describeClusterVersions())
	awsfront.Register(f, service, "ListClusters", a.listClusters())

	awsfront.Register(f, service, "CreateNodegroup", a.createNodegroup())
	awsfront.Register(f, service, "DeleteNodegroup", a.deleteNodegroup())
	awsfront.Register(f, service, "DescribeNodegroup", a.describeNodegroup())
	awsfront.Register(f, service, "ListNodegroups", a.listNodegroups())

	awsfront.Register(f, service, "DescribeUpdate", a.describeUpdate())
	awsfront.Register(f, service, "ListUpdates", a.listUpdates())
	awsfront.Register(f, service, "UpdateClusterConfig", a.updateClusterConfig())
	awsfront.Register(f, service, "UpdateClusterVersion", a.updateClusterVersion())
	awsfront.Register(f, service, "UpdateNodegroupConfig", a.updateNodegroupConfig())
	awsfront.Register(f, service, "UpdateNodegroupVersion", a.updateNodegroupVersion())
	awsfront.Register(f, service, "AssociateEncryptionConfig", a.associateEncryptionConfig())
	awsfront.Register(f, service, "CancelUpdate", a.cancelUpdate())

	awsfront.Register(f, service, "CreateAccessEntry", a.createAccessEntry())
	awsfront.Register(f, service, "DeleteAccessEntry", a.deleteAccessEntry())
	awsfront.Register(f, service, "DescribeAccessEntry", a.describeAccessEntry())
	awsfront.Register(f, service, "ListAccessEntries", a.listAccessEntries())
	awsfront.Register(f, service, "UpdateAccessEntry", a.updateAccessEntry())
	awsfront.Register(f, service, "AssociateAccessPolicy", a.associateAccessPolicy())
	awsfront.Register(f, service, "DisassociateAccessPolicy", a.disassociateAccessPolicy())
	awsfront.Register(f, service, "ListAssociatedAccessPolicies", a.listAssociatedAccessPolicies())
	awsfront.Register(f, service, "ListAccessPolicies", a.listAccessPolicies())

	awsfront.Register(f, service, "CreatePodIdentityAssociation", a.createPodIdentityAssociation())
	awsfront.Register(f, service, "DeletePodIdentityAssociation", a.deletePodIdentityAssociation())
	awsfront.Register(f, service, "DescribePodIdentityAssociation", a.describePodIdentityAssociation())
	awsfront.Register(f, service, "ListPodIdentityAssociations", a.listPodIdentityAssociations())
	awsfront.Register(f, service, "UpdatePodIdentityAssociation", a.updatePodIdentityAssociation())
	a.registerAddons(f)

	a.registerAuthorities(f)

	awsfront.Register(f, service, "DescribeInsight", a.describeInsight())
	awsfront.Register(f, service, "DescribeInsightsRefresh", a.describeInsightsRefresh())
	awsfront.Register(f, service, "ListInsights", a.listInsights())
	awsfront.Register(f, service, "StartInsightsRefresh", a.startInsightsRefresh())

	awsfront.Register(f, service, "ListCapabilities", a.listCapabilities())
	awsfront.Register(f, service, "ListEksAnywhereSubscriptions", a.listEksAnywhereSubscriptions())
	awsfront.Register(f, service, "ListFargateProfiles", a.listFargateProfiles())
	awsfront.Register(f, service, "ListIdentityProviderConfigs", a.listIdentityProviderConfigs())

	awsfront.Register(f, service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, service, "TagResource", a.tag())
	awsfront.Register(f, service, "UntagResource", a.untag())
	return nil
}
