// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
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
	return change.Answer(change.Make(ctx, a.store, call, in.ClusterName, in.ClientRequestToken, change.OfCluster(a.store, in.ClusterName), func(p *change.Plan) error {
		if err := checkActive(p.Of); err != nil {
			return err
		}
		if has := p.Of.Spec.EKS.EncryptionKeyARN; has != "" {
			return eksfault.New(eksfault.InvalidRequest, in.ClusterName, "", "Encryption is already enabled for cluster %s, with key %s", in.ClusterName, has)
		}
		key, err := a.encryptionKey(ctx, call, in.ClusterName, in.EncryptionConfig)
		if err != nil {
			return err
		}
		if key == "" {
			return eksfault.New(eksfault.InvalidParameter, in.ClusterName, "", "encryptionConfig is empty: give the keyArn of a key")
		}
		text, err := json.Marshal([]map[string]any{{"resources": []string{secrets}, "provider": map[string]string{"keyArn": key}}})
		p.Type, p.Change.EncryptionKeyARN = v1alpha1.UpdateEncryption, key
		p.Param("EncryptionConfig", string(text))
		return err
	}))
}
