// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// sound are the facts about a cluster of 1.37 that may go to 1.38 and back to 1.36.
func sound() Facts {
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	versions := map[string][]string{"1.36": {"v1.14.0-eksbuild.1"}, "1.37": {"v1.14.0-eksbuild.1"}, "1.38": {"v1.14.0-eksbuild.1"}}
	return Facts{
		Now: now, Server: "v1.37.2", Minor: "1.37", Next: "1.38", Back: "1.36",
		Nodes:    Fact[[]Node]{Is: []Node{node("a", "v1.36.4", "v1.36.4"), node("b", "v1.36.3", "v1.36.3")}},
		Addons:   Fact[[]Addon]{Is: []Addon{{"coredns", "v1.14.0-eksbuild.1", versions}, {"kube-proxy", "v1.36.4-eksbuild.1", map[string][]string{"1.36": {"v1.36.4-eksbuild.1"}}}}},
		Requests: Fact[Requests]{Is: Requests{Since: now}},
		Webhooks: Fact[[]Webhook]{Is: []Webhook{{URI: "/w", Name: "w", Service: "n/s", Ready: true, Resources: []string{"*/*"}}}},
		Budgets:  Fact[[]Budget]{Is: []Budget{{"/b", 2, 1}, {"/none", 0, 0}}},
		Kinds:    Fact[[]Kind]{Is: []Kind{{"/k", []string{"v1"}, map[string]bool{"v1": true, "v1beta1": false}}}},
		Stored:   Fact[[]Stored]{Is: []Stored{{"/apis/x.io/v1/Y", 0}}},
		Host: Host{
			Memory: Fact[Amount]{Is: Amount{400 << 20, 400 << 20}}, Disk: Fact[Amount]{Is: Amount{5 << 30, 100 << 30}}, Etcd: Fact[Amount]{Is: Amount{1 << 30, 4 << 30}},
			Certificates: Fact[[]Certificate]{Is: []Certificate{{"etcd", now.Add(7 * 24 * time.Hour), true}, {"ca", now.Add(90 * 24 * time.Hour), false}}},
		},
	}
}

// told are the insights that have another status than PASSING, by category and name, with their resources.
func told(f Facts) map[string]string {
	said := map[string]string{}
	for _, i := range append(Upgrade(f), Rollback(f)...) {
		if i.Status == Passing {
			continue
		}
		text := string(i.Status)
		for _, r := range i.Resources {
			text += " " + r.URI + "=" + string(r.Status)
		}
		said[strings.TrimSuffix(string(i.Category), "_READINESS")+" "+i.Name] = text
	}
	return said
}

func node(name, kubelet, kubeProxy string) Node {
	return Node{Name: name, Kubelet: kubelet, KubeProxy: kubeProxy}
}

