// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func TestStepsOfAuthorities(t *testing.T) {
	t.Parallel()
	const id = "ca-0123456789abcdef0"
	answered := &v1alpha1.KubeletAuthorityAnswer{ID: "u1"}
	is := func(a v1alpha1.KubeletAuthority) []v1alpha1.KubeletAuthority {
		a.ID = id
		return []v1alpha1.KubeletAuthority{{ID: "ca-00000000000000000", Signs: !a.Signs}, a}
	}
	for name, c := range map[string]struct {
		step   v1alpha1.KubeletAuthorityStep
		asked  string
		answer *v1alpha1.KubeletAuthorityAnswer
		there  []v1alpha1.KubeletAuthority
		late   bool
		want   decision
	}{
		"not taken":            {v1alpha1.KubeletAuthorityCreate, "u1", nil, nil, false, wait("the service takes the request")},
		"an older one taken":   {v1alpha1.KubeletAuthorityCreate, "u1", &v1alpha1.KubeletAuthorityAnswer{ID: "u0", Refused: "no"}, nil, false, wait("the service takes the request")},
		"never taken":          {v1alpha1.KubeletAuthorityCreate, "u1", nil, nil, true, fail(codeUnreachable, "nobody has taken the request in 20m0s")},
		"another one asked":    {v1alpha1.KubeletAuthorityCreate, "u2", nil, nil, false, fail(codeNotPermitted, "somebody else has asked for another step meanwhile")},
		"refused":              {v1alpha1.KubeletAuthorityDelete, "u1", &v1alpha1.KubeletAuthorityAnswer{ID: "u1", Refused: "it signs"}, nil, false, fail(codeNotPermitted, "it signs")},
		"made":                 {v1alpha1.KubeletAuthorityCreate, "u1", answered, is(v1alpha1.KubeletAuthority{Distribution: v1alpha1.KubeletAuthorityInProgress, Message: "x has not read"}), false, wait("x has not read")},
		"made, never trusted":  {v1alpha1.KubeletAuthorityCreate, "u1", answered, is(v1alpha1.KubeletAuthority{Distribution: v1alpha1.KubeletAuthorityInProgress, Message: "x"}), true, fail(codeUnreachable, "the change has had no effect for 20m0s: x")},
		"trusted":              {v1alpha1.KubeletAuthorityCreate, "u1", answered, is(v1alpha1.KubeletAuthority{Distribution: v1alpha1.KubeletAuthorityComplete}), false, decision{step: stepSucceed}},
		"to sign":              {v1alpha1.KubeletAuthorityActivate, "u1", answered, is(v1alpha1.KubeletAuthority{Distribution: v1alpha1.KubeletAuthorityComplete}), false, wait("the rotation goes on")},
		"signs":                {v1alpha1.KubeletAuthorityActivate, "u1", answered, is(v1alpha1.KubeletAuthority{Signs: true, Distribution: v1alpha1.KubeletAuthorityComplete}), false, decision{step: stepSucceed}},
		"to sign, gone":        {v1alpha1.KubeletAuthorityActivate, "u1", answered, nil, false, fail(codeNotPermitted, "the authority ca-0123456789abcdef0 is gone")},
		"withdrawn everywhere": {v1alpha1.KubeletAuthorityDelete, "u1", answered, nil, false, decision{step: stepSucceed}},
		"being withdrawn":      {v1alpha1.KubeletAuthorityDelete, "u1", answered, is(v1alpha1.KubeletAuthority{Distribution: v1alpha1.KubeletAuthorityDeleting, Message: "still accepts"}), false, wait("still accepts")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpdate("u1", v1alpha1.UpdateChange{KubeletAuthority: &v1alpha1.UpdateKubeletAuthority{Step: c.step, Authority: id}})
			u.Status.AppliedAt = new(metav1.NewTime(start))
			cluster := newCluster()
			cluster.Spec.KubeletAuthority = &v1alpha1.KubeletAuthorityRequest{ID: c.asked, Step: c.step, Authority: id}
			cluster.Status.KubeletAuthority, cluster.Status.KubeletAuthorities = c.answer, c.there
			now := start
			if c.late {
				now = now.Add(patience)
			}
			if diff := cmp.Diff(c.want, next(u, facts{cluster: cluster}, now), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
