// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
)

func TestBindingsSayWhatPoliciesSay(t *testing.T) {
	nodes := entry("e", policy("AmazonEKSViewPolicy"))
	nodes.Spec.Type = accessv1alpha1.TypeEC2Linux
	const view = "muster:access-entry:e:AmazonEKSViewPolicy view Group:muster:access-entry:e"
	for _, tc := range []struct {
		name      string
		entry     *accessv1alpha1.AccessEntry
		want      []string
		condition string
	}{
		{"no policy", entry("e"), nil, "True Applied: 0 bindings say what 0 access policies say"},
		{"the cluster", entry("e", policy("AmazonEKSViewPolicy")), []string{"/" + view}, "True Applied: 1 bindings say what 1 access policies say"},
		{"each policy has its role", entry("e", policy("AmazonEKSClusterAdminPolicy"), policy("AmazonEKSAdminPolicy"), policy("AmazonEKSEditPolicy"), policy("AmazonEKSAdminViewPolicy")), []string{
			"/muster:access-entry:e:AmazonEKSAdminPolicy admin Group:muster:access-entry:e",
			"/muster:access-entry:e:AmazonEKSAdminViewPolicy muster:access-policy:AmazonEKSAdminViewPolicy Group:muster:access-entry:e",
			"/muster:access-entry:e:AmazonEKSClusterAdminPolicy cluster-admin Group:muster:access-entry:e",
			"/muster:access-entry:e:AmazonEKSEditPolicy edit Group:muster:access-entry:e",
		}, "True Applied: 4 bindings say what 4 access policies say"},
		{"a namespace", entry("e", policy("AmazonEKSViewPolicy", "dev-a")), []string{"dev-a/" + view}, "True Applied: 1 bindings say what 1 access policies say"},
		{"a pattern, and a name that it means too", entry("e", policy("AmazonEKSViewPolicy", "dev-*", "dev-a")), []string{"dev-a/" + view, "dev-b/" + view}, "True Applied: 2 bindings say what 1 access policies say"},
		{
			"a namespace that is not there yet", entry("e", policy("AmazonEKSViewPolicy", "dev-a", "later")),
			[]string{"dev-a/" + view},
			"True Applied: 1 bindings say what 1 access policies say; they will hold in the namespaces later once these are made",
		},
		{"a pattern that means none", entry("e", policy("AmazonEKSViewPolicy", "x-*")), nil, "True Applied: 0 bindings say what 1 access policies say"},
		{
			"one that is not known keeps none from holding", entry("e", policy("AmazonEKSNewPolicy"), policy("AmazonEKSViewPolicy")),
			[]string{"/" + view},
			"False Unusable: AmazonEKSNewPolicy is not known; there are AmazonEKSClusterAdminPolicy, AmazonEKSAdminPolicy, AmazonEKSAdminViewPolicy, AmazonEKSEditPolicy, AmazonEKSViewPolicy; " +
				"for anything else give the entry a group and bind that by RBAC",
		},
		{"nodes have none", nodes, nil, "False Unusable: entries of type EC2_LINUX have no access policies; remove them"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ends := namespace("dev-ends")
			ends.DeletionTimestamp, ends.Finalizers = &metav1.Time{Time: time.Now()}, []string{"kubernetes"}
			w := newWorld(t, tc.entry, namespace("dev-a"), namespace("dev-b"), namespace("prod"), ends)
			if err := w.reconcile(t, "e"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.bindings(t)); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
			if got := w.condition(t, "e"); got != tc.condition {
				t.Errorf("condition\ngot  %s\nwant %s", got, tc.condition)
			}
			w.writes = 0
			if err := w.reconcile(t, "e"); err != nil || w.writes > 0 {
				t.Errorf("again: %d writes, %v", w.writes, err)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	for arn, want := range map[string]string{
		arnPrefix + "AmazonEKSViewPolicy":                                    "",
		"arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSViewPolicy":  "",
		"arn:aws:iam::aws:policy/AdministratorAccess":                        `"arn:aws:iam::aws:policy/AdministratorAccess" is not an access policy`,
		"arn:evil:eks::aws:cluster-access-policy/AmazonEKSViewPolicy":        "is not an access policy",
		arnPrefix + "AmazonEKSHybridPolicy":                                  "AmazonEKSHybridPolicy is for nodes, whose rights come from the type of their entry; there are ",
		arnPrefix + "AmazonEMRJobPolicy":                                     "is for another service of AWS",
		arnPrefix + "AmazonEKSComputePolicy":                                 "is for EKS's own controllers",
		arnPrefix + "AmazonEKSViewPolicy2":                                   "AmazonEKSViewPolicy2 is not known",
		arnPrefix + "amazoneksviewpolicy":                                    "is for another service",
		"arn:aws:eks::aws:cluster-access-policy/a:eks::aws:cluster-access-p": "a:eks::aws",
	} {
		_, err := Lookup(arn)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", arn, err, want)
		}
	}
}

// The part must not be able to hand out more than the policies, nor to change what they mean.
func TestRulesAreNoWiderThanPolicies(t *testing.T) {
	for _, rule := range Rules() {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(list, "*") {
				t.Errorf("a wildcard in %v", rule)
			}
		}
		if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") && len(rule.ResourceNames) != len(Policies()) {
			t.Errorf("too much: %v", rule)
		}
	}
	if roles := Roles(); len(roles) != 1 || !slices.ContainsFunc(Policies(), func(p Policy) bool { return p.ClusterRole == roles[0].Name }) {
		t.Errorf("roles: %v", roles)
	}
}
