// SPDX-License-Identifier: Apache-2.0

// Package release has the releases of Kubernetes that clusters and machines run. A release is one value: its version,
// programs, flags, settings of the kubelet, and dates. A cluster and a machine carry theirs, and every part reads from
// it what differs between minors. Another minor is another entry of the list, and programs that are built. etcd has a
// version of its own (package version), which never moves with Kubernetes.
package release

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Release is a release of Kubernetes. The zero value has no version: its programs lie with Muster's own, and it sets
// nothing.
type Release struct {
	// Version is as in "v1.36.3".
	Version string
	// Default reports whether clusters that ask for no version run it. One release of a list is the default.
	Default bool
	// Folder has the programs of the release, below the directory of Muster's own programs; empty if they lie with
	// those. The module that they are built from lies in the folder of that name below kubernetes/.
	Folder string
	// Flags are what the control plane's programs are given besides what they are given in every release, by program
	// and flag without dashes. They win.
	Flags map[string]map[string]string
	// Kubelet are fields of the kubelet's configuration besides those of every release. They win, and lose to a user's.
	Kubelet map[string]any
	// Dates of the minor. Dates that are not known are not told.
	Dates Dates
}

// Dates are days of the life of a minor, in UTC; a zero day is not known.
type Dates struct{ Released, EndOfStandardSupport, EndOfExtendedSupport time.Time }

// List is releases, the newest last, with one of each minor.
type List []Release

// All returns the releases of this version of Muster.
func All() List {
	return List{
		{Version: "v1.36.4", Default: true, Folder: "1.36"},
	}
}

// Default returns the release of clusters that ask for none, from All.
func Default() Release { return All().Default() }

// Default returns the release of clusters that ask for none.
func (l List) Default() Release {
	return l[slices.IndexFunc(l, func(r Release) bool { return r.Default })]
}

// Of returns the release that a cluster asks for by its version, such as v1.36.3; the default if the version is empty.
// The error says which versions there are.
func (l List) Of(version string) (Release, error) {
	if version == "" {
		return l.Default(), nil
	}
	i := slices.IndexFunc(l, func(r Release) bool { return r.Version == version })
	if i < 0 {
		return Release{}, fmt.Errorf("there are no programs of Kubernetes %s: write %s, or leave it out", version, alternatives(l.names(func(r Release) string { return r.Version })))
	}
	return l[i], nil
}

// OfMinor returns the release of a minor version, such as 1.36. The error says which minors there are.
func (l List) OfMinor(minor string) (Release, error) {
	i := slices.IndexFunc(l, func(r Release) bool { return r.Minor() == minor })
	if i < 0 {
		return Release{}, fmt.Errorf("unsupported Kubernetes version %.20q: there is %s", minor, alternatives(l.Minors()))
	}
	return l[i], nil
}

func alternatives(names []string) string { return strings.Join(names, " or ") }

// Minors returns the minor versions, such as 1.36, in the order of the list.
func (l List) Minors() []string { return l.names(Release.Minor) }

func (l List) names(name func(Release) string) []string {
	all := make([]string, 0, len(l))
	for _, r := range l {
		all = append(all, name(r))
	}
	return all
}

// Minor is the minor version, such as 1.36.
func (r Release) Minor() string { return Minor(r.Version) }

// Patch is the version as EKS writes it, such as 1.36.3.
func (r Release) Patch() string { return strings.TrimPrefix(r.Version, "v") }

// Minor is the minor version of a version: 1.36 of v1.36.3, of 1.36.3 and of 1.36.
func Minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// The programs of a release, of a control plane and of a machine.
var (
	planePrograms   = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	machinePrograms = []string{"kube-proxy", "kubelet", "kubelet-config-check"}
	// Of the release too: the program that others are links to, the management plane's, and people's.
	otherPrograms = []string{"kubernetes", "generic-apiserver", "kubeadm", "kubectl"}
)

// PlanePrograms returns the programs of a control plane that are of the release, as paths below the directory of
// Muster's programs.
func (r Release) PlanePrograms() []string { return r.paths(planePrograms) }

// MachinePrograms returns the programs of a machine that are of the release, as paths below the directory of Muster's
// programs.
func (r Release) MachinePrograms() []string { return r.paths(machinePrograms) }

func (r Release) paths(names []string) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, r.Program("", name))
	}
	return all
}

// Program returns the path of a program below the directory of Muster's programs: in the release's folder if the
// program is of the release, else beside Muster's own.
func (r Release) Program(binDir, name string) string {
	if slices.Contains(slices.Concat(planePrograms, machinePrograms, otherPrograms), name) {
		return filepath.Join(binDir, r.Folder, name)
	}
	return filepath.Join(binDir, name)
}
