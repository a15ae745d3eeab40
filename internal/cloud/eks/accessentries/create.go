// SPDX-License-Identifier: Apache-2.0

package accessentries

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type createAccessEntryInput struct {
	ClusterName, PrincipalARN, Username, Type, ClientRequestToken string
	KubernetesGroups                                              []string
	Tags                                                          map[string]string
}

func (a *API) createAccessEntry() awsfront.Spec[createAccessEntryInput, accessEntryOutput] {
	return awsfront.Spec[createAccessEntryInput, accessEntryOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createAccessEntryInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			set := targets[0].Conditions
			awsresource.RequestTags(set, awstag.Sorted(in.Tags))
			set["eks:principalArn"] = []string{in.PrincipalARN}
			for key, value := range map[string]string{"eks:username": in.Username, "eks:accessEntryType": in.Type} {
				if value != "" {
					set[key] = []string{value}
				}
			}
			if len(in.KubernetesGroups) > 0 {
				set["eks:kubernetesGroups"] = in.KubernetesGroups
			}
			return targets, nil
		},
		Do: a.doCreateAccessEntry,
	}
}

func (a *API) doCreateAccessEntry(ctx context.Context, call *awsfront.Call, in *createAccessEntryInput) (*accessEntryOutput, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	e, err := a.entriesOf(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	there, err := e.find(ctx, in.PrincipalARN)
	if err != nil {
		return nil, err
	}
	exists := eksfault.New(eksfault.InUse, in.ClusterName, "", "The specified access entry resource is already in use on this cluster.")
	if there != nil {
		if err := sent.CheckMade(there, exists); err != nil {
			return nil, err
		}
		return &accessEntryOutput{a.showEntry(call, e.of, there)}, nil
	}
	if _, err := eksresource.ReadTags(in.Tags); err != nil {
		return nil, err
	}
	id, err := a.principalID(ctx, in.PrincipalARN)
	if err != nil {
		return nil, err
	}
	kind := accessv1alpha1.EntryType(in.Type)
	if kind == "" {
		kind = accessv1alpha1.TypeStandard
	}
	wanted := &accessv1alpha1.AccessEntry{
		ObjectMeta: metav1.ObjectMeta{Name: entryName(in.PrincipalARN)},
		Spec: accessv1alpha1.AccessEntrySpec{
			PrincipalARN: in.PrincipalARN, PrincipalID: id, Type: kind, Username: in.Username, KubernetesGroups: in.KubernetesGroups,
		},
	}
	if err := SetTags(wanted, in.Tags); err != nil {
		return nil, err
	}
	sent.Mark(wanted)
	if err := e.Create(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, exists)
	}
	return &accessEntryOutput{a.showEntry(call, e.of, wanted)}, nil
}
