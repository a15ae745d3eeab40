// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
)

// requests are the deprecated APIs that were asked for.
func (s Sources) requests(ctx context.Context) (insight.Requests, error) {
	running, err := s.Deprecated(ctx)
	callers, wrong := s.Callers(ctx)
	if err != nil && wrong != nil {
		return insight.Requests{}, errors.New("the API server's audit log and metrics cannot be read")
	}
	if err != nil {
		running = deprecation.Seen{}
	}
	if wrong != nil {
		callers = deprecationlog.Seen{}
	}
	return together(callers, running, s.Now), nil
}

// together are the requests of the audit log, which knows who asked in the last 30 days, and requests that the metrics of API
// servers alone have: the control plane's own, and what the log has lost. Metrics do not forget, so the metrics of an API
// server that runs for longer than 30 days say nothing of them.
func together(callers deprecationlog.Seen, running deprecation.Seen, now time.Time) insight.Requests {
	all := insight.Requests{Since: callers.Since}
	var known []deprecation.API
	for _, asked := range callers.Asked {
		request := insight.Request{Path: asked.API.Path(), Removed: asked.API.Removed, Count: asked.API.Requests}
		for _, c := range asked.Clients {
			request.Clients = append(request.Clients, insight.Client(c))
		}
		all.APIs = append(all.APIs, request)
		api := asked.API
		api.Requests = 0
		known = append(known, api)
	}
	old := running.Since.IsZero() || !callers.Since.IsZero() && running.Since.Before(now.Add(-deprecationlog.Window))
	if old {
		return all
	}
	if all.Since.IsZero() || running.Since.Before(all.Since) {
		all.Since = running.Since
	}
	for _, api := range running.APIs {
		count := api.Requests
		if api.Requests = 0; !slices.Contains(known, api) {
			all.APIs = append(all.APIs, insight.Request{Path: api.Path(), Removed: api.Removed, Count: count})
		}
	}
	return all
}
