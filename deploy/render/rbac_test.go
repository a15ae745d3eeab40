// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	client  = "kubernetes.io/kube-apiserver-client-kubelet"
	serving = "kubernetes.io/kubelet-serving"
	people  = "kubernetes.io/kube-apiserver-client"
	unknown = "kubernetes.io/legacy-unknown"
	custom  = "beta.eks.amazonaws.com/app-serving"
)

// always lists the permissions of every controller, whatever its mode.
func always() []string {
	return []string{
		"cluster: get,list,watch certificates.k8s.io/certificatesigningrequests",
		"cluster: create authorization.k8s.io/subjectaccessreviews",
		"cluster: create authentication.k8s.io/tokenreviews",
		"cluster: list,watch nodes",
		"cluster: list networking.k8s.io/servicecidrs",
		"default: get services kubernetes",
		"default: create,patch events",
		"muster-system: create,delete,get,list,update,watch configmaps",
		"muster-system: create coordination.k8s.io/leases",
		"muster-system: get,update coordination.k8s.io/leases muster-certificate-controller",
	}
}

const (
	prune   = "cluster: delete certificates.k8s.io/certificatesigningrequests"
	approve = "cluster: update certificates.k8s.io/certificatesigningrequests/approval"
	issue   = "cluster: update certificates.k8s.io/certificatesigningrequests/status"
	key     = "\n  keys: [{name: a, file: {certificate: /a, key: /b}}]"
)

func may(verb string, signers ...string) string {
	return "cluster: " + verb + " certificates.k8s.io/signers " + strings.Join(signers, ",")
}

// The controller gets exactly what its mode, its signers and its sources need.
func TestPermissions(t *testing.T) {
	policy := func(mode, more string, signers ...string) string {
		return fmt.Sprintf("policy:\n  mode: %s\n  inventory: {sources: [{dns: {}}]}\n  signers: [{name: %s}]%s\n", mode, strings.Join(signers, "}, {name: "), more)
	}
	for name, tc := range map[string]struct {
		values string
		want   []string
		less   []string // of the permissions of every controller
	}{
		"observe":                     {values: policy("observe", "", client, serving)},
		"observe, every signer":       {values: policy("observe", "", client, serving, people, unknown)},
		"approve serving":             {values: policy("approve-only", "", serving), want: []string{prune, approve, may("approve", serving)}},
		"approve client":              {values: policy("approve-only", "", client), want: []string{prune, approve, may("approve", client)}},
		"approve both":                {values: policy("approve-only", "", client, serving), want: []string{prune, approve, may("approve", client, serving)}},
		"approve what people approve": {values: policy("approve-only", "", people, unknown), want: []string{prune}},
		"approve a custom one":        {values: policy("approve-only", "", custom), want: []string{prune}},
		"sign serving":                {values: policy("sign-only", key, serving), want: []string{prune, issue, may("sign", serving)}},
		"sign all of upstream's":      {values: policy("sign-only", key, client, serving, people, unknown), want: []string{prune, issue, may("sign", people, client, serving, unknown)}},
		"approve and sign":            {values: policy("approve-and-sign", key, client, serving), want: []string{prune, approve, may("approve", client, serving), issue, may("sign", client, serving)}},
		"approve some, sign all":      {values: policy("approve-and-sign", key, serving, people), want: []string{prune, approve, may("approve", serving), issue, may("sign", people, serving)}},
		"approve none, sign the lot":  {values: policy("approve-and-sign", key, people, unknown, custom), want: []string{prune, issue, may("sign", people, unknown, custom)}},
		"nothing is pruned":           {values: policy("approve-only", "\n  pruning: {keep: -1}", serving), want: []string{approve, may("approve", serving)}},
		"no metrics":                  {values: policy("observe", "", serving) + "metrics: {enabled: false}\n", less: []string{"cluster: create authentication.k8s.io/tokenreviews"}},
		"sign, no metrics": {
			values: policy("sign-only", key, serving) + "metrics: {enabled: false}\n",
			want:   []string{prune, issue, may("sign", serving)},
			less:   []string{"cluster: create authentication.k8s.io/tokenreviews", "cluster: create authorization.k8s.io/subjectaccessreviews"},
		},
		"addresses are reserved": {
			values: policy("approve-only", "\n  policy: {reserved: {addresses: [10.96.0.0/12]}}", serving), want: []string{prune, approve, may("approve", serving)},
			less: []string{"cluster: list networking.k8s.io/servicecidrs", "default: get services kubernetes"},
		},
		"trust is published":           {values: policy("approve-only", "\n  trust: {publish: {namespace: kube-system}}", serving), want: []string{prune, approve, may("approve", serving), "kube-system: create configmaps", "kube-system: get,update configmaps muster-kubelet-client-ca,muster-kubelet-serving-ca"}},
		"a register of its own":        {values: policy("approve-only", "", people) + "register: {namespace: ledger}\n", want: []string{prune, "ledger: create,delete,get,list,update,watch configmaps"}, less: single("muster-system: create,delete,get,list,update,watch configmaps")},
		"static file":                  {values: sources("{static: {file: /a}}")},
		"static ConfigMap":             {values: sources("{static: {configMap: {name: fleet}}}"), want: []string{"muster-system: list,watch configmaps fleet"}},
		"static ConfigMap elsewhere":   {values: sources("{static: {configMap: {name: fleet, namespace: ops}}}"), want: []string{"ops: list,watch configmaps fleet"}},
		"Cluster API elsewhere":        {values: sources("{clusterAPI: {kubeconfig: /a}}")},
		"Cluster API here":             {values: sources("{clusterAPI: {}}"), want: []string{"cluster: list,watch cluster.x-k8s.io/machines"}},
		"Cluster API in one namespace": {values: sources("{clusterAPI: {namespace: fleet}}"), want: []string{"fleet: list,watch cluster.x-k8s.io/machines"}},
		"machines of muster":           {values: sources("{machines: {kubeconfig: /a}}")},
		"EC2, DNS, Node status":        {values: sources("{ec2: {region: eu-central-2}}, {dns: {}}, {nodeStatus: {}}")},
		"two static ones":              {values: sources("{static: {configMap: {name: a}}}, {static: {configMap: {name: b}}}"), want: []string{"muster-system: list,watch configmaps a", "muster-system: list,watch configmaps b"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, line := range append(always(), tc.want...) {
				for _, one := range single(line) {
					want[one] = true
				}
			}
			less := tc.less
			if strings.Contains(tc.values, "mode: observe") {
				less = append(less, single("muster-system: create,delete,update configmaps")...)
			}
			for _, line := range less {
				delete(want, line)
			}
			if diff := cmp.Diff(want, granted(t, objects(t, tc.values))); diff != "" {
				t.Errorf("permissions (-needed +granted):\n%s", diff)
			}
		})
	}
}

