// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
)

// digits are the first ten of the SHA-256 of a name.
func digits(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:10]
}

func TestSlugs(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, test := range []struct{ name, cluster, group string }{
		{"muster", "muster", ""},
		{"a", "a", ""},
		{"9", "9", ""},
		{"a-b-9", "a-b-9", ""},
		{label, label, ""},
		{"kube", "kube", ""},
		{"defaults", "defaults", ""},
		{"default-1", "default-1", ""},
		{"kubernetes", "kubernetes", ""},
		{"Home", "home--" + digits("Home"), ""},
		{"home_1", "home-1--" + digits("home_1"), ""},
		{"a--b", "a-b--" + digits("a--b"), ""},
		{"a_-_b", "a-b--" + digits("a_-_b"), ""},
		{"a-", "a--" + digits("a-"), ""},
		{"a_", "a--" + digits("a_"), ""},
		{"home--" + digits("Home"), "home-" + digits("Home") + "--" + digits("home--"+digits("Home")), ""},
		{label + "a", strings.Repeat("a", 51) + "--" + digits(label+"a"), ""},
		{strings.Repeat("a", 50) + "-" + label, strings.Repeat("a", 50) + "--" + digits(strings.Repeat("a", 50)+"-"+label), ""},
		{strings.Repeat("Z", 100), strings.Repeat("z", 51) + "--" + digits(strings.Repeat("Z", 100)), ""},
		// Namespaces that are somebody else's. A node group may have such a name.
		{"default", "default--" + digits("default"), "default"},
		{"kube-system", "x-kube-system--" + digits("kube-system"), "kube-system"},
		{"kube-a", "x-kube-a--" + digits("kube-a"), "kube-a"},
		{"muster-iam", "x-muster-iam--" + digits("muster-iam"), "muster-iam"},
		{"Default", "default--" + digits("Default"), ""},
		{"Kube", "x-kube--" + digits("Kube"), "kube--" + digits("Kube")},
		{"MUSTER_x", "x-muster-x--" + digits("MUSTER_x"), "muster-x--" + digits("MUSTER_x")},
		{"Kube-" + label, "x-kube-" + strings.Repeat("a", 44) + "--" + digits("Kube-"+label), "kube-" + strings.Repeat("a", 46) + "--" + digits("Kube-"+label)},
		{"kube-" + strings.Repeat("a", 43) + "-" + label, "x-kube-" + strings.Repeat("a", 43) + "--" + digits("kube-"+strings.Repeat("a", 43)+"-"+label), "kube-" + strings.Repeat("a", 43) + "-aa--" + digits("kube-"+strings.Repeat("a", 43)+"-"+label)},
		// Not names of anything; slugs all the same.
		{"", "x--" + digits(""), ""},
		{"___", "x--" + digits("___"), ""},
		{"é", "x--" + digits("é"), ""},
	} {
		group := test.group
		if group == "" {
			group = test.cluster
		}
		if got := v1alpha1.ClusterSlug(test.name); got != test.cluster {
			t.Errorf("ClusterSlug(%q) = %q, want %q", test.name, got, test.cluster)
		}
		if got := v1alpha1.NodeGroupSlug(test.name); got != group {
			t.Errorf("NodeGroupSlug(%q) = %q, want %q", test.name, got, group)
		}
	}
}

