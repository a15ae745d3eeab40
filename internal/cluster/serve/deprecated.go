// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/planeclient"
)

// metricsTimeout is the time that an API server may take to write its metrics.
const metricsTimeout = 10 * time.Second

// deprecated reads which deprecated APIs of a cluster were requested since its API server started.
func (s *Service) deprecated(ctx context.Context, namespace string) (deprecation.Seen, error) {
	specs, err := s.specsOf(namespace)
	if err != nil {
		return deprecation.Seen{}, err
	}
	connection := planeclient.Cluster(specs)
	api, err := rest.HTTPClientFor(connection)
	if err != nil {
		return deprecation.Seen{}, fmt.Errorf("making a client of the API server's metrics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, connection.Host+"/metrics", http.NoBody)
	if err != nil {
		return deprecation.Seen{}, err
	}
	answer, err := api.Do(request)
	if err != nil {
		return deprecation.Seen{}, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return deprecation.Seen{}, fmt.Errorf("asking the API server for its metrics: it answers %s", answer.Status)
	}
	return deprecation.Read(answer.Body)
}
