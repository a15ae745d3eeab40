// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/podidentityagent"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// ApplySelfManaged makes the add-ons that a cluster begins with, unless it was made without, or has them as Addons by
// now.
func ApplySelfManaged(ctx context.Context, api client.Client, c component.Config) error {
	if begins := c.Cluster.Spec.BootstrapSelfManagedAddons; begins != nil && !*begins {
		return nil
	}
	managed, err := Managed(ctx, api)
	if err != nil {
		return err
	}
	for _, known := range catalogue.For(c.Release) {
		if !known.SelfManaged || slices.Contains(managed, known.Name) {
			continue
		}
		objects, err := known.Base(c)
		if err != nil {
			return err
		}
		if err := baseline.Apply(ctx, api, objects); err != nil {
			return err
		}
	}
	return nil
}

// AddOfCluster adds the controller of a cluster whose machines the providers make, to a manager of the management plane
// that sees the Addons of that cluster. The connection is to the cluster.
func AddOfCluster(mgr manager.Manager, connection *rest.Config, c component.Config, providers machine.Providers) error {
	api, err := client.New(connection, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("making a client of the cluster for add-ons: %w", err)
	}
	trusted, err := os.ReadFile(c.Authority(authority.Cluster))
	if err != nil {
		return fmt.Errorf("reading the authority of the cluster for add-ons: %w", err)
	}
	c.TrustedAuthority = string(trusted)
	files, all := addonfiles.New(hostagent.New(hostagent.Config{State: c.State}), c.Dir.Namespace(), c.BinDir), catalogue.For(c.Release)
	return Add(mgr, Config{
		ClusterName: c.Cluster.Spec.Name,
		Cluster:     api,
		Catalogue: func(version string) addon.Catalogue {
			of, err := release.All().OfMinor(release.Minor(version))
			if err != nil {
				of = c.Release
			}
			return catalogue.For(of)
		},
		Objects: func(name string) ([]*unstructured.Unstructured, error) {
			known, ok := all.Find(name)
			if !ok {
				return nil, fmt.Errorf("there is no add-on %s", name)
			}
			return known.Base(c)
		},
		Kinds: files.Kinds, Load: files.Load, Unload: files.Unload,
		Absent: func(name string) string {
			known, ok := all.Find(name)
			if ok && known.Served != "" && !c.VPC {
				return known.Served
			}
			if ok && known.OnMachines == "" && !c.VPC {
				return "the service runs without root, and so its machines are simulated and run no pods"
			}
			if name == karpenter.Name && c.Karpenter {
				return karpenter.InControlPlane(c.Cluster.Spec.Name)
			}
			return known.Unbuilt(files.Has)
		},
		Report: func(m *v1alpha1.Machine) (bootreport.Report, bool) {
			reporter, err := machine.Ask[machine.Reporter](providers, m.Spec.Provider, v1alpha1.KeepLogs)
			if err != nil {
				return bootreport.Report{}, false // a service without root does not have the provider
			}
			return reporter.Report(m.Name)
		},
		PodIdentity: func(ctx context.Context, m *v1alpha1.Machine) error {
			dialer, err := machine.Ask[machine.Dialer](providers, m.Spec.Provider, v1alpha1.JoinNetwork)
			if err != nil {
				return nil //nolint:nilerr // a service without root does not have the provider: the agent is not asked
			}
			return podidentityagent.Probe(ctx, func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialInside(ctx, m.Name, network, address)
			})
		},
	})
}
