// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"muster.dev/muster/internal/explain/explainapi"
	"muster.dev/muster/internal/plane/component"
)

// serveAPIs answers the API server of a cluster about the API that the account serves in it, until the context ends.
// That it cannot is no reason to wait for: the cluster is whole without.
func serveAPIs(ctx context.Context, h *hosted, c component.Config) {
	if !c.VPC { // no API server could come by
		return
	}
	say := func(problem string) {
		if problem != "" {
			h.log.Error("explanations are not served", "error", problem)
		}
	}
	_ = retry(ctx, "serving explanations", say, func(ctx context.Context) error { return explainapi.ServeCluster(ctx, c, h.service.writes, h.log) })
}
