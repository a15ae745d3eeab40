// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/decision"
)

// The worlds that the properties are tried in are small, so that entries and principals often meet.
var (
	drawRole = rapid.SampledFrom([]string{"a", "a", "a", "a", "A", "p/a", "q/a", "b", "team-a", "AWSReservedSSO_S_0123456789abcdef", "AWSReservedSSO_S_x_0123456789abcdef", "instance"})
	drawText = rapid.SampledFrom([]string{
		"x", "system:", "system:node:", "system", "node", ":", "node:", "sys", "tem:", "masters", "eks:", "muster:access-entry:", "muster", "{{EC2PrivateDNSName}}", "{{AccountID}}", "{{SessionName}}",
		"{{SessionNameRaw}}", "{{AccessKeyID}}", "{{", "}}", "nodes", " ", "i-0123456789abcdef0", "s",
	})
	drawName = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(drawText, 0, 4).Draw(t, "parts"), "") }),
		rapid.SampledFrom([]string{"system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}", "x:{{SessionName}}", "{{SessionName}}:node:x", "x"}),
	)
	drawNames   = rapid.SliceOfN(rapid.OneOf(drawName, rapid.SampledFrom([]string{"system:nodes", "system:bootstrappers", "system:masters", "y"})), 0, 2)
	drawAccount = rapid.SampledFrom([]string{account, account, account, "444455556666"})
	drawID      = rapid.SampledFrom([]string{"", "", "", "AROAEXAMPLEEXAMPLE123", "AROAEXAMPLEEXAMPLE000", "AROAEXAMPLEEXAMPLE123:s"})
	drawARN     = rapid.Custom(func(t *rapid.T) string {
		of := drawAccount.Draw(t, "account")
		return rapid.SampledFrom([]string{
			"arn:aws:iam::" + of + ":role/" + drawRole.Draw(t, "role"), "arn:aws:iam::" + of + ":role/a", "arn:aws:iam::" + of + ":role/a", "arn:aws:iam::" + of + ":user/a", "arn:aws:iam::" + of + ":role/team-*", "arn:aws:iam::" + of + ":instance-profile/a",
			"arn:aws:sts::" + of + ":assumed-role/a/ss", "", "arn", "arn:aws:iam::" + of + ":role/AWSReservedSSO_S_*",
		}).Draw(t, "arn")
	})
	drawEntry = rapid.Custom(func(t *rapid.T) identity.AccessEntry {
		return identity.AccessEntry{
			Name: rapid.SampledFrom([]string{"e", "f"}).Draw(t, "name"), PrincipalARN: drawARN.Draw(t, "arn"), PrincipalID: drawID.Draw(t, "id"),
			Type:     rapid.SampledFrom([]identity.EntryType{"", identity.TypeStandard, identity.TypeEC2Linux, identity.TypeEC2Windows, identity.TypeFargateLinux, identity.TypeHybridLinux, "OTHER"}).Draw(t, "type"),
			Username: drawName.Draw(t, "username"), Groups: drawNames.Draw(t, "groups"), Policies: rapid.SampledFrom([][]string{nil, {"p"}}).Draw(t, "policies"),
		}
	})
	drawMapping = rapid.Custom(func(t *rapid.T) identity.Mapping {
		return identity.Mapping{
			Source: rapid.SampledFrom(identity.Sources()[1:]).Draw(t, "source"), Entry: "m",
			Kind: rapid.SampledFrom([]identity.Kind{identity.KindRole, identity.KindRole, identity.KindUser, identity.KindAccount, identity.KindSSO}).Draw(t, "kind"),
			ARN:  drawARN.Draw(t, "arn"), Account: drawAccount.Draw(t, "account"), SSO: identity.SSO{PermissionSet: "S", Account: drawAccount.Draw(t, "sso account")},
			PrincipalID: drawID.Draw(t, "id"), Username: drawName.Draw(t, "username"), Groups: drawNames.Draw(t, "groups"),
		}
	})
	drawTrusted = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) identity.TrustedSessions {
		a, _ := arn.Parse(drawARN.Draw(t, "trusted role"))
		return identity.TrustedSessions{Role: a, Names: rapid.SliceOfN(drawPattern, 1, 2).Draw(t, "trusted names")}
	}), 0, 2)
	drawPattern = rapid.SampledFrom([]string{"mi-*", "mi-*", "ann*", "*.internal", "*", "i-0*", "*-0123456789abcdef0", "s"})
	drawOptions = rapid.Custom(func(t *rapid.T) identity.Options {
		return identity.Options{
			Mode:         rapid.SampledFrom([]identity.Mode{"", identity.ModeAPI, identity.ModeConfigMap, identity.ModeAPIAndConfigMap}).Draw(t, "mode"),
			RolePatterns: rapid.Bool().Draw(t, "patterns"),
			Trusted:      drawTrusted.Draw(t, "trusted"),
			Cluster:      rapid.SampledFrom([]string{"green", ""}).Draw(t, "cluster"),
			Reserved:     rapid.SampledFrom([]map[identity.Source][]string{nil, {identity.SourceAWSAuth: nil, identity.SourceAccessEntry: nil}}).Draw(t, "reserved"),
		}
	})
	drawInstance = rapid.SampledFrom([]*identity.Instance{
		nil, {ID: node, PrivateDNSName: dnsName}, {ID: node, PrivateDNSName: dnsName}, {ID: node}, {ID: "i-1", PrivateDNSName: dnsName}, {ID: "mi-0", PrivateDNSName: "a b"}, {ID: "system"},
	})
)

