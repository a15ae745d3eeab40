// SPDX-License-Identifier: Apache-2.0

// Package podassociations has EKS's actions about pod identity associations: which service account of a cluster gets
// credentials of which role.
package podassociations

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
	awsfront.Register(f, eksresource.Service, "CreatePodIdentityAssociation", a.createPodIdentityAssociation())
	awsfront.Register(f, eksresource.Service, "DeletePodIdentityAssociation", a.deletePodIdentityAssociation())
	awsfront.Register(f, eksresource.Service, "DescribePodIdentityAssociation", a.describePodIdentityAssociation())
	awsfront.Register(f, eksresource.Service, "ListPodIdentityAssociations", a.listPodIdentityAssociations())
	awsfront.Register(f, eksresource.Service, "UpdatePodIdentityAssociation", a.updatePodIdentityAssociation())
}
