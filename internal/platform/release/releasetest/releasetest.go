// SPDX-License-Identifier: Apache-2.0

// Package releasetest has a release of another minor than Muster's, for tests of the parts that read releases.
package releasetest

import (
	"time"

	"muster.dev/muster/internal/platform/release"
)

// Next is a release of a minor after all of Muster's, with everything that a release can differ in.
func Next() release.Release {
	return release.Release{
		Version: "v1.99.1", Earlier: []string{"v1.99.0"}, Folder: "1.99",
		Flags: map[string]map[string]string{
			"kube-apiserver":          {"emulated-version": "1.98", "profiling": "true"},
			"kube-controller-manager": {"kube-api-qps": "150"},
			"kube-scheduler":          {"feature-gates": "GangScheduling=true"},
		},
		Kubelet: map[string]any{"eventRecordQPS": 50, "featureGates": map[string]any{"SELinuxMount": false}},
		Dates: release.Dates{
			Released:             time.Date(2026, time.October, 20, 0, 0, 0, 0, time.UTC),
			EndOfStandardSupport: time.Date(2027, time.December, 20, 0, 0, 0, 0, time.UTC),
			EndOfExtendedSupport: time.Date(2028, time.December, 20, 0, 0, 0, 0, time.UTC),
			Source:               release.EKS,
		},
	}
}

// List is Muster's releases and Next.
func List() release.List { return append(release.All(), Next()) }
