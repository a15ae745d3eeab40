// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
)

// everything are all rights to clusters.
func everything(clusters ...string) view.Rights {
	r := view.Rights{Machines: true, Subnets: true, Roles: true, Account: true, Of: map[string]view.ClusterRights{}}
	for _, name := range clusters {
		r.Of[name] = view.ClusterRights{Describe: true, Groups: true, Updates: true, Access: true, Pods: true, Logs: true, Nodes: true, Requests: true, Tokens: true}
	}
	return r
}

// size is how much of each kind facts have.
func size(f view.Facts) map[string]int {
	n := map[string]int{
		"clusters": len(f.Clusters), "groups": len(f.Groups), "machines": len(f.Machines), "updates": len(f.Updates), "subnets": len(f.Subnets), "pods": len(f.Associations),
		"refusals": len(f.Refusals), "roles": len(f.Roles), "reports": len(f.Wrong.Reports),
	}
	for _, of := range f.Of {
		n["nodes"] += len(of.Nodes)
		n["requests"] += len(of.Reviews)
		n["certificates"] += len(of.Certificates)
		n["grants"] += len(of.Access.Grants)
		n["tokens"] += len(of.Access.Tokens)
	}
	return n
}

// With all rights all is seen, with none nothing, and without one of them its own part is not.
func TestFactsForAViewer(t *testing.T) {
	f := pageservertest.World()
	var names []string
	for i := range f.Clusters {
		names = append(names, f.Clusters[i].Spec.Name)
	}
	all := size(f)
	for kind, n := range size(f.For(everything(names...))) {
		if n != all[kind] {
			t.Errorf("with all rights there are %d %s of %d", n, kind, all[kind])
		}
	}
	nothing := f.For(view.Rights{})
	for kind, n := range size(nothing) {
		if n != 0 {
			t.Errorf("without rights there are %d %s", n, kind)
		}
	}
	raw, err := json.Marshal([]any{view.NewOverview(nothing, ""), view.NewAccess(nothing, ""), view.NewCertificates(nothing, ""), view.NewChanges(nothing)})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(names, pageservertest.FirstOne, pageservertest.Refused) {
		if strings.Contains(string(raw), `"`+secret+`"`) {
			t.Errorf("without rights %s is seen: %s", secret, raw)
		}
	}
	for right, test := range map[string]struct {
		without func(*view.Rights, *view.ClusterRights)
		gone    []string
	}{
		"describe": {func(_ *view.Rights, c *view.ClusterRights) { c.Describe = false }, []string{"clusters", "groups", "updates", "nodes", "requests", "grants", "tokens", "pods"}},
		"machines": {func(r *view.Rights, _ *view.ClusterRights) { r.Machines = false }, []string{"machines", "reports"}},
		"subnets":  {func(r *view.Rights, _ *view.ClusterRights) { r.Subnets = false }, []string{"subnets"}},
		"roles":    {func(r *view.Rights, _ *view.ClusterRights) { r.Roles = false }, []string{"roles"}},
		"groups":   {func(_ *view.Rights, c *view.ClusterRights) { c.Groups = false }, []string{"groups", "reports"}},
		"updates":  {func(_ *view.Rights, c *view.ClusterRights) { c.Updates = false }, []string{"updates", "reports"}},
		"access":   {func(_ *view.Rights, c *view.ClusterRights) { c.Access = false }, []string{"grants", "reports"}},
		"pods":     {func(_ *view.Rights, c *view.ClusterRights) { c.Pods = false }, []string{"pods", "reports"}},
		"logs":     {func(_ *view.Rights, c *view.ClusterRights) { c.Logs = false }, []string{"reports"}},
		"nodes":    {func(_ *view.Rights, c *view.ClusterRights) { c.Nodes = false }, []string{"nodes", "reports"}},
		"requests": {func(_ *view.Rights, c *view.ClusterRights) { c.Requests = false }, []string{"requests", "reports"}},
		"tokens":   {func(_ *view.Rights, c *view.ClusterRights) { c.Tokens = false }, []string{"tokens", "reports"}},
	} {
		r := everything(names...)
		for name, of := range r.Of {
			test.without(&r, &of)
			r.Of[name] = of
		}
		got := size(f.For(r))
		for _, kind := range test.gone {
			if got[kind] != 0 {
				t.Errorf("without %s there are %d %s", right, got[kind], kind)
			}
		}
		if r.Machines && f.Explained(r, pageservertest.FirstOne) && right != "subnets" && right != "roles" {
			t.Errorf("without %s a machine is explained", right)
		}
	}
	one := f.For(everything(names[0]))
	if len(one.Clusters) != 1 || len(one.Of) > 2 {
		t.Errorf("with the rights to %s: %v", names[0], size(one))
	}
	for i := range one.Machines {
		if of := one.Machines[i].Spec.ClusterName; of != "" && of != names[0] {
			t.Errorf("a machine of %s is seen", of)
		}
	}
}
