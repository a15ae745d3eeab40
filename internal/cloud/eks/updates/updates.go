// SPDX-License-Identifier: Apache-2.0

// Package updates has EKS's actions about updates, of a cluster as well as of its node groups and add-ons: described,
// listed, cancelled.
package updates

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/addons"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/nodegroups"
)

// API has the actions.
type API struct {
	store  *eksresource.Store
	groups *nodegroups.API
	addons *addons.API
}

// New has the actions over a store, about updates of clusters, node groups and add-ons.
func New(store *eksresource.Store, groups *nodegroups.API, added *addons.API) *API {
	return &API{store, groups, added}
}

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "DescribeUpdate", a.describeUpdate())
	awsfront.Register(f, eksresource.Service, "ListUpdates", a.listUpdates())
	awsfront.Register(f, eksresource.Service, "CancelUpdate", a.cancelUpdate())
}
