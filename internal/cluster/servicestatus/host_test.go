// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func TestThisHostIsKnown(t *testing.T) {
	if own := ThisHost(); own.CPUs != runtime.NumCPU() || own.Memory < 1<<28 {
		t.Errorf("this host: %+v", own)
	}
}

// Only nodes of local machines claim the host.
func TestStatusCountsLocalNodes(t *testing.T) {
	machine := func(name string, provider v1alpha1.Provider, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{Provider: provider},
			Status: v1alpha1.MachineStatus{Phase: phase},
		}
	}
	api := fakeClient(t,
		machine("i-1", v1alpha1.ProviderLocal, v1alpha1.MachineReady), machine("i-2", v1alpha1.ProviderLocal, v1alpha1.MachineNotReady),
		machine("i-3", v1alpha1.ProviderLocal, v1alpha1.MachineJoining), machine("i-4", v1alpha1.ProviderSimulated, v1alpha1.MachineReady),
	)
	var status Cluster
	if err := Observe(t.Context(), api, &status); err != nil {
		t.Fatal(err)
	}
	if len(status.localNodes) != 2 {
		t.Errorf("nodes of types %q, want 2", status.localNodes)
	}
}
