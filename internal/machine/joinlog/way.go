// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// Way is one machine's way into its cluster: the time from its launch to each step.
type Way struct {
	Machine string                              `json:"machine"`
	Node    string                              `json:"node"`
	Steps   map[v1alpha1.JoinStep]time.Duration `json:"steps"`
}

// Ways reads the way in of every machine of a cluster, by node name.
func Ways(ctx context.Context, c client.Reader, cluster string) ([]Way, error) {
	var machines v1alpha1.MachineList
	if err := c.List(ctx, &machines); err != nil {
		return nil, fmt.Errorf("listing Machines for their joins: %w", err)
	}
	joins := make([]Way, 0, len(machines.Items))
	for _, m := range machines.Items {
		if m.Spec.ClusterName != cluster {
			continue
		}
		join := Way{Machine: m.Name, Node: m.Status.NodeName, Steps: map[v1alpha1.JoinStep]time.Duration{}}
		var launched time.Time
		for _, record := range m.Status.Join {
			if record.Step == v1alpha1.StepLaunched {
				launched = record.Time.Time
			}
		}
		for _, record := range m.Status.Join {
			if !launched.IsZero() {
				join.Steps[record.Step] = record.Time.Sub(launched)
			}
		}
		joins = append(joins, join)
	}
	slices.SortFunc(joins, func(a, b Way) int { return strings.Compare(a.Node, b.Node) })
	return joins, nil
}
