// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
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

// callersOfDeprecated counts who asks for deprecated APIs, by the audit log of each API server.
func (h *hosted) callersOfDeprecated() *deprecationlog.Counter {
	logs := map[string]string{}
	for slot := range component.APIServers {
		logs[component.APIServerName(slot)] = h.dir.Audit(slot)
	}
	return deprecationlog.New(deprecationlog.Config{Logs: logs, Path: h.dir.DeprecatedRequests(), Log: h.log})
}

// callers says who asked a cluster for deprecated APIs.
func (v versions) callers(ctx context.Context, namespace string) (deprecationlog.Seen, error) {
	h := v.cluster(namespace)
	if h == nil {
		return deprecationlog.Seen{}, errors.New("the cluster is not served")
	}
	h.mu.Lock()
	counter := h.callers
	h.mu.Unlock()
	return counter.Seen(ctx)
}
