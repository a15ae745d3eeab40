// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// The ConfigMap appears with the first node group in clusters that read it, and is never changed.
func TestAWSAuthOfTheFirstNodeGroup(t *testing.T) {
	key := client.ObjectKey{Namespace: "kube-system", Name: "aws-auth"}
	prepared := func(mode v1alpha1.AuthenticationMode) (*NodeRoles, *corev1.ConfigMap, error) {
		n := &NodeRoles{Access: newAccess(t, mode, iamRole("/teams/", "workers", "AROA1"), iamProfile("workers", "AROA1"), iamRole("/", "other", "AROA2"), iamProfile("other", "AROA2"))}
		if _, err := n.Prepare(t.Context(), "workers"); err != nil {
			t.Fatal(err)
		}
		is := &corev1.ConfigMap{}
		return n, is, n.Access.cluster.Get(t.Context(), key, is)
	}
	for _, mode := range []v1alpha1.AuthenticationMode{v1alpha1.AuthenticationAPI, v1alpha1.AuthenticationAPIAndConfigMap} {
		if _, is, err := prepared(mode); !apierrors.IsNotFound(err) {
			t.Errorf("in mode %s: %v, %v", mode, is.Data, err)
		}
	}
	n, is, err := prepared(v1alpha1.AuthenticationConfigMap)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"mapRoles": `- groups:
  - system:bootstrappers
  - system:nodes
  rolearn: arn:aws:iam::000000000000:role/workers
  username: system:node:{{EC2PrivateDNSName}}
`}
	if diff := cmp.Diff(want, is.Data); diff != "" {
		t.Errorf("aws-auth (-want +got):\n%s", diff)
	}
	is.Data = map[string]string{"mapUsers": "[]"}
	if err := n.Access.cluster.Update(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Prepare(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if err := n.Access.cluster.Get(t.Context(), key, is); err != nil || is.Data["mapRoles"] != "" {
		t.Errorf("somebody's aws-auth is changed: %v, %v", is.Data, err)
	}
}
