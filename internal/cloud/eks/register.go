// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/cloud/awsfront"
	"muster.dev/muster/internal/cloud/nexttoken"
)

const service = "eks"

// Config is what the actions need.
type Config struct {
	// Management reads and writes the management plane, past any cache.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
	// LocalMachines says whether this host can make machines of namespaces, which takes root.
	LocalMachines bool
}

// api has the actions.
type api struct {
	Config
	locks locks
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Region == "" {
		return errors.New("the actions of EKS need a client of the management plane, a sealer of pages, and a region")
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

	awsfront.Register(f, service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, service, "TagResource", a.tag())
	awsfront.Register(f, service, "UntagResource", a.untag())
	return nil
}