func TestRules(t *testing.T) {
	t.Parallel()
	if said := told(sound()); len(said) > 0 {
		t.Fatalf("a sound cluster: %v", said)
	}
	const kubelets, proxies, addon = "Kubelet version skew", "kube-proxy version skew", "EKS add-on version compatibility"
	for name, c := range map[string]struct {
		change func(*Facts)
		want   map[string]string
	}{
		"a new node": {func(f *Facts) { f.Nodes.Is[0].Kubelet, f.Nodes.Is[0].KubeProxy = "v1.37.0", "v1.37.0" }, map[string]string{
			"ROLLBACK " + kubelets: "ERROR /api/v1/nodes/a=ERROR", "ROLLBACK " + proxies: "ERROR /api/v1/nodes/a=ERROR",
		}},
		"a new node that goes back first": {func(f *Facts) {
			f.Nodes.Is[0].Kubelet, f.Nodes.Is[0].KubeProxy, f.Nodes.Is[0].GoesBack = "v1.37.0", "v1.37.0", true
		}, nil},
		"nodes of all ages": {func(f *Facts) {
			f.Nodes.Is = []Node{node("new", "v1.38.0", "v1.37.0"), node("old", "v1.35.0", "v1.35.0"), node("older", "v1.34.0", "v1.36.0"), node("strange", "x", "v1.36.0")}
		}, map[string]string{
			"UPGRADE " + kubelets:  "ERROR /api/v1/nodes/new=ERROR /api/v1/nodes/old=WARNING /api/v1/nodes/older=ERROR /api/v1/nodes/strange=UNKNOWN",
			"UPGRADE " + proxies:   "WARNING /api/v1/nodes/old=WARNING",
			"ROLLBACK " + kubelets: "ERROR /api/v1/nodes/new=ERROR /api/v1/nodes/strange=UNKNOWN",
			"ROLLBACK " + proxies:  "ERROR /api/v1/nodes/new=ERROR",
		}},
		"an add-on for this minor alone": {func(f *Facts) {
			f.Addons.Is[0].Version, f.Addons.Is[0].Versions = "v2.0.0-eksbuild.1", map[string][]string{"1.38": {"v3.0.0-eksbuild.1"}, "1.37": {"v2.0.0-eksbuild.1"}, "1.36": {"v1.0.0-eksbuild.1"}}
		}, map[string]string{"UPGRADE " + addon: "ERROR addon/coredns=ERROR", "ROLLBACK " + addon: "ERROR addon/coredns=ERROR"}},
		"an add-on of another Muster": {func(f *Facts) { f.Addons.Is[0].Version = "v1.13.0-eksbuild.1" }, map[string]string{"UPGRADE " + addon: "WARNING addon/coredns=WARNING", "ROLLBACK " + addon: "WARNING addon/coredns=WARNING"}},
		"kube-proxy of this minor": {func(f *Facts) {
			f.Addons.Is[1].Version, f.Addons.Is[1].Versions = "v1.37.2-eksbuild.1", map[string][]string{"1.37": {"v1.37.2-eksbuild.1"}, "1.36": {"v1.36.4-eksbuild.1"}}
		}, nil},
		"add-ons of the newest minor": {func(f *Facts) {
			for i := range f.Addons.Is {
				f.Addons.Is[i].Versions = map[string][]string{"1.37": {f.Addons.Is[i].Version}, "1.36": {f.Addons.Is[i].Version}}
			}
		}, map[string]string{"UPGRADE " + addon: "UNKNOWN"}},
		"deprecated APIs": {func(f *Facts) {
			f.Requests.Is.APIs = []Request{{"/apis/a/v1", "1.38", 3, nil}, {"/apis/b/v1", "1.39", 1, nil}, {"/apis/c/v1", "", 1, nil}}
		}, map[string]string{
			"UPGRADE Deprecated APIs removed in Kubernetes v1.38": "ERROR /apis/a/v1=ERROR", "UPGRADE Deprecated APIs removed in Kubernetes v1.39": "WARNING /apis/b/v1=WARNING", "UPGRADE Deprecated APIs": "WARNING /apis/c/v1=WARNING",
		}},
		"a webhook for pods": {func(f *Facts) {
			f.Webhooks.Is[0].Ready, f.Webhooks.Is[0].Resources = false, []string{"/pods", "apps/*"}
		}, map[string]string{
			"UPGRADE Webhooks that nobody answers": "WARNING /w=WARNING", "ROLLBACK Webhooks that nobody answers": "WARNING /w=WARNING",
		}},
		"a webhook for all": {func(f *Facts) { f.Webhooks.Is[0].Ready = false }, map[string]string{
			"UPGRADE Webhooks that nobody answers": "ERROR /w=ERROR", "ROLLBACK Webhooks that nobody answers": "ERROR /w=ERROR",
		}},
		"a webhook for roles": {func(f *Facts) {
			f.Webhooks.Is[0].Ready, f.Webhooks.Is[0].Resources = false, []string{"rbac.authorization.k8s.io/clusterroles"}
		}, map[string]string{
			"UPGRADE Webhooks that nobody answers": "ERROR /w=ERROR", "ROLLBACK Webhooks that nobody answers": "ERROR /w=ERROR",
		}},
		"a budget": {func(f *Facts) { f.Budgets.Is[0].Allowed = 0 }, map[string]string{"UPGRADE Pod disruption budgets that block drains": "WARNING /b=WARNING"}},
		"a version that is not served": {func(f *Facts) { f.Kinds.Is[0].Stored = []string{"v1", "v1beta1"} }, map[string]string{
			"UPGRADE Stored versions of custom resources": "WARNING /k=WARNING",
		}},
		"a version that is not defined": {func(f *Facts) { f.Kinds.Is[0].Stored = []string{"v1alpha1", "v1beta1"} }, map[string]string{
			"UPGRADE Stored versions of custom resources": "ERROR /k=ERROR /k=WARNING",
		}},
		"objects that 1.36 has not": {func(f *Facts) { f.Stored.Is[0].Objects = 1 }, map[string]string{"ROLLBACK Objects that the minor before does not serve": "ERROR /apis/x.io/v1/Y=ERROR"}},
		"no memory":                 {func(f *Facts) { f.Host.Memory.Is.Is-- }, map[string]string{"UPGRADE Memory for another API server": "ERROR", "ROLLBACK Memory for another API server": "ERROR"}},
		"little disk":               {func(f *Facts) { f.Host.Disk.Is.Is-- }, map[string]string{"UPGRADE Disk space": "WARNING", "ROLLBACK Disk space": "WARNING"}},
		"no disk":                   {func(f *Facts) { f.Host.Disk.Is.Is = 1<<30 - 1 }, map[string]string{"UPGRADE Disk space": "ERROR", "ROLLBACK Disk space": "ERROR"}},
		"etcd fills":                {func(f *Facts) { f.Host.Etcd.Is.Is = f.Host.Etcd.Is.Of / 100 * 81 }, map[string]string{"UPGRADE Size of etcd": "WARNING"}},
		"etcd is full":              {func(f *Facts) { f.Host.Etcd.Is.Is = f.Host.Etcd.Is.Of }, map[string]string{"UPGRADE Size of etcd": "ERROR"}},
		"certificates": {func(f *Facts) {
			f.Host.Certificates.Is = []Certificate{{"etcd", f.Now.Add(7*24*time.Hour - 1), true}, {"ca", f.Now.Add(90*24*time.Hour - 1), false}, {"ended", f.Now, true}}
		}, map[string]string{"UPGRADE Certificates near their end": "ERROR certificate/etcd=WARNING certificate/ca=WARNING certificate/ended=ERROR"}},
		"nothing is known of the cluster": {func(f *Facts) {
			f.Nodes.Unknown, f.Addons.Unknown, f.Requests.Unknown, f.Webhooks.Unknown, f.Budgets.Unknown, f.Kinds.Unknown, f.Stored.Unknown = "x", "x", "x", "x", "x", "x", "x"
		}, map[string]string{
			"UPGRADE " + kubelets: "UNKNOWN", "UPGRADE " + proxies: "UNKNOWN", "UPGRADE " + addon: "UNKNOWN", "UPGRADE Deprecated APIs removed in Kubernetes v1.37": "UNKNOWN",
			"UPGRADE Webhooks that nobody answers": "UNKNOWN", "UPGRADE Pod disruption budgets that block drains": "UNKNOWN", "UPGRADE Stored versions of custom resources": "UNKNOWN",
			"ROLLBACK " + kubelets: "UNKNOWN", "ROLLBACK " + proxies: "UNKNOWN", "ROLLBACK " + addon: "UNKNOWN", "ROLLBACK Webhooks that nobody answers": "UNKNOWN",
			"ROLLBACK Objects that the minor before does not serve": "UNKNOWN",
		}},
		"nothing is known of the host": {func(f *Facts) {
			f.Host.Memory.Unknown, f.Host.Disk.Unknown, f.Host.Etcd.Unknown, f.Host.Certificates.Unknown = "x", "x", "x", "x"
		}, map[string]string{
			"UPGRADE Memory for another API server": "UNKNOWN", "ROLLBACK Memory for another API server": "UNKNOWN", "UPGRADE Disk space": "UNKNOWN", "ROLLBACK Disk space": "UNKNOWN",
			"UPGRADE Size of etcd": "UNKNOWN", "UPGRADE Certificates near their end": "UNKNOWN",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sound()
			c.change(&f)
			if said := told(f); !maps.Equal(said, c.want) {
				t.Errorf("%v\nwant %v", said, c.want)
			}
		})
	}
}

