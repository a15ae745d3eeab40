// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestRunsPods(t *testing.T) {
	local, simulated := NodeGroup{Provider: v1alpha1.ProviderLocal}, NodeGroup{Provider: v1alpha1.ProviderSimulated}
	if !(Cluster{NodeGroups: []NodeGroup{simulated, local}}).RunsPods() {
		t.Error("a local machine runs pods")
	}
	if (Cluster{NodeGroups: []NodeGroup{simulated}}).RunsPods() || (Cluster{}).RunsPods() {
		t.Error("nothing else does")
	}
}
