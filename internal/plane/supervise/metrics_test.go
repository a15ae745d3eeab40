// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/runner"
)

// A component that is held to no amount of memory has no figures of it.
func TestCollector(t *testing.T) {
	processes := map[string][]runner.Status{
		"":     {{Name: "identity", State: runner.Ready}},
		"blue": {{Name: "etcd", State: runner.Unready, Restarts: 2, Memory: runner.Memory{Limit: 5, Ended: 1}}},
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(func() map[string][]runner.Status { return processes }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			got = append(got, fmt.Sprint(family.GetName(), " ", m.GetLabel()[0].GetValue(), "/", m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	if diff := cmp.Diff([]string{
		"muster_component_memory_limit_bytes blue/etcd 5", "muster_component_memory_limit_ends_total blue/etcd 1",
		"muster_component_ready /identity 1", "muster_component_ready blue/etcd 0",
		"muster_component_restarts_total /identity 0", "muster_component_restarts_total blue/etcd 2",
	}, got); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}
