// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

// The mode API must not shut out the nodes and the creator of a cluster that began with CONFIG_MAP.
func TestFirstOnesGetAccessEntriesWhenTheModeKnowsThem(t *testing.T) {
	for _, mode := range []v1alpha1.AuthenticationMode{v1alpha1.AuthenticationAPIAndConfigMap, v1alpha1.AuthenticationAPI} {
		a := newAccess(t, v1alpha1.AuthenticationConfigMap, iamAdmin(), iamRole("/", "muster-node-blue", "AROA1"), iamRole("/team/", "other", "AROA2"),
			&v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
		if err := a.first(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		for name, arn := range map[string]string{"other": "team/other", "gone": "gone"} {
			mapping := &iamv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: iamv1alpha1.IAMIdentityMappingSpec{ARN: "arn:aws:iam::" + account + ":role/" + arn, Username: nodeUsername}}
			if err := a.cluster.Create(t.Context(), mapping); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.first(t.Context(), true); err != nil || len(entriesOf(t, a)) != 0 {
			t.Fatalf("while the mode is the same: %v, %v", err, entriesOf(t, a))
		}
		a.mode = mode
		if err := a.first(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		entries := entriesOf(t, a)
		if len(entries) != 3 || entries["cluster-creator"].PrincipalID != "AIDA1" || entries["muster-node-blue"].PrincipalID != "AROA1" || entries["other"].PrincipalID != "AROA2" {
			t.Errorf("mode %s: %+v", mode, entries)
		}
	}
}

func TestWhoseMappingWasDeletedGetsNoAccessEntry(t *testing.T) {
	a := newAccess(t, v1alpha1.AuthenticationConfigMap, iamAdmin(), iamRole("/", "muster-node-blue", "AROA1"))
	if err := a.first(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := a.cluster.Delete(t.Context(), &iamv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: creatorEntry}}); err != nil {
		t.Fatal(err)
	}
	a.mode = v1alpha1.AuthenticationAPI
	for range 2 { // the second time nothing is made anew
		if err := a.first(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if entries := entriesOf(t, a); len(entries) != 1 || entries["muster-node-blue"].PrincipalID != "AROA1" {
			t.Errorf("%+v", entries)
		}
	}
}
