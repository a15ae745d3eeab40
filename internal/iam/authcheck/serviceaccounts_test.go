// SPDX-License-Identifier: Apache-2.0

package authcheck

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/iam/identity"
)

func TestServiceAccounts(t *testing.T) {
	const role = "arn:aws:iam::111122223333:role/app"
	account := func(annotations map[string]string) corev1.ServiceAccount {
		return corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Annotations: annotations}}
	}
	leaving := account(map[string]string{annotationRole: "x"})
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		account corev1.ServiceAccount
		entries int
		want    []string // each in a problem
	}{
		"no annotations":   {account(nil), 0, nil},
		"others":           {account(map[string]string{annotationLifetime: "x"}), 0, nil},
		"a role":           {account(map[string]string{annotationRole: role, annotationLifetime: "3600", annotationRegional: "True"}), 1, nil},
		"a name":           {account(map[string]string{annotationRole: "app"}), 1, []string{`is not an ARN: "app"`}},
		"a user":           {account(map[string]string{annotationRole: "arn:aws:iam::111122223333:user/app"}), 1, []string{"is not the ARN of a role"}},
		"a profile":        {account(map[string]string{annotationRole: "arn:aws:iam::111122223333:instance-profile/app"}), 1, []string{"is not the ARN of a role"}},
		"nothing":          {account(map[string]string{annotationRole: ""}), 1, []string{"is not an ARN"}},
		"too short":        {account(map[string]string{annotationRole: role, annotationLifetime: "599"}), 1, []string{`is "599"`}},
		"an hour":          {account(map[string]string{annotationRole: role, annotationLifetime: "1h"}), 1, []string{`is "1h"`}},
		"neither":          {account(map[string]string{annotationRole: role, annotationRegional: "yes"}), 1, []string{`is "yes"`}},
		"all of them":      {account(map[string]string{annotationRole: "x", annotationLifetime: "x", annotationRegional: "x"}), 1, []string{annotationRole, annotationLifetime, annotationRegional}},
		"is being deleted": {leaving, 0, nil},
	} {
		e := &Entries{}
		e.AddServiceAccounts([]corev1.ServiceAccount{c.account})
		got := e.Check(identity.Options{Mode: identity.ModeAPIAndConfigMap}, nil)
		if got.Entries != c.entries || len(got.Problems) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, want := range c.want {
			if p := got.Problems[i]; !strings.Contains(p.Field+" "+p.Saw, want) || p.Entry != "shop/app" || p.Source != sourceServiceAccount || p.Fix == "" {
				t.Errorf("%s: %+v, want %q", name, p, want)
			}
		}
	}
}