func drawPrincipal(tb testing.TB, t *rapid.T) identity.Principal {
	tb.Helper()
	of := drawAccount.Draw(t, "whose account")
	name := drawRole.Draw(t, "whose role")
	name = name[strings.LastIndex(name, "/")+1:]
	s := rapid.SampledFrom([]string{
		"arn:aws:sts::" + of + ":assumed-role/" + name + "/" + rapid.SampledFrom([]string{node, node, node, "anna", "system", "tem", "node", "a@b", "eks", "muster", "mi-0", dnsName}).Draw(t, "session"),
		"arn:aws:sts::" + of + ":assumed-role/a/" + node, "arn:aws:iam::" + of + ":user/a", "arn:aws:iam::" + of + ":root", "arn:aws:sts::" + of + ":federated-user/system",
	}).Draw(t, "who")
	return principal(tb, s, func(p *identity.Principal) {
		p.Instance, p.UserID = drawInstance.Draw(t, "instance"), "AROAEXAMPLEEXAMPLE123"
		p.Machine = rapid.SampledFrom([]*identity.Machine{nil, {ID: node}, {ID: node, Cluster: "green"}, {ID: node, Cluster: "blue"}}).Draw(t, "machine")
	})
}

func TestNobodyBecomesANodeThatItIsNotProvenToBe(t *testing.T) {
	nodes, others := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		options := drawOptions.Draw(rt, "options")
		made, _ := identity.NewTable(options, rapid.SliceOfN(drawEntry, 0, 6).Draw(rt, "entries"), rapid.SliceOfN(drawMapping, 0, 8).Draw(rt, "mappings"))
		p := drawPrincipal(t, rt)
		o := made.Map(p)
		if !o.Mapped {
			if o.User.Name != "" || o.User.Groups != nil || o.Reason == "" || o.Fix == "" || o.Rule == "" {
				rt.Fatalf("a refusal with a user, or without a reason: %+v", o)
			}
			return
		}
		others++
		name, isNode := strings.CutPrefix(o.User.Name, "system:node:")
		if o.User.Name == "" || slices.Contains(o.User.Groups, "") {
			rt.Fatalf("an empty name: %+v", o)
		}
		if slices.Contains(o.User.Groups, "system:nodes") && !isNode {
			rt.Fatalf("no node, but among the nodes: %+v", o.User)
		}
		if m := p.Machine; m != nil && m.Cluster != "" && m.Cluster != options.Cluster && (isNode || slices.Contains(o.User.Groups, "system:bootstrappers")) {
			rt.Fatalf("machine of cluster %q became %+v at cluster %q", m.Cluster, o.User, options.Cluster)
		}
		for _, group := range o.User.Groups {
			if strings.HasPrefix(group, identity.PolicyGroupPrefix) && (o.Source != identity.SourceAccessEntry || group != identity.PolicyGroup(o.Entry)) {
				rt.Fatalf("the group %s of another: %+v", group, o)
			}
			if o.Source == identity.SourceAccessEntry && !isNode && strings.HasPrefix(group, "system:") {
				rt.Fatalf("the group %s by an access entry", group)
			}
		}
		if !isNode {
			return
		}
		nodes++
		if o.Trusted {
			if !isTrusted(options.Trusted, p) || name != p.SessionName || p.Instance != nil {
				rt.Fatalf("%s became %q with the instance %+v, and what is trusted is %+v", p.ARN, name, p.Instance, options.Trusted)
			}
			return
		}
		if p.Instance == nil || name == "" || name != p.Instance.PrivateDNSName && name != p.Instance.ID || p.SessionName != p.Instance.ID && p.SessionName != p.Instance.PrivateDNSName {
			rt.Fatalf("%s became %q with the instance %+v", p.ARN, o.User.Name, p.Instance)
		}
	})
	t.Logf("%d were mapped, %d of them as nodes", others, nodes)
	if others == 0 { // about one in six is; nodes are one in twenty, too few to count on in a short run
		t.Error("nobody was ever mapped, so this shows nothing")
	}
}

