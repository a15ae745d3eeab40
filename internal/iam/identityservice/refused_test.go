// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"slices"
	"testing"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
)

// Only the holder of a session token that was sealed for an instance, under the access key that belongs to it, says
// something about an instance.
func TestRefusedTokensAreTheInstances(t *testing.T) {
	var told []string
	w := newWorld(t, func(c *identityservice.Config) {
		c.Refused = func(cluster, instance string, r keyservice.Refused) {
			told = append(told, cluster+" "+instance+" "+r.Rule)
		}
	})
	w.instances.set(node, instance{"muster-node", nodeName, demo})
	own, err := w.service.RoleCredentials(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	report := func(key, token string) []string {
		told = nil
		if err := w.service.Refused(t.Context(), "demo", keyservice.Refused{AccessKeyID: key, SessionToken: token, Rule: "host"}); err != nil {
			t.Error(err)
		}
		return told
	}
	if got := report(own.AccessKeyID, own.SessionToken); !slices.Equal(got, []string{"demo " + node + " host"}) {
		t.Errorf("told %q", got)
	}
	for name, got := range map[string][]string{
		"an access key alone":     report(own.AccessKeyID, ""),
		"a token that is made up": report(own.AccessKeyID, "AQAAAAA"),
		"a token cut short":       report(own.AccessKeyID, own.SessionToken[:len(own.SessionToken)-1]),
		"another access key":      report("ASIAAAAAAAAAAAAAAAAA", own.SessionToken),
		"a user's key":            report(w.key.ID, ""),
	} {
		if len(got) > 0 {
			t.Errorf("%s: told %q", name, got)
		}
	}
	w.instances.set(node, instance{})
	if got := report(own.AccessKeyID, own.SessionToken); len(got) > 0 {
		t.Errorf("the instance is gone: told %q", got)
	}
}
