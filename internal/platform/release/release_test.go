// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

func TestReleasesAreWhatIsBuilt(t *testing.T) {
	t.Parallel()
	minors, defaults, first := map[string]bool{}, 0, 0
	for _, r := range release.All() {
		version := regexp.MustCompile(`^v1\.[0-9]+\.[0-9]+$`)
		if !version.MatchString(r.Version) || minors[r.Minor()] {
			t.Errorf("%s is no version, or the second of its minor", r.Version)
		}
		for _, earlier := range r.Earlier {
			if !version.MatchString(earlier) || release.Minor(earlier) != r.Minor() || earlier == r.Version {
				t.Errorf("%s is not an earlier version of %s", earlier, r.Version)
			}
		}
		if d := r.Dates; d.Released.IsZero() || !d.Released.Before(d.EndOfStandardSupport) || d.Source == "" || (d.Source == release.EKS) != d.EndOfStandardSupport.Before(d.EndOfExtendedSupport) {
			t.Errorf("the dates of %s are %+v", r.Version, d)
		}
		minors[r.Minor()] = true
		if r.Default {
			defaults++
		}
		if r.First {
			first++
		}
		for program := range r.Flags {
			if !slices.Contains(r.PlanePrograms(), r.Program("", program)) {
				t.Errorf("%s has flags of %s, which is not a program of a control plane", r.Version, program)
			}
		}
		path := filepath.Join("..", "..", "..", "kubernetes", r.Folder, "go.mod")
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\s*(require )?k8s\.io/kubernetes ` + regexp.QuoteMeta(r.Version) + `$`).Match(module) {
			t.Errorf("%s does not require k8s.io/kubernetes %s", path, r.Version)
		}
	}
	if defaults != 1 || first != 1 || release.All().First().Minor() != "1.36" {
		t.Errorf("%d releases are the default, and %d the first", defaults, first)
	}
}

func TestLookUp(t *testing.T) {
	t.Parallel()
	list := releasetest.List()
	for asked, want := range map[string]string{
		"": release.Default().Version, release.Default().Version: release.Default().Version, release.Default().Minor(): release.Default().Version,
		"v1.99.1": "v1.99.1", "1.99.1": "v1.99.1", "1.99": "v1.99.1", "v1.99.0": "v1.99.1", "1.99.0": "v1.99.1",
	} {
		if found, err := list.Of(asked); err != nil || found.Version != want {
			t.Errorf("%q is %s: %v", asked, found.Version, err)
		}
	}
	const there = ": there is 1.34, 1.35, 1.36, 1.37 or 1.99"
	for asked, says := range map[string]string{
		"v1.98.0": there, "1.99.2": there + "; 1.99 is v1.99.1", "v1.99": there + "; 1.99 is v1.99.1", "1.9": there, "x": there,
	} {
		if _, err := list.Of(asked); err == nil || err.Error() != fmt.Sprintf("unsupported Kubernetes version %q%s", asked, says) {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if found, err := list.OfMinor("1.99"); err != nil || found.Version != "v1.99.1" {
		t.Errorf("1.99 is %s: %v", found.Version, err)
	}
	for _, asked := range []string{"1.98", "v1.99.1", "1.99.1", ""} {
		if found, err := list.OfMinor(asked); err == nil {
			t.Errorf("the minor %q is %s", asked, found.Version)
		}
	}
	if diff := cmp.Diff([]string{"1.34", "1.35", "1.36", "1.37", "1.99"}, list.Minors()); diff != "" {
		t.Error(diff)
	}
	if got := releasetest.Next().Distance(list[0]); got != 65 {
		t.Errorf("1.99 is %d minors newer than 1.34", got)
	}
	if got := list[0].Distance(list[1]); got != -1 {
		t.Errorf("1.34 is %d minors newer than 1.35", got)
	}
}

func TestSupport(t *testing.T) {
	t.Parallel()
	day := func(text string) time.Time {
		d, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	eks := release.Dates{EndOfStandardSupport: day("2026-12-02"), EndOfExtendedSupport: day("2027-12-02")}
	upstream := release.Dates{EndOfStandardSupport: day("2026-12-02")}
	for _, c := range []struct {
		dates release.Dates
		now   string
		want  release.Support
	}{
		{eks, "2026-12-01", release.Standard},
		{eks, "2026-12-02", release.Extended},
		{eks, "2027-12-01", release.Extended},
		{eks, "2027-12-02", release.Unsupported},
		{upstream, "2026-12-01", release.Standard},
		{upstream, "2026-12-02", release.Unsupported},
		{release.Dates{}, "2026-12-02", release.Standard},
	} {
		if got := c.dates.Support(day(c.now)); got != c.want {
			t.Errorf("on %s %+v is %s, not %s", c.now, c.dates, got, c.want)
		}
	}
}

func TestWhatIsNotBuilt(t *testing.T) {
	t.Parallel()
	next := releasetest.Next()
	if says := next.Unbuilt(func(path string) bool { return strings.HasPrefix(path, "1.99/") }); says != "" {
		t.Error(says)
	}
	says := next.Unbuilt(func(path string) bool { return path != "1.99/kube-scheduler" })
	if want := "Kubernetes 1.99 is not built here: run `make kubernetes MINOR=1.99` where Muster was built"; !strings.HasPrefix(says, want) {
		t.Error(says)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	next := releasetest.Next()
	got := slices.Concat(next.PlanePrograms(), next.MachinePrograms(), []string{next.Program("/opt/muster/bin", "kubelet"), next.Program("/opt/muster/bin", "containerd")})
	want := "1.99/kube-apiserver 1.99/kube-controller-manager 1.99/kube-scheduler 1.99/kube-proxy 1.99/kubelet 1.99/kubelet-config-check " +
		"/opt/muster/bin/1.99/kubelet /opt/muster/bin/containerd"
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Error(diff)
	}
	if got := (release.Release{}).Program("/opt/muster/bin", "kubelet"); got != "/opt/muster/bin/kubelet" {
		t.Error(got)
	}
}
