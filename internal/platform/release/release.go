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
	"strconv"
	"strings"
	"time"
)

// Release is a release of Kubernetes. The zero value has no version: its programs lie with Muster's own, and it sets
// nothing.
type Release struct {
	// Version is as in "v1.36.3".
	Version string
	// Earlier are the versions of the same minor that earlier versions of Muster had in its place. Clusters and machines
	// that name one run Version: a patch comes with Muster, as EKS's platform versions come by themselves.
	Earlier []string
	// Default reports whether new clusters that ask for no version run it. One release of a list is the default.
	Default bool
	// First reports whether it was the only minor when clusters and machines did not write down which they run. One
	// release of a list is the first, for ever.
	First bool
	// Folder has the programs of the release, below the directory of Muster's own programs; empty if they lie with
	// those. The module that they are built from lies in the folder of that name below kubernetes/.
	Folder string
	// Flags are what the control plane's programs are given besides what they are given in every release, by program
	// and flag without dashes. They win.
	Flags map[string]map[string]string
	// Kinds are those whose objects the minor serves by default and the minor before does not: what api/discovery of
	// k8s.io/kubernetes has in a version without alpha or beta. Kinds that came before the first minor are not listed.
	Kinds []Kind
	// BetaMutatingPolicies reports whether MutatingAdmissionPolicies are a beta of the minor, off by default, in v1beta1 of their group
	// (apiserver, pkg/features: beta since 1.34, on in v1 since 1.36).
	BetaMutatingPolicies bool
	// Kubelet are fields of the kubelet's configuration besides those of every release. They win, and lose to a user's.
	Kubelet map[string]any
	// Dates of the minor. Dates that are not known are not told.
	Dates Dates
}

// Kind is a kind of objects.
type Kind struct{ Group, Version, Kind string }

// Dates are days of the life of a minor, in UTC; a zero day is not known.
type Dates struct {
	Released, EndOfStandardSupport, EndOfExtendedSupport time.Time
	// Source is who published them.
	Source Source
}

// Source is who publishes the dates of a minor.
type Source string

const (
	// EKS is the calendar of EKS's user guide, "Understand the Kubernetes version lifecycle on EKS".
	EKS Source = "EKS"
	// Upstream is the page of the release series on kubernetes.io, which knows no extended support. It counts for minors
	// that EKS has no days for.
	Upstream Source = "Kubernetes"
)

// Support is what a minor is given on a day.
type Support string

// The supports, by EKS's names.
const (
	Standard    Support = "STANDARD_SUPPORT"
	Extended    Support = "EXTENDED_SUPPORT"
	Unsupported Support = "UNSUPPORTED"
)

// Support is what the minor is given at a moment. A minor whose dates are not known is in standard support.
func (d Dates) Support(now time.Time) Support {
	switch {
	case d.EndOfStandardSupport.IsZero() || now.Before(d.EndOfStandardSupport):
		return Standard
	case now.Before(d.EndOfExtendedSupport):
		return Extended
	}
	return Unsupported
}

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// List is releases, the newest last, with one of each minor.
type List []Release

// All returns the releases of this version of Muster. Their dates were read on 2026-11-28; EKS had none of 1.37 then.
func All() List {
	return List{
		{
			Version: "v1.34.10", Folder: "1.34", BetaMutatingPolicies: true,
			Dates: Dates{day(2025, time.October, 2), day(2026, time.December, 2), day(2027, time.December, 2), EKS},
		},
		{
			Version: "v1.35.8", Folder: "1.35", BetaMutatingPolicies: true,
			Dates: Dates{day(2026, time.January, 27), day(2027, time.March, 27), day(2028, time.March, 27), EKS},
		},
		{
			Version: "v1.36.4", Earlier: []string{"v1.36.3"}, Folder: "1.36", Default: true, First: true,
			Kinds: []Kind{
				{"admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"}, {"admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"},
			},
			Dates: Dates{day(2026, time.June, 2), day(2027, time.August, 2), day(2028, time.August, 2), EKS},
		},
		{
			Version: "v1.37.2", Folder: "1.37",
			Kinds: []Kind{
				{"certificates.k8s.io", "v1", "ClusterTrustBundle"},
				{"certificates.k8s.io", "v1", "PodCertificateRequest"},
				{"resource.k8s.io", "v1", "DeviceTaintRule"},
				{"storagemigration.k8s.io", "v1", "StorageVersionMigration"},
			},
			Dates: Dates{Released: day(2026, time.August, 26), EndOfStandardSupport: day(2027, time.October, 28), Source: Upstream},
		},
	}
}