func sources(s string) string {
	return fmt.Sprintf("policy: {mode: observe, signers: [{name: %s}], inventory: {sources: [%s]}}", serving, s)
}

// granted lists every single permission that the service account gets: "where: verb group/resource name".
func granted(t *testing.T, all []runtime.Object) map[string]bool {
	t.Helper()
	return grantedTo(t, all, release)
}

func grantedTo(t *testing.T, all []runtime.Object, account string) map[string]bool {
	t.Helper()
	ours := func(subjects []rbacv1.Subject) bool {
		return slices.Equal(subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}})
	}
	got := map[string]bool{}
	for _, binding := range every[*rbacv1.ClusterRoleBinding](all) {
		if !ours(binding.Subjects) {
			continue
		}
		for _, role := range every[*rbacv1.ClusterRole](all) {
			if role.Name == binding.RoleRef.Name {
				add(t, got, "cluster", role.Rules)
			}
		}
	}
	for _, binding := range every[*rbacv1.RoleBinding](all) {
		if !ours(binding.Subjects) {
			t.Errorf("RoleBinding %s/%s binds %v", binding.Namespace, binding.Name, binding.Subjects)
		}
		for _, role := range every[*rbacv1.Role](all) {
			if role.Name == binding.RoleRef.Name && role.Namespace == binding.Namespace {
				add(t, got, role.Namespace, role.Rules)
			}
		}
	}
	return got
}

func ours(subjects []rbacv1.Subject) bool {
	return slices.Equal(subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: release, Namespace: namespace}})
}

func add(t *testing.T, to map[string]bool, where string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, r := range rules {
		if len(r.NonResourceURLs) > 0 || len(r.APIGroups) != 1 || slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") {
			t.Errorf("%s: the rule %v grants more than can be listed", where, r)
		}
		for _, resource := range r.Resources {
			line := where + ": " + strings.Join(r.Verbs, ",") + " " + strings.TrimPrefix(r.APIGroups[0]+"/"+resource, "/")
			if len(r.ResourceNames) > 0 {
				line += " " + strings.Join(r.ResourceNames, ",")
			}
			for _, one := range single(line) {
				to[one] = true
			}
		}
	}
}

// single spells out a line of permissions: one for each verb and each name.
func single(line string) []string {
	fields := strings.Fields(line)
	names := []string{""}
	if len(fields) > 3 {
		names = strings.Split(fields[3], ",")
	}
	var all []string
	for verb := range strings.SplitSeq(fields[1], ",") {
		for _, name := range names {
			all = append(all, strings.TrimSpace(fields[0]+" "+verb+" "+fields[2]+" "+name))
		}
	}
	return all
}

// Nodes may ask for serving certificates, and nobody else gets anything.
func TestWhoElseGetsPermissions(t *testing.T) {
	all := objects(t, "metrics: {readers: [{namespace: monitoring, name: prometheus}]}")
	got := map[string][]rbacv1.Subject{}
	for _, b := range every[*rbacv1.ClusterRoleBinding](all) {
		if !ours(b.Subjects) {
			got[b.RoleRef.Name] = b.Subjects
		}
	}
	want := map[string][]rbacv1.Subject{
		release + ":selfnodeserver": {{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}},
		release + ":metrics-reader": {{Kind: "ServiceAccount", Namespace: "monitoring", Name: "prometheus"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	for _, role := range every[*rbacv1.ClusterRole](all) {
		rules := map[string]rbacv1.PolicyRule{
			release + ":selfnodeserver": {Verbs: []string{"create"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/selfnodeserver"}},
			release + ":metrics-reader": {Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
		}
		if want, ok := rules[role.Name]; ok {
			if diff := cmp.Diff([]rbacv1.PolicyRule{want}, role.Rules); diff != "" {
				t.Errorf("%s (-want +got):\n%s", role.Name, diff)
			}
		}
	}
}