// A cluster that cannot be taken back has no insights about that, and each insight has what EKS tells of it.
func TestInsightsAreWhole(t *testing.T) {
	t.Parallel()
	f := sound()
	names := map[string]bool{}
	for _, i := range append(Upgrade(f), Rollback(f)...) {
		key := string(i.Category) + i.Name
		if names[key] || i.Name == "" || i.Description == "" || i.Recommendation == "" || i.Minor == "" || i.Reason == "" {
			t.Errorf("%+v", i)
		}
		names[key] = true
	}
	f.Back = ""
	if all := Rollback(f); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	all := []Insight{
		{Name: "A", Finding: Finding{Error, "two are wrong"}, Resources: []Resource{{Finding{Error, ""}, "/a"}, {Finding{Warning, ""}, "/b"}, {Finding{Error, ""}, "/c"}, {Finding{Error, ""}, "/d"}, {Finding{Error, ""}, "/e"}}},
		{Name: "B", Finding: Finding{Warning, "perhaps"}},
		{Name: "C", Finding: Finding{Error, "it is full"}},
		{Name: "D", Finding: Finding{Unknown, "?"}},
		{Name: "E", Finding: Finding{Passing, ""}},
	}
	against := Against(all)
	if got := Summary(against); got != "A: two are wrong (/a, /c, /d, and 1 more); C: it is full" {
		t.Error(got)
	}
	if !slices.ContainsFunc(all, func(i Insight) bool { return i.Name == "B" }) {
		t.Error("the list was changed")
	}
}