// Default returns the release of clusters that ask for none, from All.
func Default() Release { return All().Default() }

// Default returns the release of clusters that ask for none.
func (l List) Default() Release {
	return l[slices.IndexFunc(l, func(r Release) bool { return r.Default })]
}

// First returns the release of clusters and machines that do not say which they run.
func (l List) First() Release {
	return l[slices.IndexFunc(l, func(r Release) bool { return r.First })]
}

// Of returns the release that a cluster asks for by its version: a minor, such as 1.36, or a patch of it, such as
// v1.36.3, which runs as the patch that there is if that is newer. It is the default if the version is empty. The error
// says which minors there are.
func (l List) Of(version string) (Release, error) {
	if version == "" {
		return l.Default(), nil
	}
	i := slices.IndexFunc(l, func(r Release) bool { return r.is(version) })
	if i < 0 {
		return Release{}, fmt.Errorf("unsupported Kubernetes version %.20q: there is %s", version, l.alternatives(version))
	}
	return l[i], nil
}

// is reports whether a version is the release's: its minor, its version, or an earlier one.
func (r Release) is(version string) bool {
	return version == r.Minor() || slices.ContainsFunc(append(r.Earlier, r.Version), func(v string) bool {
		return strings.TrimPrefix(v, "v") == strings.TrimPrefix(version, "v")
	})
}

// OfMinor returns the release of a minor version, such as 1.36. The error says which minors there are.
func (l List) OfMinor(minor string) (Release, error) {
	i := slices.IndexFunc(l, func(r Release) bool { return r.Minor() == minor })
	if i < 0 {
		return Release{}, fmt.Errorf("unsupported Kubernetes version %.20q: there is %s", minor, l.alternatives(minor))
	}
	return l[i], nil
}

// alternatives are the minors that there are, and the patch of one that a version is of.
func (l List) alternatives(version string) string {
	minors := l.Minors()
	text := minors[0]
	if len(minors) > 1 {
		text = strings.Join(minors[:len(minors)-1], ", ") + " or " + minors[len(minors)-1]
	}
	if i := slices.Index(minors, Minor(version)); i >= 0 {
		text += fmt.Sprintf("; %s is %s", minors[i], l[i].Version)
	}
	return text
}

// Minors returns the minor versions, such as 1.36, in the order of the list.
func (l List) Minors() []string {
	all := make([]string, 0, len(l))
	for _, r := range l {
		all = append(all, r.Minor())
	}
	return all
}

// Distance is how many minors a release is newer than another; negative if it is older.
func (r Release) Distance(from Release) int { return r.number() - from.number() }

// number is the second part of the version.
func (r Release) number() int {
	_, minor, _ := strings.Cut(r.Minor(), ".")
	n, _ := strconv.Atoi(minor) // a test looks
	return n
}

// After is the minor after the release's, whether or not there is one.
func (r Release) After() string { return fmt.Sprintf("1.%d", r.number()+1) }

// MaxSkew is how many minors a kubelet may be older than its API server (kubernetes.io/releases/version-skew-policy).
const MaxSkew = 3

// CheckSkew refuses a release of machines that does not fit a release of their control plane.
func CheckSkew(machines, plane Release) error {
	switch older := plane.Distance(machines); {
	case older < 0:
		return fmt.Errorf("machines of %s would be newer than their cluster, which runs %s", machines.Minor(), plane.Minor())
	case older > MaxSkew:
		return fmt.Errorf("machines of %s would be %d minors older than their cluster, which runs %s; they may be %d", machines.Minor(), older, plane.Minor(), MaxSkew)
	}
	return nil
}

// Unbuilt says what is to be done before the release can run; empty if nothing is, as of the default release, without
// which Muster does not start. Has reports whether a file is below the directory of Muster's programs.
func (r Release) Unbuilt(has func(path string) bool) string {
	if r.Default || !slices.ContainsFunc(slices.Concat(r.PlanePrograms(), r.MachinePrograms()), func(path string) bool { return !has(path) }) {
		return ""
	}
	return fmt.Sprintf("Kubernetes %s is not built here: run `make kubernetes MINOR=%[1]s` where Muster was built, once, which takes about 4 minutes on two processors", r.Minor())
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
