// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"testing"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
)

// A key that ended takes the sessions that may have been made with it, and no machine's and nobody else's key.
func TestConcernsSessions(t *testing.T) {
	node := &identity.Instance{ID: "i-1"}
	for name, tc := range map[string]struct {
		of   identity.Principal
		want bool
	}{
		"key of a user":                            {identity.Principal{UserID: "AIDA1", AccessKeyID: "AKIA1"}, false},
		"session of a user":                        {identity.Principal{UserID: "AIDA1", AccessKeyID: "ASIA1"}, true},
		"session of a role":                        {identity.Principal{UserID: "AROA1", AccessKeyID: "ASIA1"}, true},
		"session of an instance's own profile":     {identity.Principal{UserID: "AROA1", AccessKeyID: "ASIA1", Instance: node}, false},
		"role that was assumed from an instance":   {identity.Principal{UserID: "AROA1", AccessKeyID: "ASIA1", Machine: &identity.Machine{ID: "i-1"}}, true},
		"credentials of a form that nobody writes": {identity.Principal{UserID: "AROA1"}, true},
	} {
		if got := Concerns(keyservice.Change{Sessions: true}, Identity{Principal: tc.of}); got != tc.want {
			t.Errorf("%s: %t, not %t", name, got, tc.want)
		}
	}
}
