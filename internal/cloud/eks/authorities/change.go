// SPDX-License-Identifier: Apache-2.0

package authorities

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type createAuthorityInput struct{ ClusterName, ClientRequestToken string }

type changeAuthorityInput struct {
	namedAuthority

	ClientRequestToken string
}

type changeAuthorityOutput struct {
	Update               *change.Update
	CertificateAuthority *authoritySummary
}

func (a *API) createAuthority() awsfront.Spec[createAuthorityInput, changeAuthorityOutput] {
	return awsfront.Spec[createAuthorityInput, changeAuthorityOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createAuthorityInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createAuthorityInput) (*changeAuthorityOutput, error) {
			return a.changeAuthorities(ctx, call, in.ClusterName, in.ClientRequestToken, func(of *v1alpha1.Cluster) (*v1alpha1.UpdateKubeletAuthority, error) {
				if n := len(of.Status.KubeletAuthorities); n > 1 {
					return nil, eksfault.New(eksfault.LimitExceeded, in.ClusterName, "", "A cluster has two certificate authorities at most: %s and %s. Delete one that is not in use", of.Status.KubeletAuthorities[0].ID, of.Status.KubeletAuthorities[1].ID)
				}
				id := "ca-" + strings.ReplaceAll(uuid.NewString(), "-", "")[:17]
				return &v1alpha1.UpdateKubeletAuthority{Step: v1alpha1.KubeletAuthorityCreate, Authority: id}, nil
			})
		},
	}
}

func (a *API) aboutChangedAuthority(ctx context.Context, call *awsfront.Call, in *changeAuthorityInput) ([]awsfront.Target, error) {
	return a.store.AboutCluster(ctx, call, in.ClusterName)
}

func (a *API) activateAuthority() awsfront.Spec[changeAuthorityInput, changeAuthorityOutput] {
	return awsfront.Spec[changeAuthorityInput, changeAuthorityOutput]{
		About: a.aboutChangedAuthority,
		Do: func(ctx context.Context, call *awsfront.Call, in *changeAuthorityInput) (*changeAuthorityOutput, error) {
			return a.changeOne(ctx, call, in, v1alpha1.KubeletAuthorityActivate, func(is *v1alpha1.KubeletAuthority) error {
				switch {
				case is.Signs:
					return eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Certificate authority %s is in use already", is.ID)
				case is.Distribution != v1alpha1.KubeletAuthorityComplete:
					return eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Certificate authority %s cannot be activated: its distribution is %s. %s", is.ID, distributions[is.Distribution], is.Message)
				}
				return nil
			})
		},
	}
}

func (a *API) deleteAuthority() awsfront.Spec[changeAuthorityInput, changeAuthorityOutput] {
	return awsfront.Spec[changeAuthorityInput, changeAuthorityOutput]{
		About: a.aboutChangedAuthority,
		Do: func(ctx context.Context, call *awsfront.Call, in *changeAuthorityInput) (*changeAuthorityOutput, error) {
			return a.changeOne(ctx, call, in, v1alpha1.KubeletAuthorityDelete, func(is *v1alpha1.KubeletAuthority) error {
				switch {
				case is.Signs:
					return eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Certificate authority %s is in use: activate another one before it is deleted", is.ID)
				case !is.Removable:
					return eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Certificate authority %s cannot be deleted yet: %s", is.ID, is.Message)
				}
				return nil
			})
		},
	}
}

// changeOne asks for a step that is about one authority of a cluster, unless that is refused.
func (a *API) changeOne(ctx context.Context, call *awsfront.Call, in *changeAuthorityInput, step v1alpha1.KubeletAuthorityStep, check func(*v1alpha1.KubeletAuthority) error) (*changeAuthorityOutput, error) {
	return a.changeAuthorities(ctx, call, in.ClusterName, in.ClientRequestToken, func(of *v1alpha1.Cluster) (*v1alpha1.UpdateKubeletAuthority, error) {
		n := slices.IndexFunc(of.Status.KubeletAuthorities, func(k v1alpha1.KubeletAuthority) bool { return k.ID == in.CertificateAuthorityID })
		if n < 0 {
			return nil, noAuthority(in.namedAuthority)
		}
		if err := check(&of.Status.KubeletAuthorities[n]); err != nil {
			return nil, err
		}
		return &v1alpha1.UpdateKubeletAuthority{Step: step, Authority: in.CertificateAuthorityID}, nil
	})
}

// changeAuthorities makes the Update of a step, and answers with it and the authority.
func (a *API) changeAuthorities(ctx context.Context, call *awsfront.Call, cluster, token string, plan func(*v1alpha1.Cluster) (*v1alpha1.UpdateKubeletAuthority, error)) (*changeAuthorityOutput, error) {
	var of *v1alpha1.Cluster
	find := func(ctx context.Context) (_ *v1alpha1.Cluster, _ *v1alpha1.NodeGroup, err error) {
		of, err = a.store.Cluster(ctx, cluster)
		return of, nil, err
	}
	made, err := change.Make(ctx, a.store, call, cluster, token, find, func(p *change.Plan) error {
		if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active || len(of.Status.KubeletAuthorities) == 0 {
			return eksfault.New(eksfault.InvalidRequest, cluster, "", "The certificate authorities of cluster %s are not known: it is %s. Try again once its control plane runs", cluster, status)
		}
		step, err := plan(of)
		if err != nil {
			return err
		}
		p.Type, p.Change.KubeletAuthority = v1alpha1.UpdateAuthority, step
		p.Param("CertificateAuthorityId", step.Authority)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, err := a.authorities(ctx, of)
	if err != nil {
		return nil, err
	}
	out := &changeAuthorityOutput{Update: change.Show(made)}
	for i := range all {
		if all[i].ID == made.Spec.Change.KubeletAuthority.Authority {
			out.CertificateAuthority = &all[i].authoritySummary
		}
	}
	return out, nil
}
