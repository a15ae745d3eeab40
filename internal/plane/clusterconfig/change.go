// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
)

// CheckChange refuses a change of a cluster to what it cannot become: another network, or an authentication mode that
// it has left.
func CheckChange(is, wanted v1alpha1.ClusterSpec) error {
	if !equality.Semantic.DeepEqual(wanted.Network, is.Network) {
		return fmt.Errorf("spec.network: the network of a cluster cannot be changed: cluster %s has %+v", is.Name, is.Network)
	}
	return CheckMode(is, wanted)
}

// CheckMode refuses to take a cluster back to an authentication mode that it has left.
func CheckMode(is, wanted v1alpha1.ClusterSpec) error {
	order := v1alpha1.AuthenticationModes()
	left, asked := is.AccessConfig.AuthenticationMode, wanted.AccessConfig.AuthenticationMode
	if slices.Index(order, left) > slices.Index(order, asked) {
		return fmt.Errorf("spec.accessConfig.authenticationMode: the cluster is in mode %s and cannot go back to %s, which would admit principals again that only access entries keep out: write %[1]s", left, asked)
	}
	return nil
}
