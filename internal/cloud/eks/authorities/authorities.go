// SPDX-License-Identifier: Apache-2.0

// Package authorities has EKS's actions about the certificate authorities of a cluster: those of kubelets'
// certificates, which a cluster replaces.
package authorities

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
	awsfront.Register(f, eksresource.Service, "ActivateCertificateAuthority", a.activateAuthority())
	awsfront.Register(f, eksresource.Service, "CreateCertificateAuthority", a.createAuthority())
	awsfront.Register(f, eksresource.Service, "DeleteCertificateAuthority", a.deleteAuthority())
	awsfront.Register(f, eksresource.Service, "DescribeCertificateAuthority", a.describeAuthority())
	awsfront.Register(f, eksresource.Service, "ListCertificateAuthorities", a.listAuthorities())
}
