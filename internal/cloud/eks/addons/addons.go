// SPDX-License-Identifier: Apache-2.0

// Package addons has EKS's actions about the add-ons of a cluster, and about the catalogue that they are chosen from.
package addons

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// API has the actions.
type API struct{ store *eksresource.Store }

// New has the actions over a store.
func New(store *eksresource.Store) *API { return &API{store} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "CreateAddon", a.createAddon())
	awsfront.Register(f, eksresource.Service, "DeleteAddon", a.deleteAddon())
	awsfront.Register(f, eksresource.Service, "DescribeAddon", a.describeAddon())
	awsfront.Register(f, eksresource.Service, "ListAddons", a.listAddons())
	awsfront.Register(f, eksresource.Service, "UpdateAddon", a.updateAddon())
	awsfront.Register(f, eksresource.Service, "DescribeAddonConfiguration", a.describeAddonConfiguration())
	awsfront.Register(f, eksresource.Service, "DescribeAddonVersions", a.describeAddonVersions())
}
