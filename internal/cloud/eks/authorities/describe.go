// SPDX-License-Identifier: Apache-2.0

package authorities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// authoritySummary is what EKS lists of a certificate authority.
type authoritySummary struct {
	ID, CreatedBy, SigningStatus, DistributionStatus string
	CreatedAt                                        time.Time
}

// authorityShape is EKS's certificate authority, as it is described.
type authorityShape struct {
	authoritySummary

	Validity          *authorityValidity
	RollbackAvailable *bool
	Data              string
}

type authorityValidity struct{ NotBefore, NotAfter time.Time }

// The words of authorities.
const (
	signingInUse      = "IN_USE"
	signingActivating = "ACTIVATING"
	signingNotUsed    = "NOT_USED"
	byCustomer        = "CUSTOMER"
	byEKS             = "EKS"
	distributing      = "IN_PROGRESS"
)

// distributions are the words of EKS.
var distributions = map[v1alpha1.KubeletAuthorityDistribution]string{
	v1alpha1.KubeletAuthorityInProgress: distributing, v1alpha1.KubeletAuthorityComplete: "COMPLETE", v1alpha1.KubeletAuthorityDeleting: "DELETING",
}

// namedAuthority is an input that names an authority.
type namedAuthority struct{ ClusterName, CertificateAuthorityID string }

// authorities are those of a cluster: the ones that its status tells of, and one that was asked for and is not made
// yet.
func (a *API) authorities(ctx context.Context, of *v1alpha1.Cluster) ([]authorityShape, error) {
	var updates v1alpha1.UpdateList
	if err := a.store.Management.List(ctx, &updates, client.InNamespace(of.Namespace)); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing the updates of cluster %s: %w", of.Spec.Name, err))
	}
	var under *v1alpha1.Update
	for i := range updates.Items {
		if u := &updates.Items[i]; u.Spec.Change.KubeletAuthority != nil && u.Phase() == v1alpha1.UpdateInProgress && change.IsOf(u, of, nil) {
			under = u
		}
	}
	var all []authorityShape
	for i := range of.Status.KubeletAuthorities {
		all = append(all, showAuthority(&of.Status.KubeletAuthorities[i], under))
	}
	if under == nil || under.Spec.Change.KubeletAuthority.Step != v1alpha1.KubeletAuthorityCreate {
		return all, nil
	}
	id := under.Spec.Change.KubeletAuthority.Authority
	if !slices.ContainsFunc(all, func(s authorityShape) bool { return s.ID == id }) {
		all = append(all, authorityShape{authoritySummary: authoritySummary{id, byCustomer, signingNotUsed, distributing, under.CreationTimestamp.Time}, RollbackAvailable: new(false)})
	}
	return all, nil
}

// showAuthority is an authority as EKS tells of it, while an update of the cluster's authorities is under way or not.
func showAuthority(is *v1alpha1.KubeletAuthority, under *v1alpha1.Update) authorityShape {
	shown := authorityShape{
		authoritySummary: authoritySummary{is.ID, byEKS, signingNotUsed, distributions[is.Distribution], is.NotBefore.Time},
		Validity:         &authorityValidity{is.NotBefore.Time, is.NotAfter.Time}, RollbackAvailable: new(false), Data: is.Data,
	}
	if is.Asked {
		shown.CreatedBy = byCustomer
	}
	switch {
	case is.Signs:
		shown.SigningStatus = signingInUse
	case under != nil && under.Spec.Change.KubeletAuthority.Step == v1alpha1.KubeletAuthorityActivate && under.Spec.Change.KubeletAuthority.Authority == is.ID:
		shown.SigningStatus = signingActivating
	}
	return shown
}

// authority finds a certificate authority of an existing cluster.
func (a *API) authority(ctx context.Context, in namedAuthority) (*v1alpha1.Cluster, *authorityShape, error) {
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	all, err := a.authorities(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		if all[i].ID == in.CertificateAuthorityID {
			return of, &all[i], nil
		}
	}
	return nil, nil, noAuthority(in)
}

func noAuthority(in namedAuthority) *awsfault.Error {
	return eksfault.New(eksfault.NotFound, in.ClusterName, "", "No certificate authority found for ID: %.100s", in.CertificateAuthorityID)
}

func (a *API) aboutAuthority(ctx context.Context, call *awsfront.Call, in *namedAuthority) ([]awsfront.Target, error) {
	return a.store.AboutCluster(ctx, call, in.ClusterName)
}

type describeAuthorityOutput struct{ CertificateAuthority *authorityShape }

func (a *API) describeAuthority() awsfront.Spec[namedAuthority, describeAuthorityOutput] {
	return awsfront.Spec[namedAuthority, describeAuthorityOutput]{
		About: a.aboutAuthority,
		Do: func(ctx context.Context, _ *awsfront.Call, in *namedAuthority) (*describeAuthorityOutput, error) {
			_, found, err := a.authority(ctx, *in)
			return &describeAuthorityOutput{found}, err
		},
	}
}

type listAuthoritiesOutput struct {
	CertificateAuthorities []authoritySummary
	NextToken              string
}

func (a *API) listAuthorities() awsfront.Spec[eksresource.ListInput, listAuthoritiesOutput] {
	return awsfront.Spec[eksresource.ListInput, listAuthoritiesOutput]{
		About: a.store.AboutList,
		Do: func(ctx context.Context, call *awsfront.Call, in *eksresource.ListInput) (*listAuthoritiesOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			all, err := a.authorities(ctx, of)
			if err != nil {
				return nil, err
			}
			var listed []authoritySummary
			for i := range all {
				listed = append(listed, all[i].authoritySummary)
			}
			out := &listAuthoritiesOutput{}
			out.CertificateAuthorities, out.NextToken, err = awsresource.Page(a.store.Account, call, in.ClusterName, listed, func(s authoritySummary) string { return s.ID }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}
