// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
)

// endpointsAgain is how often the endpoints of the Service "kubernetes" are corrected, as an API server that writes its
// own does (DefaultEndpointReconcilerInterval in pkg/controlplane/instance.go): without them no pod reaches it.
const endpointsAgain = 10 * time.Second

// KeepEndpoints keeps the endpoints of the Service "kubernetes" of a cluster as they are to be, until the context ends.
func KeepEndpoints(ctx context.Context, scheme *runtime.Scheme, c component.Config, log *slog.Logger) {
	api, err := endpointsClient(scheme, c)
	if err != nil {
		log.Error("the endpoints of the Service kubernetes are not corrected", "error", err)
		return
	}
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(endpointsAgain):
		}
		err := applyEndpoints(ctx, api, c)
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != said {
			log.Warn("the endpoints of the Service kubernetes cannot be corrected", "error", err)
		}
		said = ""
		if err != nil {
			said = err.Error()
		}
	}
}

// endpointsClient is told nothing of Endpoints being deprecated: there are clients that read nothing else.
func endpointsClient(scheme *runtime.Scheme, c component.Config) (client.Client, error) {
	connection := rest.CopyConfig(planeclient.Cluster(c))
	connection.WarningHandler = rest.NoWarnings{}
	api, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster for its endpoints: %w", err)
	}
	return api, nil
}

// applyEndpoints writes the endpoints. Those that an API server of an earlier version wrote are replaced.
func applyEndpoints(ctx context.Context, api client.Client, c component.Config) error {
	objects, err := KubernetesEndpoints(c)
	if err != nil {
		return err
	}
	return Apply(ctx, api, objects)
}
