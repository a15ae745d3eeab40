// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"

	"muster.dev/muster/internal/cloud/eksauth"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/podidentity"
)

// Pods knows which pods of the clusters have which identities.
type Pods interface {
	eksauth.Account
	// Role is what the identity service is asked to give a pod by an association.
	Role(pod podidentity.Pod, by podidentity.Association, externalID string) identityservice.PodRole
}

// assumeForPod has the identity service give a pod the role of an association.
func assumeForPod(identity *identityservice.Service, pods Pods) func(context.Context, podidentity.Pod, podidentity.Association, string) (eksauth.Credentials, error) {
	return func(ctx context.Context, pod podidentity.Pod, by podidentity.Association, externalID string) (eksauth.Credentials, error) {
		given, err := identity.AssumeForPod(ctx, pods.Role(pod, by, externalID))
		return eksauth.Credentials{
			AccessKeyID: given.AccessKeyID, SecretAccessKey: given.Secret.Reveal(), SessionToken: given.SessionToken, Expires: given.Expires,
			ARN: given.ARN, RoleID: given.RoleID,
		}, err
	}
}
