// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"bytes"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/launchdata"
)

// pods is how many pods a machine with some user data is to have addresses of its subnet for: none if the cluster has a
// range for pods, or if the machine runs none.
func (r parts) pods(m *v1alpha1.Machine, userData []byte) int {
	if _, routed := r.Routes[m.Spec.Provider]; !routed || !r.Network.PodsInSubnets {
		return 0
	}
	return launchdata.Pods(userData, m.Spec.Type())
}

// podsOf is how many the next machine of a group is to have addresses for.
func (r parts) podsOf(group *v1alpha1.NodeGroup) (int, error) {
	m, err := newMachine(r.Config, group, "", "", bytes.NewReader(make([]byte, idBytes)))
	if err != nil {
		return 0, err
	}
	data, err := r.UserData(m, "")
	if err != nil {
		return 0, fmt.Errorf("rendering user data for the number of pods: %w", err)
	}
	return r.pods(m, data), nil
}
