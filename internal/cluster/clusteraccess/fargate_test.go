// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/fargate"
)

const workersARN = "arn:aws:iam::" + account + ":role/workers"

func TestPrepareFargate(t *testing.T) {
	t.Parallel()
	n := rolesWithStore(t, storeWithRole(t), iamRole("/", "workers", "AROA2"))
	for range 2 {
		if name, err := n.PrepareFargate(t.Context(), workersARN); err != nil || !strings.Contains(name, "workers") {
			t.Errorf("%q, %v", name, err)
		}
	}
	want := map[string]accessv1alpha1.AccessEntrySpec{"workers": {PrincipalARN: workersARN, PrincipalID: "AROA2", Type: accessv1alpha1.TypeFargateLinux}}
	if diff := cmp.Diff(want, entriesOf(t, n.Access)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	starts := rolesWithStore(t, nil, iamRole("/", "workers", "AROA2"))
	starts.store = func() identityservice.Store { return nil }
	_, err := starts.PrepareFargate(t.Context(), workersARN)
	if problem, ok := errors.AsType[*fargate.RoleProblem](err); err == nil || ok {
		t.Errorf("an identity service that starts is a problem of the role: %v", problem)
	}
}

// A role that cannot be used says why by a reason that profiles have, in both modes.
func TestPrepareFargateIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode         v1alpha1.AuthenticationMode
		role, reason string
		says         string
	}{
		"no such role":             {v1alpha1.AuthenticationAPI, "none", v1alpha1.ReasonPodExecutionRole, "there is no IAM role none"},
		"a role of nodes":          {v1alpha1.AuthenticationAPI, "workers", v1alpha1.ReasonPodExecutionRoleInUse, "has the access entry workers of type EC2_LINUX"},
		"a role of nodes, mapped":  {v1alpha1.AuthenticationConfigMap, "workers", v1alpha1.ReasonPodExecutionRoleInUse, "has the IAMIdentityMapping workers"},
		"no such role, and mapped": {v1alpha1.AuthenticationConfigMap, "none", v1alpha1.ReasonPodExecutionRole, "there is no IAM role none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := rolesWithStore(t, storeWithRole(t), iamRole("/", "workers", "AROA2"), &v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
			n.mode = test.mode
			if _, err := n.Prepare(t.Context(), "workers"); err != nil { // as of a node group
				t.Fatal(err)
			}
			_, err := n.PrepareFargate(t.Context(), strings.Replace(workersARN, "workers", test.role, 1))
			problem, ok := errors.AsType[*fargate.RoleProblem](err)
			if !ok || problem.Reason != test.reason || !strings.Contains(problem.Message, test.says) || !fargate.IsRoleProblem(problem.Reason) {
				t.Errorf("%v, %+v", err, problem)
			}
			var mappings iamv1alpha1.IAMIdentityMappingList
			if err := n.Access.cluster.List(t.Context(), &mappings); err != nil || len(mappings.Items)+len(entriesOf(t, n.Access)) != 1 {
				t.Errorf("%v; there are %v and %v", err, mappings.Items, entriesOf(t, n.Access))
			}
		})
	}
}
