// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/identity"
)

// An entry has its own problems, and says in a word whether it counts. Other problems are the cluster's.
func TestAccessStates(t *testing.T) {
	f := pageservertest.World()
	of := f.Of["staging"]
	of.Access.Grants = []view.Grant{{Grant: identity.Grant{Source: identity.SourceAccessEntry, Entry: "e", Unasked: true}}}
	f.Of["staging"] = of
	page := view.NewAccess(f, "")
	got := ""
	for _, c := range page.Clusters {
		for _, g := range c.Grants {
			got += fmt.Sprintf("%s %s %s %d\n", c.Cluster, g.Entry, g.State, len(g.Problems))
		}
		for _, p := range c.Problems {
			got += fmt.Sprintf("%s: %s %s\n", c.Cluster, p.Source, p.Field)
		}
	}
	const want = "home alice used 1\nhome muster-node-home used 0\nhome mapUsers[0] second 0\nhome mapRoles[1] unused 1\nhome mapAccounts[0] used 0\nhome: aws-auth maproles\nstaging e unasked 0\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAccessFilter(t *testing.T) {
	for filter, want := range map[string]string{
		"": "5 1 3 3", "ALICE\t": "2 0 0 0", "system:masters": "1 0 0 0", "no-entry": "0 0 1 0", "sts:assume": "0 0 1 0", "m-iam-07": "0 0 1 0", "shop/web": "0 1 0 0", "abcdef": "0 1 0 1", pageservertest.Joining: "0 0 0 1", "nothing": "0 0 0 0",
	} {
		page := view.NewAccess(pageservertest.World(), filter)
		grants := 0
		for _, c := range page.Clusters {
			grants += len(c.Grants)
		}
		if got := fmt.Sprint(grants, len(page.Pods), len(page.Refusals), len(page.Tokens)); got != want || page.Clusters[0].All != 5 {
			t.Errorf("%q: entries, pods, refusals and tokens are %s of %d, want %s", filter, got, page.Clusters[0].All, want)
		}
	}
}

// However much there is, the page and its JSON are bounded, and say what is left out.
func TestAccessIsBounded(t *testing.T) {
	f := pageservertest.Many(1000)
	f.Of["other"] = f.Of["home"]
	page := view.NewAccess(f, "")
	if len(page.Clusters) != 2 || len(page.Clusters[0].Grants) != 200 || len(page.Clusters[1].Grants) != 0 || len(page.Pods) != 200 || len(page.Refusals) != 200 || len(page.Tokens) != 200 {
		t.Errorf("%d clusters, %d pods, %d refusals, %d tokens", len(page.Clusters), len(page.Pods), len(page.Refusals), len(page.Tokens))
	}
	if want := (view.MoreOfAccess{Grants: 1800, Pods: 800, Refusals: 800, Tokens: 1800}); page.More != want {
		t.Errorf("left out are %+v, want %+v", page.More, want)
	}
	large := strings.Split(strings.Repeat("group-of-many ", 500), " ")
	of := f.Of["home"]
	for i := range of.Access.Grants {
		g := &of.Access.Grants[i]
		g.Groups, g.Policies = large, []view.Policy{{Name: "p", Namespaces: large}}
		for range 50 {
			of.Access.Problems = append(of.Access.Problems, identity.Problem{Source: g.Source, Entry: g.Entry, Saw: "x"})
		}
	}
	of.Access.Notes = large
	f.Of["home"] = of
	page = view.NewAccess(f, "")
	g := page.Clusters[0].Grants[0]
	if len(g.Groups) != 20 || g.MoreGroups != 481 || len(g.Policies[0].Namespaces) != 21 || len(g.Problems) != 20 || len(page.Clusters[0].Notes) != 20 {
		t.Errorf("%d groups and %d more, %d namespaces, %d problems", len(g.Groups), g.MoreGroups, len(g.Policies[0].Namespaces), len(g.Problems))
	}
	if raw, err := json.Marshal(page); err != nil || len(raw) > 1<<20 {
		t.Errorf("%d bytes of JSON, %v", len(raw), err)
	}
	if len(of.Access.Grants[0].Policies[0].Namespaces) != len(large) {
		t.Error("the facts were changed")
	}
}

// Where nothing could be read of entries, the page does not say that there are none.
func TestAccessThatCannotBeRead(t *testing.T) {
	f := pageservertest.World()
	of := f.Of["home"]
	of.Access.Mode, of.Access.Grants = "", nil
	f.Of["home"] = of
	if page := view.NewAccess(f, ""); len(page.Clusters) != 1 || len(page.Tokens) != 3 {
		t.Errorf("%d clusters, %d tokens", len(page.Clusters), len(page.Tokens))
	}
}
