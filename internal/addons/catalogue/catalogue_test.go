// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

// Every folder of the wing is that of an add-on, by its name without dashes, or one of these.
func TestEveryAddonIsListed(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	var folders, listed []string
	for _, entry := range entries {
		if !slices.Contains([]string{"addon", "addoncontroller", "addonfiles", "catalogue"}, entry.Name()) {
			folders = append(folders, entry.Name())
		}
	}
	for _, a := range catalogue.New() {
		listed = append(listed, strings.ReplaceAll(a.Name, "-", ""))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(folders, listed); diff != "" {
		t.Errorf("the catalogue (-folders +listed):\n%s", diff)
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	all := catalogue.New()
	if !slices.IsSortedFunc(all, func(a, b addon.Addon) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the catalogue is not sorted by name")
	}
	files := map[string]string{}
	for _, a := range all {
		if !json.Valid([]byte(a.Schema)) || len(a.Schema) > v1alpha1.MaxAddonValues {
			t.Errorf("the schema of %s is not JSON", a.Name)
		}
		want := release.All().Minors()
		if a.Name == "kube-proxy" {
			want = []string{release.Default().Minor()}
		}
		if !slices.Equal(a.ClusterVersions, want) {
			t.Errorf("%s is for clusters of %v", a.Name, a.ClusterVersions)
		}
		if !strings.HasPrefix(a.Version, a.Program+"-eksbuild.") || !strings.HasPrefix(a.Program, "v") {
			t.Errorf("%s has the version %s, of the program %s", a.Name, a.Version, a.Program)
		}
		inPods, served, onMachines := a.ServiceAccount != "", a.Served != "", a.OnMachines != ""
		if (a.Manifest != "") != (inPods || served) || inPods && served || onMachines == (inPods || served) || inPods != (a.Pods != addon.Pods{}) || inPods != (a.Image != "") || onMachines != (a.Health != "") {
			t.Errorf("%s runs in pods and does not: %+v", a.Name, a)
		}
		if (len(a.Files()) > 0) != (a.Build != addon.Build{}) {
			t.Errorf("%s needs %v, which %+v makes", a.Name, a.Files(), a.Build)
		}
		for _, file := range a.Files() {
			if files[file] != "" {
				t.Errorf("%s and %s need %s, and each add-on has files of its own", files[file], a.Name, file)
			}
			files[file] = a.Name
		}
		if objects, err := a.Base(addontest.Config(true)); (err == nil) != (a.Manifest != "") {
			t.Errorf("%s has %d objects: %v", a.Name, len(objects), err)
		}
		addontest.Read(t, a, "", "")
		addontest.Read(t, a, "null", "")
		addontest.Read(t, a, `{"nobody knows it": 1}`, "nobody knows it")
	}
	if _, ok := all.Find("none"); ok {
		t.Error("there is an add-on none")
	}
	if a, ok := all.Find("coredns"); !ok || a.Version != "v1.15.0-eksbuild.1" || !a.SelfManaged {
		t.Errorf("CoreDNS is %+v", a)
	}
}

// Of another minor, kube-proxy has the version of the release. Programs that are not of Kubernetes stay.
func TestReleaseOfAnotherMinor(t *testing.T) {
	t.Parallel()
	now := catalogue.New()
	for i, a := range catalogue.For(releasetest.Next()) {
		want := now[i].Version
		if a.Name == "kube-proxy" {
			want = "v1.99.1-eksbuild.1"
			if !slices.Equal(a.ClusterVersions, []string{"1.99"}) {
				t.Errorf("%s is for clusters of %v", a.Version, a.ClusterVersions)
			}
		}
		if a.Version != want {
			t.Errorf("%s has the version %s, not %s", a.Name, a.Version, want)
		}
	}
}

func TestUnbuilt(t *testing.T) {
	t.Parallel()
	traefik := []string{"addons/traefik.tar", "addons/gateway-api.yaml"}
	const addons, build = "run `make addons` where Muster was built, once", "run `make build` where Muster was built, or wait if `make up` still builds there"
	for name, c := range map[string]struct {
		addon string
		files []string
		want  string
	}{
		"all is there":      {"traefik", traefik, ""},
		"one is missing":    {"traefik", traefik[:1], "traefik v3.7.5-eksbuild.1 is not built here: " + addons},
		"nothing is there":  {"traefik", nil, "traefik v3.7.5-eksbuild.1 is not built here: " + addons},
		"another add-on's":  {"snapshot-controller", traefik, "snapshot-controller v8.7.0-eksbuild.1 is not built here: " + addons},
		"of its own target": {"karpenter", traefik, "karpenter v1.15.0-eksbuild.1 is not built here: run `make karpenter` where Muster was built, once"},
		"of make build":     {"metrics-server", traefik, "metrics-server v0.9.0-eksbuild.1 is not built here: " + build},
		"built by now":      {"metrics-server", []string{"images/metrics-server.tar"}, ""},
		"nothing needed":    {"coredns", nil, ""},
	} {
		a, _ := catalogue.New().Find(c.addon)
		if got := a.Unbuilt(func(path string) bool { return slices.Contains(c.files, path) }); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"coredns": 1, "kube-proxy": len(release.All()), "none": 0} {
		all := catalogue.Versions(name)
		if len(all) != want {
			t.Errorf("%s has %d versions", name, len(all))
		}
	}
	if first := catalogue.Versions("kube-proxy")[0].ClusterVersions; !slices.Equal(first, release.All().Minors()[len(release.All())-1:]) {
		t.Errorf("the first version of kube-proxy is for %v", first)
	}
}
