// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/runner"
)

// deprecated reads which deprecated APIs of a cluster were requested since its API servers started. Each is asked at its
// own place, as it counts its own requests alone.
func (s *Service) deprecated(ctx context.Context, namespace string) (deprecation.Seen, error) {
	specs, err := s.specsOf(namespace)
	if err != nil {
		return deprecation.Seen{}, err
	}
	var all []deprecation.Seen
	for slot := range component.APIServers {
		if h := s.cluster(namespace); h == nil || runner.NotReady(h.components(), []string{component.APIServerName(slot)}) != "" {
			continue
		}
		connection := planeclient.Cluster(specs)
		connection.Host = specs.Places.APIServer(slot).URL()
		seen, err := deprecation.Ask(ctx, connection)
		if err != nil {
			return deprecation.Seen{}, err
		}
		all = append(all, seen)
	}
	if len(all) == 0 {
		return deprecation.Ask(ctx, planeclient.Cluster(specs)) // which says why
	}
	return deprecation.Merge(all...), nil
}
