// SPDX-License-Identifier: Apache-2.0

// Package catalogue lists the EKS add-ons of this release.
package catalogue

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/coredns"
	"muster.dev/muster/internal/addons/ekspodidentityagent"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/addons/kubeproxy"
	"muster.dev/muster/internal/addons/metricsserver"
	"muster.dev/muster/internal/addons/musterexplain"
	"muster.dev/muster/internal/addons/snapshotcontroller"
	"muster.dev/muster/internal/addons/traefik"
	"muster.dev/muster/internal/addons/vpccni"
	"muster.dev/muster/internal/platform/release"
)

// New returns the add-ons of clusters of the default release, by name.
func New() addon.Catalogue { return For(release.Default()) }

// Versions returns an add-on in each of its versions, the newest release's first. An unknown name has no versions.
func Versions(name string) []addon.Addon {
	var all []addon.Addon
	for _, of := range slices.Backward(release.All()) {
		known, ok := For(of).Find(name)
		if ok && !slices.ContainsFunc(all, func(a addon.Addon) bool { return a.Version == known.Version }) {
			all = append(all, known)
		}
	}
	return all
}

// For returns the add-ons of clusters of a release, by name.
func For(of release.Release) addon.Catalogue {
	all := addon.Catalogue{
		coredns.Addon(),
		ekspodidentityagent.Addon(),
		karpenter.Addon(),
		kubeproxy.Addon(of),
		metricsserver.Addon(),
		musterexplain.Addon(),
		snapshotcontroller.Addon(),
		traefik.Addon(),
		vpccni.Addon(),
	}
	slices.SortFunc(all, func(a, b addon.Addon) int { return strings.Compare(a.Name, b.Name) })
	return all
}
