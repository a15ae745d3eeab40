// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"encoding/json"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
)

type associateEncryptionConfigInput struct {
	ClusterName, ClientRequestToken string
	EncryptionConfig                []encryption
}

// associateEncryptionConfig keeps the key that a cluster was made without. It is a record, as that of CreateCluster.
func (a *api) associateEncryptionConfig() awsfront.Spec[associateEncryptionConfigInput, updateOutput] {
	return awsfront.Spec[associateEncryptionConfigInput, updateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateEncryptionConfigInput) ([]awsfront.Target, error) {
			targets, err := a.aboutCluster(ctx, call, in.ClusterName)
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

func (a *api) doAssociateEncryptionConfig(ctx context.Context, call *awsfront.Call, in *associateEncryptionConfigInput) (*updateOutput, error) {
	sent, err := tokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.locks.Hold(in.ClusterName)()
	of, err := a.cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	again, err := a.repeated(ctx, sent, of, nil)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return &updateOutput{showUpdate(again)}, nil
	}
	if status, _ := clusterStatus(of); status != active {
		return nil, fault(inUse, in.ClusterName, "", "Cluster %s is not in ACTIVE status: it is %s", in.ClusterName, status)
	}
	if of.Spec.EKS.EncryptionKeyARN != "" {
		return nil, fault(invalidRequest, in.ClusterName, "", "Encryption is already enabled for cluster %s, with key %s", in.ClusterName, of.Spec.EKS.EncryptionKeyARN)
	}
	key, err := a.encryptionKey(ctx, call, in.ClusterName, in.EncryptionConfig)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, fault(invalidParameter, in.ClusterName, "", "encryptionConfig is empty: give the keyArn of a key")
	}
	text, err := json.Marshal([]map[string]any{{"resources": []string{secrets}, "provider": map[string]string{"keyArn": key}}})
	if err != nil {
		return nil, err
	}
	p := planned{of: of, kind: v1alpha1.UpdateEncryption, change: v1alpha1.UpdateChange{EncryptionKeyARN: key}}
	p.param("EncryptionConfig", string(text))
	return a.accept(ctx, sent, p)
}
