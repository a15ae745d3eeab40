// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func group(spec v1alpha1.NodeGroupSpec) *v1alpha1.NodeGroup {
	return &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "blue"}, Spec: spec}
}

// What comes to the same is no difference.
func TestRolesThatDiffer(t *testing.T) {
	t.Parallel()
	local := func(bootstrap v1alpha1.Bootstrap, role string) *v1alpha1.NodeGroup {
		return group(v1alpha1.NodeGroupSpec{Provider: v1alpha1.ProviderLocal, Bootstrap: bootstrap, NodeRole: role})
	}
	if got := Differences(local("Role", "muster-node-blue"), local("", "")); got != "" {
		t.Errorf("the default is another: %s", got)
	}
	if got := Differences(local("", ""), local("Token", "")); got != "bootstrap Role, not Token; nodeRole muster-node-blue, not none" {
		t.Errorf("got %q", got)
	}
	if got := Differences(local("", "a"), local("", "b")); got != "nodeRole a, not b" {
		t.Errorf("got %q", got)
	}
}

func TestFieldsThatDiffer(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*v1alpha1.NodeGroupSpec){
		"":                              func(s *v1alpha1.NodeGroupSpec) { s.Version = "" }, // it asks for none
		"name c, not other":             func(s *v1alpha1.NodeGroupSpec) { s.Name = "other" },
		"version 1.36, not 1.35":        func(s *v1alpha1.NodeGroupSpec) { s.Version = "1.35" },
		"minSize 1, not 2":              func(s *v1alpha1.NodeGroupSpec) { s.ScalingConfig.MinSize = 2 },
		"maxSize 9, not 8":              func(s *v1alpha1.NodeGroupSpec) { s.ScalingConfig.MaxSize = 8 },
		"desiredSize 3, not 4":          func(s *v1alpha1.NodeGroupSpec) { s.ScalingConfig.DesiredSize = 4 },
		"labels a=b, not none":          func(s *v1alpha1.NodeGroupSpec) { s.Labels = nil },
		"labels a=b, not a=b,b=c":       func(s *v1alpha1.NodeGroupSpec) { s.Labels = v1alpha1.NodeLabels{"b": "c", "a": "b"} },
		"taints a:NoSchedule, not none": func(s *v1alpha1.NodeGroupSpec) { s.Taints = nil },
		"provider Local, not Simulated; isolation user-namespace, not none; bootstrap Role, not Token; nodeRole muster-node-blue, not none": func(s *v1alpha1.NodeGroupSpec) {
			s.Provider = v1alpha1.ProviderSimulated
		},
	} {
		workers := func() *v1alpha1.NodeGroup {
			return group(v1alpha1.NodeGroupSpec{
				Name: "c", Provider: v1alpha1.ProviderLocal, Version: "1.36", ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, MaxSize: 9, DesiredSize: 3},
				Labels: v1alpha1.NodeLabels{"a": "b"}, Taints: v1alpha1.NodeTaints{{Key: "a", Effect: "NoSchedule"}},
			})
		}
		asked := workers()
		change(&asked.Spec)
		want = strings.ReplaceAll(strings.ReplaceAll(want, "Local", string(v1alpha1.ProviderLocal)), "Simulated", string(v1alpha1.ProviderSimulated))
		if got := Differences(workers(), asked); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLabelsAndTaints(t *testing.T) {
	t.Parallel()
	labels, err := ParseLabels([]string{"c=", "a=b=c", "a=b=c"})
	if err != nil || Labels(labels) != "a=b=c,c=" {
		t.Errorf("labels %s, %v", Labels(labels), err)
	}
	taints, err := ParseTaints([]string{"x:NoExecute", "a=b:NoSchedule", "y:PreferNoSchedule"})
	if err != nil || Taints(taints) != "x:NoExecute,a=b:NoSchedule,y:PreferNoSchedule" {
		t.Errorf("taints %s, %v", Taints(taints), err)
	}
	if labels, err := ParseLabels(nil); labels != nil || err != nil || Labels(nil) != "none" {
		t.Errorf("no labels: %v, %v", labels, err)
	}
	if taints, err := ParseTaints(nil); taints != nil || err != nil || Taints(nil) != "none" {
		t.Errorf("no taints: %v, %v", taints, err)
	}
	for text, want := range map[string]string{
		"a":       `invalid label "a": must be key=value`,
		"=b":      `invalid label "=b": must be key=value`,
		"a=b,a":   `invalid label "a": must be key=value`,
		"a=b,a=c": `label a is given twice, as "b" and "c"`,
	} {
		if _, err := ParseLabels(strings.Split(text, ",")); err == nil || err.Error() != want {
			t.Errorf("labels %s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"a=b":          `invalid taint "a=b": must be key=value:Effect or key:Effect`,
		":NoSchedule":  `invalid taint ":NoSchedule": must be key=value:Effect or key:Effect`,
		"a:noschedule": `taint "a:noschedule" has the effect "noschedule"; there are: NoSchedule, PreferNoSchedule, NoExecute`,
	} {
		if _, err := ParseTaints([]string{text}); err == nil || err.Error() != want {
			t.Errorf("taint %s: %v, want %s", text, err, want)
		}
	}
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		provider       v1alpha1.Provider
		asked, becomes v1alpha1.Isolation
	}{
		{v1alpha1.ProviderLocal, "", v1alpha1.IsolationUserNamespace},
		{"", "", v1alpha1.IsolationUserNamespace},
		{v1alpha1.ProviderLocal, v1alpha1.IsolationUserNamespace, v1alpha1.IsolationUserNamespace},
		{v1alpha1.ProviderLocal, v1alpha1.IsolationNone, v1alpha1.IsolationNone},
		{v1alpha1.ProviderSimulated, "", ""},
	} {
		if got := Isolation(test.provider, test.asked); got != test.becomes {
			t.Errorf("%q of provider %q: %q, want %q", test.asked, test.provider, got, test.becomes)
		}
	}
}
