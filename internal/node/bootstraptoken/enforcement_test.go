// SPDX-License-Identifier: Apache-2.0

package bootstraptoken_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/node/bootstraptoken"
)

func TestEnforced(t *testing.T) {
	t.Parallel()
	binding := func(name string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "joiners"}},
		}
	}
	foreign, own := []rbacv1.ClusterRoleBinding{binding("kubeadm")}, []rbacv1.ClusterRoleBinding{binding("muster:node-autoapprove-bootstrap")}
	client, serving := []issued.Entry{{Signer: pki.SignerKubeletClient}}, []issued.Entry{{Signer: pki.SignerKubeletServing}}
	for name, tc := range map[string]struct {
		bindings         []rbacv1.ClusterRoleBinding
		unread, damaged  error
		issued           []issued.Entry
		groups           []string
		reads            bool // of the record
		why, whosBinding string
	}{
		"bindings cannot be read":              {unread: errors.New("forbidden"), why: "whether anything in this cluster enforces it cannot be seen: forbidden"},
		"none approves it":                     {bindings: foreign, groups: []string{"others"}},
		"muster's own cluster":                 {bindings: own, groups: []string{"joiners"}},
		"approved for any node":                {bindings: foreign, groups: []string{"joiners"}, reads: true, why: "(it has recorded no node's certificate), and ClusterRoleBinding kubeadm has", whosBinding: "kubeadm"},
		"only serving certificates":            {bindings: foreign, groups: []string{"joiners"}, issued: serving, reads: true, why: "(it has recorded no node's certificate)", whosBinding: "kubeadm"},
		"the record cannot be read":            {bindings: foreign, groups: []string{"joiners"}, damaged: errors.New("no such thing"), reads: true, why: "(no such thing)", whosBinding: "kubeadm"},
		"muster's controller decides":          {bindings: foreign, groups: []string{"joiners"}, issued: client, reads: true},
		"it decides, and the record is ragged": {bindings: foreign, groups: []string{"joiners"}, issued: client, damaged: errors.New("segment 2 is damaged"), reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := false
			got := bootstraptoken.Cluster{
				Bindings: func(context.Context) ([]rbacv1.ClusterRoleBinding, error) { return tc.bindings, tc.unread },
				Issued:   func(context.Context) ([]issued.Entry, error) { read = true; return tc.issued, tc.damaged },
			}.Enforced(t.Context(), tc.groups)
			if (got.Why == "") != (tc.why == "") || !strings.Contains(got.Why, tc.why) || got.Binding != tc.whosBinding || read != tc.reads {
				t.Errorf("got %+v, read the record: %v", got, read)
			}
		})
	}
}
