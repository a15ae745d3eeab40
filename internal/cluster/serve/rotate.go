// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/x509"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/machine/kubeletcert"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
)

// rotateKubelets publishes the authorities of kubelets' certificates, and moves rotations on, until the context ends.
func (h *hosted) rotateKubelets(ctx context.Context, c component.Config) {
	var r *rotator.Rotator
	if err := retry(ctx, "watching over kubelets' authority", h.say, func(context.Context) (err error) {
		r, err = h.newRotator(c)
		return err
	}); err != nil {
		return
	}
	h.kubelets.Run(ctx, r)
}

func (h *hosted) newRotator(c component.Config) (*rotator.Rotator, error) {
	scheme, err := planeclient.Scheme()
	if err != nil {
		return nil, err
	}
	connection := planeclient.Cluster(c)
	// A plane that is down must not hold a step up for longer than it takes to say so.
	connection.Timeout = 10 * time.Second
	api, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	config := rotator.Config{
		Keys: h.keys, Server: c.Places.Published.URL(), CAFile: c.Authority("cluster"), API: api, Report: h.kubelets.Report, Log: h.log,
		Publish: func(ctx context.Context, trusted []*x509.Certificate) error {
			return baseline.PublishBundles(ctx, api, trusted)
		},
		Nodes: func(authorities map[string]*x509.Certificate) ([]rotation.Node, error) {
			return kubeletcert.Read(c.State, c.Cluster.Spec.Name, authorities)
		},
	}
	if c.VPC { // elsewhere machines are simulated only, and no kubelet serves
		config.Metrics = connection
	}
	return rotator.New(config)
}

// rotationStatus describes kubelets' authority; it is nil while there is none.
func (h *hosted) rotationStatus() *servicestatus.Rotation {
	record, waits, progress, err := h.kubelets.Rotation()
	if err != nil {
		return nil
	}
	return &servicestatus.Rotation{Signs: record.Signs(), Trusts: record.Trusts(), Rotation: record.Rotation, Last: record.Last, Message: waits, Progress: progress}
}

// startRotation begins to replace kubelets' authority, unless that is under way.
func (h *hosted) startRotation() (*servicestatus.Rotation, error) {
	if err := h.kubelets.Start(); err != nil {
		return nil, err
	}
	return h.rotationStatus(), nil
}
