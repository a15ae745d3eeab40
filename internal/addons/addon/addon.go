// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest"
	"muster.dev/muster/internal/platform/release"
)

// Addon is the definition of an add-on.
type Addon struct {
	// Name is the add-on's name in the EKS API.
	Name string
	// Type is EKS's category.
	Type string
	// Publisher and Owner are EKS's (default: eks, aws).
	Publisher, Owner string
	// Namespace of its objects in a cluster (default: kube-system).
	Namespace string
	// ServiceAccount of its pods; empty for an add-on without pods.
	ServiceAccount string
	// Program is the version of its program, such as v1.15.0.
	Program string
	// Version is the only version in this release, such as v1.15.0-eksbuild.1 (default: Program with eksbuild.1).
	Version string
	// ClusterVersions are the versions of clusters that it supports, such as 1.36 (default: all that there are).
	ClusterVersions []string
	// Schema is the JSON schema of its configuration (default: no settings).
	Schema string
	// SelfManaged: a new cluster has the objects, before anybody makes an Addon.
	SelfManaged bool

	// Manifest is the template of its objects in the cluster. An add-on without one has no objects.
	Manifest string
	// Fill returns the template's values beside .Image. It may be nil.
	Fill func(component.Config) (map[string]string, error)
	// Image is the name that the build gives to the image of its pods (default: muster.dev/Name:Program).
	Image string
	// Archive is the file with the image, and Kinds the file with the CustomResourceDefinitions that it brings along:
	// paths below the directory of Muster's programs. A file that every cluster needs to come up is not named here.
	Archive, Kinds string
	// Build says how these files are made.
	Build Build
	// Pods say how its pods are configured.
	Pods Pods
	// Configure applies settings of this add-on alone. It may change the objects, which are copies, and returns the
	// objects to apply. It may be nil.
	Configure func([]*unstructured.Unstructured, Values) ([]*unstructured.Unstructured, error)

	// Served says why the account cannot serve the API of the add-on in a cluster without a VPC. Such an add-on has objects,
	// which lead the API server there, and no pods.
	Served string

	// OnMachines says how a program of each machine runs there. Such an add-on has no objects in the cluster.
	OnMachines string
	// Health is the source of its health on machines.
	Health Health
}

// Health is the source of the health of an add-on that is a program of each machine.
type Health string

// The sources of health.
const (
	// HealthOfProgram: the agents of machines report a program, of the add-on's name, that ends again and again.
	HealthOfProgram Health = "program"
	// HealthOfNetwork: kubelets report a machine without a working network plugin.
	HealthOfNetwork Health = "network"
	// HealthOfPodIdentity: the controller calls the EKS Pod Identity agent of each machine.
	HealthOfPodIdentity Health = "pod identity"
)

// Build says how the files of an add-on are made: the advice to a reader, the target of make, and its time with empty
// caches of Go.
type Build struct{ By, Target, Time string }

// MakeBuild is the build of images that every machine imports once they are there. `make up` makes them once nodes are
// Ready, so they may be on their way.
func MakeBuild(time string) Build {
	return Build{By: "run `make build` where Muster was built, or wait if `make up` still builds there", Target: targetBuild, Time: time}
}

// MakeAddons is the build of files that few clusters need. The time is that of all of them together
// (docs/benchmarks.md).
func MakeAddons() Build {
	return MakeOnce("addons", "about 5 minutes on two processors")
}

// MakeOnce is the build of files by a target of make that nothing else builds.
func MakeOnce(target, time string) Build {
	return Build{By: "run `make " + target + "` where Muster was built, once", Target: target, Time: time}
}

// targetBuild is the target whose images every machine imports.
const targetBuild = "build"

// noSchema is the schema of an add-on that has nothing to configure.
const noSchema = `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{},"additionalProperties":false}` + "\n"

// New fills in the defaults of a definition.
func New(a Addon) Addon {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&a.Publisher, "eks")
	fill(&a.Owner, "aws")
	fill(&a.Namespace, "kube-system")
	fill(&a.Schema, noSchema)
	// The number goes up when the objects of an add-on change and its program does not.
	fill(&a.Version, a.Program+"-eksbuild.1")
	if a.ServiceAccount != "" {
		fill(&a.Image, "muster.dev/"+a.Name+":"+a.Program)
	}
	if a.ClusterVersions == nil {
		a.ClusterVersions = release.All().Minors()
	}
	return a
}

// Base makes the objects of an add-on without a configuration, and without the kinds that it brings along. A cluster
// without a VPC has no machines that run pods, and gets no objects.
func (a Addon) Base(c component.Config) ([]*unstructured.Unstructured, error) {
	if a.Manifest == "" {
		return nil, fmt.Errorf("add-on %s has no objects", a.Name)
	}
	if !c.VPC {
		return nil, nil
	}
	values := map[string]string{}
	if a.Fill != nil {
		var err error
		if values, err = a.Fill(c); err != nil {
			return nil, err
		}
	}
	values["Image"] = a.Image
	return manifest.Fill(a.Name+".yaml", a.Manifest, values)
}

// Files returns the paths of Archive and Kinds, as far as the add-on has them.
func (a Addon) Files() []string {
	return slices.DeleteFunc([]string{a.Archive, a.Kinds}, func(path string) bool { return path == "" })
}

// Loaded reports whether the image is loaded for the clusters that have the add-on alone. Machines import all other
// images by themselves.
func (a Addon) Loaded() bool {
	return a.Archive != "" && a.Image != "" && a.Build.Target != targetBuild
}

// Repository is the name of the image without the version.
func (a Addon) Repository() string { return a.Image[:strings.LastIndex(a.Image, ":")+1] }

// Unbuilt says what is to be done before the add-on can run here; empty if nothing is. Has reports whether a file is
// there, by its path below the directory of Muster's programs.
func (a Addon) Unbuilt(has func(path string) bool) string {
	if slices.ContainsFunc(a.Files(), func(path string) bool { return !has(path) }) {
		return fmt.Sprintf("%s %s is not built here: %s", a.Name, a.Version, a.Build.By)
	}
	return ""
}

// Catalogue is a list of add-ons, sorted by name.
type Catalogue []Addon

// Find returns the add-on of a name.
func (all Catalogue) Find(name string) (Addon, bool) {
	i := slices.IndexFunc(all, func(a Addon) bool { return a.Name == name })
	if i < 0 {
		return Addon{}, false
	}
	return all[i], true
}