var (
	slugShape = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?--[0-9a-f]{10}$`)
	eksName   = rapid.StringMatching(`[0-9A-Za-z][0-9A-Za-z_-]{0,99}`)
	// similar generates few names. Many of them have the same letters.
	similar = rapid.StringMatching(`(kube-|muster-|Kube-|default|)[aA][aA_-]{0,4}`)
)

// checkSlug holds a slug against what the API server and the other slugs demand of it.
func checkSlug(t interface{ Errorf(string, ...any) }, name string, slug func(string) string, taken bool) {
	got := slug(name)
	if problems := validation.IsDNS1123Label(got); len(problems) > 0 {
		t.Errorf("the slug %q of %q is not a DNS label: %v", got, name, problems)
	}
	if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
		t.Errorf("the slug %q of %q is not a value of a label: %v", got, name, problems)
	}
	plain := len(validation.IsDNS1123Label(name)) == 0 && !strings.Contains(name, "--") && !taken
	if plain && got != name {
		t.Errorf("the slug of %q, a DNS label, is %q", name, got)
	}
	if !plain && (!slugShape.MatchString(got) || !strings.HasSuffix(got, "--"+digits(name)) || strings.Count(got, "--") != 1) {
		t.Errorf("the slug of %q is %q", name, got)
	}
	if again := slug(got); strings.Contains(got, "--") && again == got {
		t.Errorf("%q is its own slug, and that of %q", got, name)
	}
}

func isReserved(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "muster-")
}

func checkSlugs(t interface{ Errorf(string, ...any) }, name string) {
	checkSlug(t, name, v1alpha1.ClusterSlug, isReserved(name))
	checkSlug(t, name, v1alpha1.NodeGroupSlug, false)
	if slug := v1alpha1.ClusterSlug(name); isReserved(slug) {
		t.Errorf("the slug of %q is the reserved namespace %q", name, slug)
	}
}

func TestSlugsOfAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSlugs(t, rapid.OneOf(eksName, similar, rapid.String()).Draw(t, "name"))
	})
}

func TestSlugsOfTwoNamesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.OneOf(similar, eksName)
		one, other := names.Draw(t, "one"), names.Draw(t, "other")
		for _, slug := range []func(string) string{v1alpha1.ClusterSlug, v1alpha1.NodeGroupSlug} {
			if one != other && slug(one) == slug(other) {
				t.Errorf("%q and %q have the slug %q", one, other, slug(one))
			}
		}
	})
}

func FuzzSlug(f *testing.F) {
	for _, name := range []string{"", "a", "A", "kube-a", "Kube", "default", "a--b", "-", strings.Repeat("a", 64), "\xff", "İ"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { checkSlugs(t, name) })
}

func TestNamesThatDoNotFollowFromSpecName(t *testing.T) {
	cluster := func(namespace, name, called string) []string {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ClusterSpec{Name: called}}
		c.Default()
		return texts(v1alpha1.ValidateCluster(c))
	}
	group := func(namespace, name, called string) []string {
		g := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.NodeGroupSpec{Name: called}}
		g.Default()
		return texts(v1alpha1.ValidateNodeGroup(g))
	}
	home := "home--" + digits("Home")
	for _, test := range []struct {
		about string
		got   []string
		want  string
	}{
		{"a cluster", cluster("muster", "muster", "muster"), ""},
		{"a cluster in a document", cluster("", "muster", "muster"), ""},
		{"a cluster with a slug", cluster(home, home, "Home"), ""},
		{"another hash", cluster("home--0123456789", "home--0123456789", "Home"), `metadata.name: Invalid value: "home--0123456789": must be "` + home + `", which follows from spec.name "Home"` +
			"\n" + `metadata.namespace: Invalid value: "home--0123456789": must be "` + home + `": each cluster has a namespace of its own`},
		{"another namespace", cluster("other", "muster", "muster"), `metadata.namespace: Invalid value: "other": must be "muster": each cluster has a namespace of its own`},
		{"no name", cluster("muster", "muster", ""), `spec.name: Required value: say what it is called`},
		{"a group", group("muster", "default", "default"), ""},
		{"a group with another hash", group("muster", "home--0123456789", "Home"), `metadata.name: Invalid value: "home--0123456789": must be "` + home + `", which follows from spec.name "Home"`},
		{"a group with too long a name", group("muster", "a", strings.Repeat("a", 64)), `spec.name: Invalid value: "` + strings.Repeat("a", 64) + `": must begin with a letter or digit and be of at most 63 letters, digits, - and _`},
	} {
		if got := strings.Join(test.got, "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant:\n%s", test.about, got, test.want)
		}
	}
}

func texts(errs field.ErrorList) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}
