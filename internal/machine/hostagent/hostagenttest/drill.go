// SPDX-License-Identifier: Apache-2.0

package hostagenttest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
)

func (m *machines) Drill(_ context.Context, _ string, effect drill.Effect) error {
	m.effect = effect
	return m.failure
}

func drillsArriveWhole(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	driller, err := machine.Ask[machine.Driller](hostagent.Providers(host, able()), able(), v1alpha1.RunPods)
	if err != nil {
		t.Fatal(err)
	}
	effect := drill.Effect{Leaves: map[string]string{"spot/instance-action": `{"action":"terminate"}`}, DiskFull: true, NoNetwork: true, Held: "kubelet"}
	isWhole(t, []any{effect})
	for _, sent := range []drill.Effect{effect, {}} {
		if err := driller.Drill(t.Context(), machinetest.First, sent); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sent, m.effect); diff != "" {
			t.Errorf("the machine is to have (-sent +got):\n%s", diff)
		}
	}
}
