// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/addoncontroller"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/podidentityagent"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/version"
)

// applySelfManaged makes the add-ons that a cluster begins with, unless it was made without, or has them as Addons by now.
func applySelfManaged(ctx context.Context, api client.Client, c component.Config) error {
	if begins := c.Cluster.Spec.BootstrapSelfManagedAddons; begins != nil && !*begins {
		return nil
	}
	managed, err := addoncontroller.Managed(ctx, api)
	if err != nil || slices.Contains(managed, addon.CoreDNS) {
		return err
	}
	objects, err := baseline.CoreDNS(c, coreDNSImage)
	if err != nil {
		return err
	}
	return baseline.Apply(ctx, api, objects)
}

// addAddons adds the controller of the cluster's Addons.
func addAddons(mgr manager.Manager, scheme *runtime.Scheme, connection *rest.Config, c component.Config, providers map[v1alpha1.Provider]machine.Provider) error {
	api, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client of the cluster for add-ons: %w", err)
	}
	files := &addonFiles{binDir: c.BinDir, cluster: c.Dir, store: imagestore.New(c.State)}
	config := addoncontroller.Config{
		ClusterName: c.Cluster.Spec.Name,
		Cluster:     api,
		Catalogue: addon.New(addon.Programs{
			Kubernetes: version.Kubernetes, CoreDNS: version.CoreDNS, CNI: version.CNI, MetricsServer: version.MetricsServer, SnapshotController: version.SnapshotController, Traefik: version.Traefik,
		}),
		Objects: func(name string) ([]*unstructured.Unstructured, error) {
			switch name {
			case addon.CoreDNS:
				return baseline.CoreDNS(c, coreDNSImage)
			case addon.MetricsServer:
				return baseline.MetricsServer(c, metricsServerImage)
			case addon.SnapshotController:
				return baseline.SnapshotController(c, snapshotControllerImage)
			case addon.Traefik:
				return baseline.Traefik(c, traefikImage)
			}
			return nil, fmt.Errorf("add-on %s has no objects", name)
		},
		Kinds: files.kinds, Load: files.load, Unload: files.unload,
	}
	config.Absent = func(name string) string {
		known, ok := config.Catalogue.Find(name)
		if ok && known.OnMachines == "" && !c.VPC {
			return "the service runs without root, and so its machines are simulated and run no pods"
		}
		return known.Unbuilt(files.has)
	}
	if reporter, ok := providers[v1alpha1.ProviderLocal].(machine.Reporter); ok {
		config.Report = reporter.Report
	}
	if dialer, ok := providers[v1alpha1.ProviderLocal].(machine.Dialer); ok {
		config.PodIdentity = func(ctx context.Context, id string) error {
			return podidentityagent.Probe(ctx, func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialInside(ctx, id, network, address)
			})
		}
	}
	return addoncontroller.Add(mgr, config)
}
