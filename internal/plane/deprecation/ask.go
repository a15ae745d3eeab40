// SPDX-License-Identifier: Apache-2.0

package deprecation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// metricsTimeout is the time that an API server may take to write its metrics.
const metricsTimeout = 10 * time.Second

// Ask reads which deprecated APIs of an API server were requested since it started.
func Ask(ctx context.Context, connection *rest.Config) (Seen, error) {
	api, err := rest.HTTPClientFor(connection)
	if err != nil {
		return Seen{}, fmt.Errorf("making a client of the API server's metrics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, connection.Host+"/metrics", http.NoBody)
	if err != nil {
		return Seen{}, err
	}
	answer, err := api.Do(request)
	if err != nil {
		return Seen{}, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return Seen{}, fmt.Errorf("asking the API server for its metrics: it answers %s", answer.Status)
	}
	return Read(answer.Body)
}
