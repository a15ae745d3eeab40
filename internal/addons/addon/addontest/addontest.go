// SPDX-License-Identifier: Apache-2.0

// Package addontest holds what the tests of add-ons have in common: the objects of an add-on in a cluster of tests, and
// the version that a module pins.
package addontest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

// Config returns the configuration of a cluster with or without a VPC.
func Config(vpc bool) component.Config {
	c := component.Config{Account: component.Account{VPC: vpc}, Network: clusternetworktest.Network()}
	c.Cluster.Default()
	c.Cluster.Spec.Name = "blue"
	c.Cluster.Spec.Network.ClusterDomain = "blue.local"
	c.TrustedAuthority = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
	return c
}

// Objects compares the objects of an add-on with testdata/objects.yaml, checks that they are whole, and returns them.
// Their image has a fixed version, so that an upgrade of the program does not change the file. In a cluster without a
// VPC the add-on must have no objects.
func Objects(t *testing.T, a addon.Addon) []*unstructured.Unstructured {
	t.Helper()
	if a.Image != "" {
		a.Image = a.Repository() + "v0.0.0"
	}
	if none, err := a.Base(Config(false)); err != nil || len(none) > 0 {
		t.Errorf("%d objects where no machine runs pods: %v", len(none), err)
	}
	objects, err := a.Base(Config(true))
	if err != nil {
		t.Fatal(err)
	}
	manifesttest.Golden(t, filepath.Join("testdata", "objects.yaml"), objects)
	manifesttest.Whole(t, objects)
	return objects
}

// Version checks that the program of an add-on has the version that a module, by its directory below images, requires.
func Version(t *testing.T, a addon.Addon, dir, module string) {
	t.Helper()
	path := filepath.Join("..", "..", "..", "images", dir, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || fields[0] != module || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		if fields[1] != a.Program {
			t.Errorf("%s requires %s, the definition says %s", path, fields[1], a.Program)
		}
		return
	}
	t.Errorf("%s does not require %s", path, module)
}

// Read checks what becomes of a configuration: it is read if want is empty, and refused with an error that has want in
// it otherwise.
func Read(t *testing.T, a addon.Addon, text, want string) {
	t.Helper()
	if _, err := a.Read(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Configured makes the objects of an add-on out of a base, which is a List in YAML, and a configuration. It checks that
// the base is not changed.
func Configured(t *testing.T, a addon.Addon, base, text, roleARN string) []*unstructured.Unstructured {
	t.Helper()
	values, err := a.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	before := Parse(t, base)
	made, err := a.Objects(before, values, roleARN)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Parse(t, base), before); diff != "" {
		t.Errorf("the base was changed (-want +got):\n%s", diff)
	}
	return made
}

// Parse reads the objects of a List.
func Parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := list.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// Has checks what is at a path, such as "Deployment .spec.replicas", of the object of a kind: JSON.
func Has(t *testing.T, all []*unstructured.Unstructured, path, want string) {
	t.Helper()
	kind, field, _ := strings.Cut(path, " .")
	if got, err := json.Marshal(at(all, kind, field)); err != nil || string(got) != want {
		t.Errorf("%s is %s, want %s; %v", path, got, want, err)
	}
}

// at is what is at a path of the object of a kind.
func at(all []*unstructured.Unstructured, kind, field string) any {
	for _, object := range all {
		if object.GetKind() != kind {
			continue
		}
		var value any = object.Object
		fields := strings.Split(field, ".")
		if before, after, ok := strings.Cut(field, ".annotations."); ok {
			fields = append(strings.Split(before, "."), "annotations", after)
		}
		for _, name := range fields {
			switch in := value.(type) {
			case map[string]any:
				value = in[name]
			case []any:
				value = in[0]
			default:
				return nil
			}
		}
		return value
	}
	return nil
}
