// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/decision"
)

// of says which cluster the machine was launched for that the session began with.
func of(cluster string) func(*identity.Principal) {
	return func(p *identity.Principal) { p.Machine = &identity.Machine{ID: node, Cluster: cluster} }
}

func TestAMachineIsANodeOfItsOwnClusterAlone(t *testing.T) {
	const byName, mine, other, none = "system:node:{{EC2PrivateDNSName}}", "green", "blue", ""
	entry := func(e identity.AccessEntry) []identity.AccessEntry { e.Name = "e"; return []identity.AccessEntry{e} }
	typed := func(t identity.EntryType) []identity.AccessEntry {
		return entry(identity.AccessEntry{PrincipalARN: role("nodes"), Type: t})
	}
	mapping := func(source identity.Source, username string, groups ...string) []identity.Mapping {
		m := awsAuth(role("nodes"), username, groups...)
		m.Source = source
		return []identity.Mapping{m}
	}
	who := func(cluster string) identity.Principal {
		return session(t, "nodes", node, proven(node, dnsName), of(cluster))
	}
	chained := func(cluster string) identity.Principal { return session(t, "nodes", "work", of(cluster)) }
	node := "system:node:" + dnsName
	const no = "no: machine-cluster: "
	for _, tc := range []struct {
		name     string
		entries  []identity.AccessEntry
		mappings []identity.Mapping
		who      identity.Principal
		want     string
	}{
		{"EC2_LINUX", typed(identity.TypeEC2Linux), nil, who(other), no},
		{"EC2_WINDOWS", typed(identity.TypeEC2Windows), nil, who(other), no},
		{"FARGATE_LINUX", typed(identity.TypeFargateLinux), nil, who(other), no},
		{"HYBRID_LINUX", typed(identity.TypeHybridLinux), nil, who(other), no},
		{"its own cluster", typed(identity.TypeEC2Linux), nil, who(mine), node + " [system:nodes] by e"},
		{"a machine of no cluster", typed(identity.TypeEC2Linux), nil, who(none), node + " [system:nodes] by e"},
		{"an instance of AWS, whose cluster nobody knows", typed(identity.TypeEC2Linux), nil, session(t, "nodes", "i-0123456789abcdef0", proven("i-0123456789abcdef0", dnsName)), node + " [system:nodes] by e"},
		{"aws-auth", nil, mapping(identity.SourceAWSAuth, byName, "system:bootstrappers", "system:nodes"), who(other), no},
		{"aws-auth, its own", nil, mapping(identity.SourceAWSAuth, byName, "system:bootstrappers", "system:nodes"), who(mine), node + " [system:bootstrappers system:nodes] by mapRoles[0]"},
		{"an object", nil, mapping(identity.SourceIdentityMapping, byName, "system:nodes"), who(other), no},
		{"the file", nil, mapping(identity.SourceFile, byName, "system:nodes"), who(other), no},
		{"a node's name by the session", nil, mapping(identity.SourceAWSAuth, "system:node:{{SessionName}}", "system:nodes"), who(other), no},
		{"a node's name in no group", nil, mapping(identity.SourceIdentityMapping, byName, "x"), who(other), no},
		{"who may ask for a node's certificate", nil, mapping(identity.SourceAWSAuth, "joins", "system:bootstrappers"), who(other), no},
		{"by a group of bootstrap tokens", nil, mapping(identity.SourceAWSAuth, "joins", "system:bootstrappers:kubeadm:default-node-token"), who(other), no},
		{"with a role that it assumed", nil, mapping(identity.SourceAWSAuth, "joins", "system:bootstrappers"), chained(other), no},
		{"with a role that its own cluster's machine assumed", nil, mapping(identity.SourceAWSAuth, "joins", "system:bootstrappers"), chained(mine), "joins [system:bootstrappers] by mapRoles[0]"},
		{"an ordinary user of an entry", entry(identity.AccessEntry{PrincipalARN: role("nodes"), Username: "x:{{SessionName}}"}), nil, who(other), "x:i-0123456789abcdef0 [] by e"},
		{"an ordinary user of aws-auth", nil, mapping(identity.SourceAWSAuth, "x", "system:bootstrapping", "y"), who(other), "x [system:bootstrapping y] by mapRoles[0]"},
		{"a role with a path", entry(identity.AccessEntry{PrincipalARN: role("a/b/nodes"), Type: identity.TypeEC2Linux}), nil, who(other), no},
		{"the entry refuses, and none after it is asked", typed(identity.TypeEC2Linux), mapping(identity.SourceAWSAuth, "x", "y"), who(other), no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, _ := identity.NewTable(identity.Options{Cluster: mine}, tc.entries, tc.mappings)
			o := made.Map(tc.who)
			got := brief(o)
			if tc.want != no && got != tc.want || tc.want == no && !strings.HasPrefix(got, no) {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if tc.want != no {
				return
			}
			if want := `the session is of machine i-0123456789abcdef0, which was launched for cluster "blue", and this is cluster "green"`; o.Reason != want || o.Fix == "" {
				t.Errorf("it saw %q, fix %q; want %q", o.Reason, o.Fix, want)
			}
			explained := made.Explain(tc.who)
			if last := explained.Checks[len(explained.Checks)-1]; explained.Rule != identity.RuleMachineCluster || last.Rule != identity.RuleMachineCluster || last.Outcome != decision.Refuse {
				t.Errorf("explained, it is %+v", explained)
			}
		})
	}
}

// A table that does not know whose it is lets no machine of a cluster in as a node.
func TestATableOfNoClusterHasNoNodesOfOthers(t *testing.T) {
	made := table(t, identity.Options{}, []identity.AccessEntry{{Name: "e", PrincipalARN: role("nodes"), Type: identity.TypeEC2Linux}})
	if o := made.Map(session(t, "nodes", node, proven(node, dnsName), of("blue"))); o.Mapped || o.Rule != identity.RuleMachineCluster {
		t.Errorf("%+v", o)
	}
}
