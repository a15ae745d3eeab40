// SPDX-License-Identifier: Apache-2.0

// Package ekstags has EKS's actions about tags: of clusters, node groups, Fargate profiles, add-ons, access entries and
// pod identity associations, by their ARNs.
package ekstags

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/accessentries"
	"muster.dev/muster/internal/cloud/eks/addons"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/fargateprofiles"
	"muster.dev/muster/internal/cloud/eks/nodegroups"
	"muster.dev/muster/internal/cloud/eks/podassociations"
)

// API has the actions.
type API struct {
	store        *eksresource.Store
	groups       *nodegroups.API
	addons       *addons.API
	associations *podassociations.API
	entries      *accessentries.API
	profiles     *fargateprofiles.API
}

// New has the actions over a store, about the tags of clusters and of what is found by other actions.
func New(store *eksresource.Store, g *nodegroups.API, a *addons.API, p *podassociations.API, e *accessentries.API, f *fargateprofiles.API) *API {
	return &API{store, g, a, p, e, f}
}

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, eksresource.Service, "TagResource", a.tag())
	awsfront.Register(f, eksresource.Service, "UntagResource", a.untag())
	a.store.TagSources.Add(eksresource.Service, a.all)
}
