// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/plane/podidentity"
)

// A pod whose environment leads to credentials that it does not get has a cause where the reason has a code, and no other pod.
func TestOfPodIdentity(t *testing.T) {
	t.Parallel()
	ways := func(has bool, code string) []podidentity.Way {
		return []podidentity.Way{
			{Way: podidentity.ByWebIdentity, Has: has, Code: code, Why: "why"},
			{Way: podidentity.ByPodIdentity, Has: has, Code: code, Why: "why"},
			{Way: podidentity.ByNodeRole},
		}
	}
	for name, test := range map[string]struct {
		way  string
		has  bool
		code string
		want string
	}{
		"no association":                  {podidentity.ByPodIdentity, false, podidentity.CodeNoAssociation, "M-POD-83"},
		"no trust":                        {podidentity.ByPodIdentity, false, podidentity.CodeNotTrusted, "M-POD-84"},
		"no trust in the service account": {podidentity.ByWebIdentity, false, podidentity.CodeNotTrusted, "M-POD-84"},
		"it has credentials":              {podidentity.ByPodIdentity, true, "", ""},
		"no role of that name":            {podidentity.ByWebIdentity, false, "", ""},
		"it asks for none":                {"", false, podidentity.CodeNoAssociation, ""},
		"the role of the node":            {podidentity.ByNodeRole, false, podidentity.CodeNoAssociation, ""},
		"a key of its own":                {podidentity.ByOwnKey, true, podidentity.CodeNoAssociation, ""},
	} {
		f := diagnosis.Facts{Kind: "pod", Name: "shop/web", Healthy: true}
		e, ok := evidence.OfPodIdentity(podidentity.Explanation{ServiceAccount: "app", Way: test.way, Has: test.has, Ways: ways(test.has, test.code)}, evidence.Place{Namespace: "shop", Name: "web"})
		if ok {
			f.Evidence = append(f.Evidence, e)
		}
		verdict, causes := decided(t, f)
		if test.want == "" && (ok || verdict != diagnosis.Healthy) || test.want != "" && (len(causes) != 1 || string(causes[0]) != test.want) {
			t.Errorf("%s: %s %v", name, verdict, causes)
		}
	}
}
