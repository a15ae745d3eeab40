// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
)

// An API server takes the policy of zonal shifts: in minors that have it as a beta by flags, and only while the cluster
// can be shifted.
func TestZonalShiftsInMinorsWithABeta(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		minor        string
		shifts       *v1alpha1.ClusterZonalShift
		gates, serve string
	}{
		{"1.34", &v1alpha1.ClusterZonalShift{Enabled: true}, "MutatingAdmissionPolicy=true,SELinuxMount=true", "admissionregistration.k8s.io/v1beta1=true"},
		{"1.35", &v1alpha1.ClusterZonalShift{Enabled: true}, "MutatingAdmissionPolicy=true,SELinuxMount=true", "admissionregistration.k8s.io/v1beta1=true"},
		{"1.35", &v1alpha1.ClusterZonalShift{}, "SELinuxMount=true", ""},
		{"1.35", nil, "SELinuxMount=true", ""},
		{"1.36", &v1alpha1.ClusterZonalShift{Enabled: true}, "SELinuxMount=true", ""},
	} {
		of, err := release.All().OfMinor(test.minor)
		if err != nil {
			t.Fatal(err)
		}
		c := fixed(true)
		c.Release, c.Cluster.Spec.ZonalShift, c.Cluster.Spec.FeatureGates = of, test.shifts, v1alpha1.FeatureGates{"SELinuxMount": true}
		spec, err := APIServerSpec(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, values := flagsOf(t, spec); values["feature-gates"] != test.gates || values["runtime-config"] != test.serve {
			t.Errorf("%s, %+v: --feature-gates=%s --runtime-config=%s", test.minor, test.shifts, values["feature-gates"], values["runtime-config"])
		}
	}
}
