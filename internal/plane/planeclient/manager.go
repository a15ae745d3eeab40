// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"muster.dev/muster/api/v1alpha1"
)

// NewManager makes a manager of controllers of the management plane, by a connection to it. The error names the
// controllers by the given words. Their cache holds what its options choose: everything, or a cluster's (OfCluster). No
// object in it says who wrote which field, which nobody here reads. Machines are read by the shared watch.
func NewManager(what string, connection *rest.Config, scheme *runtime.Scheme, log *slog.Logger, machines *Shared, seen cache.Options) (manager.Manager, error) {
	seen.DefaultTransform, seen.NewInformer = cache.TransformStripManagedFields(), machines.newInformer
	again := true // controllers are made anew, under the same names, for every configuration and after every failure
	made, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:         scheme,
		Logger:         logr.FromSlogHandler(log.Handler()),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return Mapper(), nil },
		Metrics:        server.Options{BindAddress: "0"}, // served on the service's own socket
		Cache:          seen,
		Controller:     config.Controller{SkipNameValidation: &again},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager of %s: %w", what, err)
	}
	return made, nil
}

// OfCluster limits what controllers see of the kinds with a namespace to the cluster's. Machines are the account's:
// controllers choose theirs by spec.clusterName, which nobody can change, as a label can be.
func OfCluster(namespace string) cache.Options {
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range v1alpha1.Kinds() {
		if kind.Namespaced {
			byObject[kind.Object] = cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
		}
	}
	return cache.Options{ByObject: byObject}
}
