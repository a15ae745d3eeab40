// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type associateEncryptionConfigInput struct {
	ClusterName, ClientRequestToken string
	EncryptionConfig                []encryption
}

// associateEncryptionConfig keeps the key that a cluster was made without. It is a record, as that of CreateCluster.
func (a *API) associateEncryptionConfig() awsfront.Spec[associateEncryptionConfigInput, change.Output] {
	return awsfront.Spec[associateEncryptionConfigInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateEncryptionConfigInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			for _, config := range in.EncryptionConfig {
				const key = "eks:encryptionConfigProviderKeyArns"
				targets[0].Conditions[key] = append(targets[0].Conditions[key], config.Provider.KeyARN)
			}
			return targets, nil
		},
		Do: a.doAssociateEncryptionConfig,
	}
}

func (a *API) doAssociateEncryptionConfig(ctx context.Context, call *awsfront.Call, in *associateEncryptionConfigInput) (*change.Output, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	again, err := change.Repeated(ctx, a.store.Management, sent, of, nil)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return change.Answer(again), nil
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return nil, eksfault.New(eksfault.InUse, in.ClusterName, "", "Cluster %s is not in ACTIVE status: it is %s", in.ClusterName, status)
	}
	if of.Spec.EKS.EncryptionKeyARN != "" {
		return nil, eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Encryption is already enabled for cluster %s, with key %s", in.ClusterName, of.Spec.EKS.EncryptionKeyARN)
	}
	key, err := a.encryptionKey(ctx, call, in.ClusterName, in.EncryptionConfig)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, eksfault.New(eksfault.InvalidParameter, in.ClusterName, "", "encryptionConfig is empty: give the keyArn of a key")
	}
	text, err := json.Marshal([]map[string]any{{"resources": []string{secrets}, "provider": map[string]string{"keyArn": key}}})
	if err != nil {
		return nil, err
	}
	p := change.Plan{Of: of, Type: v1alpha1.UpdateEncryption, Change: v1alpha1.UpdateChange{EncryptionKeyARN: key}}
	p.Param("EncryptionConfig", string(text))
	return change.Accept(ctx, a.store.Management, sent, p)
}
