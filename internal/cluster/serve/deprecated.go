// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/planeclient"
)

// deprecated reads which deprecated APIs of a cluster were requested since its API server started.
func (s *Service) deprecated(ctx context.Context, namespace string) (deprecation.Seen, error) {
	specs, err := s.specsOf(namespace)
	if err != nil {
		return deprecation.Seen{}, err
	}
	return deprecation.Ask(ctx, planeclient.Cluster(specs))
}
