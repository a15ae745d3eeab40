// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/podidentity"
)

// errNoIdentities means that there is nothing to explain by.
var errNoIdentities = errors.New("the identity service does not run yet: see muster status")

// commands are what the command line asks the service for.
type commands struct{ *Service }

var _ controlsocket.Service = commands{}

// Reload implements [controlsocket.Service].
func (c commands) Reload() { c.lookAgain() }

// Rotate implements [controlsocket.Service].
func (c commands) Rotate(cluster string) (servicestatus.Rotation, error) {
	h := c.cluster(cluster)
	if h == nil {
		return servicestatus.Rotation{}, controlsocket.ErrNoCluster
	}
	status, err := h.startRotation()
	if err != nil || status == nil {
		return servicestatus.Rotation{}, err
	}
	return *status, nil
}

// RotateTokenKeys implements [controlsocket.Service].
func (c commands) RotateTokenKeys(cluster string, notice time.Duration) ([]servicestatus.TokenKey, error) {
	h := c.cluster(cluster)
	if h == nil {
		return nil, controlsocket.ErrNoCluster
	}
	return h.rotateTokenKeys(notice)
}

// ExplainPod implements [controlsocket.Service].
func (c commands) ExplainPod(ctx context.Context, cluster, namespace, name string) (podidentity.Explanation, error) {
	c.mu.Lock()
	explainer := c.explainer
	c.mu.Unlock()
	h := c.cluster(cluster)
	switch {
	case h == nil:
		return podidentity.Explanation{}, controlsocket.ErrNoCluster
	case explainer == nil:
		return podidentity.Explanation{}, errNoIdentities
	}
	h.mu.Lock()
	specs := h.specs
	h.mu.Unlock()
	return explainer.Explain(ctx, specs, namespace, name)
}
