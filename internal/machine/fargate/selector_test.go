// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"*", "abc", true},
		{"?", "", false},
		{"?", "a", true},
		{"prod*", "prod", true},
		{"prod*", "production", true},
		{"prod*", "my-prod", false},
		{"*prod", "my-prod", true},
		{"*o*", "prod", true},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "aXcYb", false},
		{"te?t", "test", true},
		{"te?t", "tet", false},
		{"**a", "a", true},
		{"a.b", "axb", false},
		{"*ab", "aab", true},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) is %v", c.pattern, c.text, got)
		}
	}
}

// A pattern decides as the regular expression that the admission policy has for it.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*b?c", "aXXbYc"}, {"*", ""}, {"te?t-*", "test-1"}, {"a.b", "a.b"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		for _, s := range []string{pattern, text} {
			if len(s) > 63 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Skip("it can be neither a pattern nor a name")
			}
		}
		expression := "^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern)) + "$"
		if got, want := Match(pattern, text), regexp.MustCompile(expression).MatchString(text); got != want {
			t.Errorf("Match(%q, %q) is %v, and %s says %v", pattern, text, got, expression, want)
		}
	})
}

func profile(name string, selectors ...v1alpha1.FargateSelector) v1alpha1.FargateProfile {
	return v1alpha1.FargateProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, UID: "uid-of-profile-" + "x"},
		Spec:       v1alpha1.FargateProfileSpec{Name: name, ClusterName: "blue", Selectors: selectors},
		Status:     v1alpha1.FargateProfileStatus{InstanceProfile: "eks-" + name},
	}
}

func TestChosen(t *testing.T) {
	all := []v1alpha1.FargateProfile{
		profile("b", v1alpha1.FargateSelector{Namespace: "shop"}),
		profile("a", v1alpha1.FargateSelector{Namespace: "shop", Labels: map[string]v1alpha1.FargateLabel{"app": "web*", "tier": "?"}}),
		profile("c", v1alpha1.FargateSelector{Namespace: "none"}, v1alpha1.FargateSelector{Namespace: "team-*"}),
	}
	gone := profile("0", v1alpha1.FargateSelector{Namespace: "*"})
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	all = append(all, gone)
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		want      string
	}{
		{"shop", nil, "b"},
		{"shop", map[string]string{"app": "web-1", "tier": "1"}, "a"},
		{"shop", map[string]string{"app": "web-1", "tier": "10"}, "b"},
		{"shop", map[string]string{"app": "web-1"}, "b"},
		{"shop", map[string]string{"app": "web-1", "tier": "1", v1alpha1.LabelFargateProfile: "b"}, "b"},
		{"shop", map[string]string{v1alpha1.LabelFargateProfile: "c"}, "b"},
		{"team-red", nil, "c"},
		{"default", nil, ""},
	} {
		got, ok := Chosen(all, c.namespace, c.labels)
		if ok != (c.want != "") || ok && got.Spec.Name != c.want {
			t.Errorf("a pod in %s with %v is of %+v, want %q", c.namespace, c.labels, got, c.want)
		}
	}
	if names := Sorted(all); len(names) != 3 || names[0].Spec.Name != "a" || names[2].Spec.Name != "c" {
		t.Errorf("%d profiles select pods", len(names))
	}
}
