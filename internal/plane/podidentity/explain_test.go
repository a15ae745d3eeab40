// SPDX-License-Identifier: Apache-2.0

package podidentity_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/plane/podidentity"
)

const nodeRole, far = "arn:aws:iam::000000000000:role/muster-node", "arn:aws:iam::000000000000:role/far"

func TestExplain(t *testing.T) {
	env := func(f *podidentity.Facts, names ...string) {
		for _, name := range names {
			f.Pod.Spec.Containers[0].Env = append(f.Pod.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: "x"})
		}
	}
	container := []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}
	associated := func(f *podidentity.Facts) { f.Association = &podidentity.Association{ID: "a-1", Role: role} }
	for name, c := range map[string]struct {
		change    func(*podidentity.Facts)
		way, role string
		has       bool
		says      string // of the way that is named, or of EKS Pod Identity
		of        string
	}{
		"nothing":        {func(*podidentity.Facts) {}, "", "", false, "has no pod identity association", ""},
		"an association": {func(f *podidentity.Facts) { associated(f); env(f, container...) }, podidentity.ByPodIdentity, role, true, "association a-1, whose role lets pods.eks.amazonaws.com in", ""},
		"a target role":  {func(f *podidentity.Facts) { associated(f); env(f, container...); f.Association.Target = far }, podidentity.ByPodIdentity, far, true, "which the target role lets in", ""},
		"no trust": {func(f *podidentity.Facts) {
			associated(f)
			env(f, container...)
			f.Refused = errors.New("does not let pods in")
		}, podidentity.ByPodIdentity, role, false, "does not let pods in", ""},
		"an older pod": {associated, "", "", false, "it is older than the association", ""},
		"half of it":   {func(f *podidentity.Facts) { associated(f); env(f, container[1]) }, "", "", false, "it is older than the association", ""},
		"removed":      {func(f *podidentity.Facts) { env(f, container...) }, podidentity.ByPodIdentity, "", false, "has no pod identity association", ""},
		"no account":   {func(f *podidentity.Facts) { associated(f); env(f, container...); f.Account = nil }, podidentity.ByPodIdentity, role, false, "the service account shop/app is gone", ""},
		"no node": {func(f *podidentity.Facts) {
			associated(f)
			env(f, container...)
			f.Pod.Spec.NodeName, f.Machine = "", ""
		}, podidentity.ByPodIdentity, role, false, "not been assigned to a node", ""},
		"a host's node":    {func(f *podidentity.Facts) { associated(f); env(f, container...); f.Machine = "" }, podidentity.ByPodIdentity, role, false, "is not a machine of the account", ""},
		"no node role":     {func(f *podidentity.Facts) { associated(f); env(f, container...); f.NodeRole = "" }, podidentity.ByPodIdentity, role, false, "has no role, by which its agent asks", ""},
		"the host network": {func(f *podidentity.Facts) { f.Pod.Spec.HostNetwork = true }, podidentity.ByNodeRole, nodeRole, true, "takes it for the machine", podidentity.ByNodeRole},
		"two hops":         {func(f *podidentity.Facts) { f.HopLimit = 2 }, podidentity.ByNodeRole, nodeRole, true, "httpPutResponseHopLimit 2", podidentity.ByNodeRole},
		"one hop":          {func(*podidentity.Facts) {}, "", "", false, "closed to pods", podidentity.ByNodeRole},
		"an association where the node's role can be had, too": {func(f *podidentity.Facts) { associated(f); env(f, container...); f.HopLimit = 2 }, podidentity.ByPodIdentity, role, true, "answers every pod", podidentity.ByNodeRole},
		"IRSA": {func(f *podidentity.Facts) {
			f.Account.Annotations[podidentity.AnnotationRole] = far
			env(f, "AWS_WEB_IDENTITY_TOKEN_FILE")
		}, podidentity.ByWebIdentity, far, true, "lets it in", podidentity.ByWebIdentity},
		"IRSA, no trust": {func(f *podidentity.Facts) {
			f.Account.Annotations[podidentity.AnnotationRole] = far
			env(f, "AWS_WEB_IDENTITY_TOKEN_FILE")
			f.WebIdentityRefused = errors.New("no such sub")
		}, podidentity.ByWebIdentity, far, false, "no such sub", podidentity.ByWebIdentity},
		"IRSA, an older pod": {func(f *podidentity.Facts) { f.Account.Annotations[podidentity.AnnotationRole] = far }, "", "", false, "older than the annotation", podidentity.ByWebIdentity},
		"both": {func(f *podidentity.Facts) {
			associated(f)
			env(f, append(container, "AWS_WEB_IDENTITY_TOKEN_FILE")...)
			f.Account.Annotations[podidentity.AnnotationRole] = far
		}, podidentity.ByWebIdentity, far, true, "", ""},
		"a key of its own": {func(f *podidentity.Facts) { associated(f); env(f, append(container, "AWS_ACCESS_KEY_ID")...) }, podidentity.ByOwnKey, "", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := podidentity.Facts{
				Cluster: "demo", Machine: "i-1", NodeRole: nodeRole, HopLimit: 1,
				Pod: &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
					Spec:       corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "app", Containers: []corev1.Container{{Name: "c"}}},
				},
				Account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Annotations: map[string]string{}}},
			}
			c.change(&f)
			e := podidentity.Explain(f)
			if e.Way != c.way || e.Role != c.role || e.Has != c.has {
				t.Errorf("%q %q %v, want %q %q %v", e.Way, e.Role, e.Has, c.way, c.role, c.has)
			}
			if c.of == "" {
				c.of = podidentity.ByPodIdentity
			}
			for _, w := range e.Ways {
				if w.Way == c.of && !strings.Contains(w.Why, c.says) {
					t.Errorf("%s: %q, want %q", w.Way, w.Why, c.says)
				}
				if w.Why == "" {
					t.Errorf("%s says nothing", w.Way)
				}
			}
		})
	}
}

func TestWebIdentityAudience(t *testing.T) {
	f := podidentity.Facts{}
	if got := f.WebIdentityAudience(); got != "sts.amazonaws.com" {
		t.Errorf("%q", got)
	}
	f.Account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"eks.amazonaws.com/audience": "mine"}}}
	if got := f.WebIdentityAudience(); got != "mine" {
		t.Errorf("%q", got)
	}
}
