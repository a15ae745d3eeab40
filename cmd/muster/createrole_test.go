// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestCreateWithARole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provider, bootstrap, role string
		want                      v1alpha1.NodeGroupSpec
		says                      string
	}{
		"nothing said":           {"local", "", "", v1alpha1.NodeGroupSpec{}, ""},
		"a role":                 {"local", "", "team", v1alpha1.NodeGroupSpec{NodeRole: "team"}, ""},
		"a role, by role":        {"local", "role", "arn:aws:iam::000000000000:role/a/team", v1alpha1.NodeGroupSpec{NodeRole: "arn:aws:iam::000000000000:role/a/team", Bootstrap: "Role"}, ""},
		"by token":               {"local", "token", "", v1alpha1.NodeGroupSpec{Bootstrap: "Token"}, ""},
		"simulated, by token":    {"simulated", "token", "", v1alpha1.NodeGroupSpec{Bootstrap: "Token"}, ""},
		"in another way":         {"local", "magic", "", v1alpha1.NodeGroupSpec{}, `--bootstrap "magic" is not known; there are: role, token`},
		"a role, by token":       {"local", "token", "team", v1alpha1.NodeGroupSpec{}, "--node-role: machines that join by a bootstrap token have no role"},
		"simulated with a role":  {"simulated", "", "team", v1alpha1.NodeGroupSpec{}, "--node-role: "},
		"simulated, but by role": {"simulated", "role", "", v1alpha1.NodeGroupSpec{}, "--bootstrap role: simulated machines"},
	} {
		c := &createCommand{provider: test.provider, bootstrap: test.bootstrap, nodeRole: test.role, dryRun: "client", output: formatName, nodes: 1, maximum: 1}
		group, err := c.group("g", true)
		if err != nil {
			if test.says == "" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if test.says != "" || group.Spec.NodeRole != test.want.NodeRole || group.Spec.Bootstrap != test.want.Bootstrap {
			t.Errorf("%s: %+v", name, group.Spec)
		}
	}
}

// What comes to the same is no difference.
func TestDifferentRoles(t *testing.T) {
	t.Parallel()
	local := func(bootstrap v1alpha1.Bootstrap, role string) *v1alpha1.NodeGroupSpec {
		return &v1alpha1.NodeGroupSpec{Provider: v1alpha1.ProviderLocal, Bootstrap: bootstrap, NodeRole: role}
	}
	if got := different(local("Role", v1alpha1.DefaultNodeRole), local("", "")); got != "" {
		t.Errorf("the default is another: %s", got)
	}
	if got := different(local("", ""), local("Token", "")); got != "bootstrap Role, not Token; nodeRole muster-node, not none" {
		t.Errorf("got %q", got)
	}
	if got := different(local("", "a"), local("", "b")); got != "nodeRole a, not b" {
		t.Errorf("got %q", got)
	}
}
