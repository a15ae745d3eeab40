// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// A machine of Fargate gets its pod execution role as EKS gives it: by a service principal of its own, for a session with
// the name of its node.
func TestRoleCredentialsOfAMachineOfFargate(t *testing.T) {
	w := newWorld(t, nil)
	const id, name = "i-0fa49a7e0fa49a7e0", "fargate-ip-10-0-0-5.eu-west-1.compute.internal"
	w.role("pods", trusting("Service", "eks-fargate-pods.amazonaws.com"))
	admin := w.iam(w.admin())
	must[*iam.CreateInstanceProfileOutput](w)(admin.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("pods")}))
	must[*iam.AddRoleToInstanceProfileOutput](w)(admin.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String("pods"), RoleName: aws.String("pods"),
	}))
	w.instances.set(id, instance{"pods", name, demo})
	if _, err := w.service.RoleCredentials(t.Context(), id); err == nil {
		t.Error("an instance of EC2 has a role that only Fargate may have")
	}
	w.instances.fargate = map[string]bool{id: true}
	credentials, err := w.service.RoleCredentials(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got, no := w.resolve(signer{credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken})
	w.says("its credentials", no, "")
	if got.Instance == nil || got.Instance.ID != id || got.Instance.PrivateDNSName != name || got.SessionName != name {
		t.Errorf("%+v", got)
	}
	w.instances.fargate = nil
	if _, no := w.resolve(signer{credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken}); no == "" {
		t.Error("the session is believed though the role does not let the instance in")
	}
}
