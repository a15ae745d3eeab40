// SPDX-License-Identifier: Apache-2.0

package ami

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/version"
)

func TestImages(t *testing.T) {
	if released[version.Release] == "" {
		t.Fatalf("no image of release %s: write its day into released", version.Release)
	}
	for _, i := range All() {
		if err := ec2id.Image.Check(i.ID); err != nil || i.Created.Year() < 2026 {
			t.Errorf("%+v: %v", i, err)
		}
		// Names that eksctl and Karpenter look for; EKS names a release by patch and day.
		if !regexp.MustCompile(`^amazon-eks-node-al2023-x86_64-standard-1\.[0-9]+-v20[0-9]{6}$`).MatchString(i.Name) || !regexp.MustCompile(`^1\.[0-9]+\.[0-9]+-20[0-9]{6}$`).MatchString(i.ReleaseVersion) {
			t.Errorf("%+v", i)
		}
		if found, ok := Find(i.ID); !ok || found != i {
			t.Errorf("%s is %+v", i.ID, found)
		}
	}
	// An id is kept in templates and on machines: it is the same in every release of this program.
	if first := of(release.Release{Version: "v1.36.3"}, "v0.2.0"); first.ID != "ami-fb5f1b62ce26eafef" || first.Kubernetes != "1.36" || first.ReleaseVersion != "1.36.3-20261122" {
		t.Errorf("%+v", first)
	}
	if _, ok := Find("ami-0123456789abcdef0"); ok {
		t.Error("an id that nothing has is found")
	}
	if _, ok := Recommended("1.1"); ok {
		t.Error("there is an image of 1.1")
	}
}

// The machines of a copy run what those of its source run, also of a deprecated one, and a copy of a copy is as good.
func TestCopies(t *testing.T) {
	t.Parallel()
	const random = "ami-0123456789abcdef0"
	for _, source := range append(All(), Deprecated()...) {
		id := Copy(source.ID, random)
		again := Copy(id, "ami-fedcba98765432100")
		for _, copied := range []string{id, again} {
			found, ok := Find(copied)
			if !ok || found.ID != copied || !found.Deprecated.IsZero() || found.Kubernetes != source.Kubernetes || Release(copied).Version != Release(source.ID).Version || ec2id.Image.Check(copied) != nil || !IsCopy(copied) {
				t.Errorf("%s, a copy of %s, is %+v", copied, source.ID, found)
			}
		}
		if id == again || IsCopy(source.ID) {
			t.Errorf("%s and %s are copies of %s", id, again, source.ID)
		}
	}
	if IsCopy(random) || IsCopy("") || IsCopy("ami-") {
		t.Error("an id that nothing has is a copy")
	}
}

func TestParameters(t *testing.T) {
	values := map[string]string{}
	names := []string{}
	for _, p := range Parameters() {
		values[p.Name] = p.Value
		names = append(names, p.Name)
	}
	newest, ok := Recommended(release.Default().Minor())
	path := Root + newest.Kubernetes + "/amazon-linux-2023/x86_64/standard/"
	if !ok || values[path+"recommended/image_id"] != newest.ID || values[path+"recommended/release_version"] != newest.ReleaseVersion || values[path+newest.Name+"/image_id"] != newest.ID {
		t.Errorf("%v", values)
	}
	whole := map[string]string{}
	if err := json.Unmarshal([]byte(values[path+"recommended"]), &whole); err != nil || whole["image_name"] != newest.Name {
		t.Errorf("%v, %v", whole, err)
	}
	if !slices.IsSorted(names) || len(values) != len(names) {
		t.Errorf("%v", names)
	}
}