// TestABadEntryChangesNothingForOthers takes the entries that are not used away: every principal's user stays the same.
func TestABadEntryChangesNothingForOthers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := drawOptions.Draw(rt, "options")
		entries := rapid.SliceOfN(drawEntry, 0, 6).Draw(rt, "entries")
		mappings := rapid.SliceOfN(drawMapping, 0, 8).Draw(rt, "mappings")
		all, _ := identity.NewTable(o, entries, mappings)
		alone := func(problems []identity.Problem) bool {
			return !slices.ContainsFunc(problems, func(p identity.Problem) bool { return p.Unused && p.Source != "" }) // else it is of the options
		}
		entries = slices.DeleteFunc(slices.Clone(entries), func(e identity.AccessEntry) bool {
			_, problems := identity.NewTable(o, []identity.AccessEntry{e}, nil)
			return !alone(problems)
		})
		mappings = slices.DeleteFunc(slices.Clone(mappings), func(m identity.Mapping) bool {
			_, problems := identity.NewTable(o, nil, []identity.Mapping{m})
			return !alone(problems)
		})
		good, _ := identity.NewTable(o, entries, mappings)
		p := drawPrincipal(t, rt)
		want, got := good.Map(p), all.Map(p)
		if diff := cmp.Diff(want.User, got.User); diff != "" || want.Mapped != got.Mapped {
			rt.Fatalf("%s: (-without +with the bad entries):\n%s", p.ARN, diff)
		}
	})
}

// TestTheFirstThatMatchesDecides asks each entry alone, in their order.
func TestTheFirstThatMatchesDecides(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := drawOptions.Draw(rt, "options")
		entries := rapid.SliceOfN(drawEntry, 0, 4).Draw(rt, "entries")
		mappings := rapid.SliceOfN(drawMapping, 0, 8).Draw(rt, "mappings")
		p := drawPrincipal(t, rt)
		made, _ := identity.NewTable(o, entries, mappings)
		got := made.Map(p)
		want := identity.User{}
		for _, e := range entries {
			if one, _ := identity.NewTable(o, []identity.AccessEntry{e}, nil); decides(one.Map(p)) {
				want = one.Map(p).User
				goto found
			}
		}
		for _, source := range identity.Sources() {
			for _, accounts := range []bool{false, true} {
				for _, m := range mappings {
					if m.Source != source || (m.Kind == identity.KindAccount) != accounts {
						continue
					}
					if one, _ := identity.NewTable(o, nil, []identity.Mapping{m}); decides(one.Map(p)) {
						want = one.Map(p).User
						goto found
					}
				}
			}
		}
	found:
		if diff := cmp.Diff(want, got.User); diff != "" {
			rt.Fatalf("%s (-one by one +all):\n%s", p.ARN, diff)
		}
		explained := made.Explain(p)
		if diff := cmp.Diff(got.User, explained.User); diff != "" || got.Mapped != explained.Mapped || got.Mapped && (got.Entry != explained.Entry || got.Source != explained.Source) {
			rt.Fatalf("%s (-Map +Explain):\n%s", p.ARN, diff)
		}
	})
}

// decides reports whether an entry says yes, or no because of what it would give.
func decides(o identity.Outcome) bool {
	if o.Mapped {
		return true
	}
	return len(o.Checks) > 0 && o.Checks[len(o.Checks)-1].Outcome == decision.Refuse &&
		slices.Contains([]decision.RuleID{identity.RuleInstance, identity.RuleTrustedName, identity.RuleMachineCluster, identity.RuleSessionName, identity.RuleVariable, identity.RuleReserved}, o.Rule)
}
