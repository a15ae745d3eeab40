// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"cmp"
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// authorityEffect compares what a cluster says of its kubelets' authorities with the step that an update asked for.
func authorityEffect(u *v1alpha1.Update, c *v1alpha1.Cluster, late bool) decision {
	step, asked, answer := u.Spec.Change.KubeletAuthority, c.Spec.KubeletAuthority, c.Status.KubeletAuthority
	switch {
	case answer != nil && answer.ID == u.Name && answer.Refused != "":
		return fail(codeNotPermitted, "%s", answer.Refused)
	case answer == nil || answer.ID != u.Name:
		if asked == nil || asked.ID != u.Name {
			return fail(codeNotPermitted, "somebody else has asked for another step meanwhile")
		}
		if late {
			return fail(codeUnreachable, "nobody has taken the request in %v", patience)
		}
		return wait("the service takes the request")
	}
	n := slices.IndexFunc(c.Status.KubeletAuthorities, func(a v1alpha1.KubeletAuthority) bool { return a.ID == step.Authority })
	if n < 0 {
		if step.Step == v1alpha1.KubeletAuthorityDelete {
			return decision{step: stepSucceed}
		}
		return fail(codeNotPermitted, "the authority %s is gone", step.Authority)
	}
	is := c.Status.KubeletAuthorities[n]
	switch {
	case step.Step == v1alpha1.KubeletAuthorityCreate && (is.Signs || is.Distribution == v1alpha1.KubeletAuthorityComplete),
		step.Step == v1alpha1.KubeletAuthorityActivate && is.Signs:
		return decision{step: stepSucceed}
	case late:
		return fail(codeUnreachable, "the change has had no effect for %v: %s", patience, is.Message)
	}
	return wait("%s", cmp.Or(is.Message, "the rotation goes on"))
}
