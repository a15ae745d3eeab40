// SPDX-License-Identifier: Apache-2.0

package component

// zonalShiftFlags are the flags by which an API server takes the policy of zonal shifts (package zonalshift) in minors
// that have it as a beta. A cluster without zonal shifts gets none: nothing of it is a beta.
func zonalShiftFlags(c Config) map[string]string {
	if !c.Cluster.Spec.ZonalShift.On() || !c.Release.BetaMutatingPolicies {
		return nil
	}
	return map[string]string{
		"feature-gates":  "MutatingAdmissionPolicy=true",
		"runtime-config": "admissionregistration.k8s.io/v1beta1=true",
	}
}
