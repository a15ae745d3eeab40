// SPDX-License-Identifier: Apache-2.0

package bootstraptoken_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/node/bootstraptoken"
)

func TestApprovedForAnyNode(t *testing.T) {
	t.Parallel()
	const kubeadms = "system:bootstrappers:kubeadm:default-node-token"
	binding := func(name, role, kind, subject string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:certificates.k8s.io:certificatesigningrequests:" + role},
			Subjects: []rbacv1.Subject{{Kind: kind, Name: "other"}, {Kind: kind, Name: subject}},
		}
	}
	kubeadm := binding("kubeadm", "nodeclient", "Group", kubeadms)
	for name, tc := range map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		groups   []string
		approves string
		own      bool
	}{
		"no bindings":            {nil, []string{kubeadms}, "", false},
		"its group":              {[]rbacv1.ClusterRoleBinding{kubeadm}, []string{"a", kubeadms}, "kubeadm", false},
		"another group":          {[]rbacv1.ClusterRoleBinding{kubeadm}, []string{"a"}, "", false},
		"every token":            {[]rbacv1.ClusterRoleBinding{binding("all", "nodeclient", "Group", "system:bootstrappers")}, nil, "all", false},
		"the first counts":       {[]rbacv1.ClusterRoleBinding{kubeadm, binding("second", "nodeclient", "Group", kubeadms)}, []string{kubeadms}, "kubeadm", false},
		"a user of that name":    {[]rbacv1.ClusterRoleBinding{binding("user", "nodeclient", "User", kubeadms)}, []string{kubeadms}, "", false},
		"rotation":               {[]rbacv1.ClusterRoleBinding{binding("rotation", "selfnodeclient", "Group", kubeadms)}, []string{kubeadms}, "", false},
		"muster's own":           {[]rbacv1.ClusterRoleBinding{kubeadm, binding("muster:node-autoapprove-bootstrap", "nodeclient", "Group", "b")}, []string{kubeadms}, "kubeadm", true},
		"its name, another role": {[]rbacv1.ClusterRoleBinding{binding("muster:node-autoapprove-bootstrap", "selfnodeclient", "Group", kubeadms)}, []string{kubeadms}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if approves, own := bootstraptoken.ApprovedForAnyNode(tc.bindings, tc.groups); approves != tc.approves || own != tc.own {
				t.Errorf("got %q, %v, want %q, %v", approves, own, tc.approves, tc.own)
			}
		})
	}
}
