// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// secrets is the one resource that EKS encrypts with a key of the account.
const secrets = "secrets"

// encryption says which key encrypts which resources.
type encryption struct {
	Resources []string
	Provider  keyProvider
}

type keyProvider struct{ KeyARN string }

// encryptionKey is the key that a request gives for Secrets, empty without one. The key is a record, as the ClusterEKS
// says.
func (a *API) encryptionKey(ctx context.Context, call *awsfront.Call, cluster string, configs []encryption) (string, error) {
	switch {
	case len(configs) == 0:
		return "", nil
	case len(configs) > 1:
		return "", eksfault.New(eksfault.InvalidParameter, cluster, "", "encryptionConfig has %d members: there may be one", len(configs))
	case !slices.Equal(configs[0].Resources, []string{secrets}):
		return "", eksfault.New(eksfault.InvalidParameter, cluster, "", "The resources of encryptionConfig are %q: they must be [%s]", configs[0].Resources, secrets)
	}
	arn := configs[0].Provider.KeyARN
	if err := a.Key(ctx, call.Caller.Account(), arn); err != nil {
		return "", &awsfault.Error{Code: eksfault.InvalidParameter, Message: "The keyArn of encryptionConfig cannot be used: " + err.Error(), Members: map[string]any{"clusterName": cluster}, Cause: err}
	}
	return arn, nil
}
