// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addoncontroller"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/principalid"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/launchdata"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/userns"
)

// runControllers reconciles clusters, node groups and machines until the context ends.
func (h *hosted) runControllers(ctx context.Context, scheme *runtime.Scheme, c component.Config) error {
	manager, err := planeclient.NewManager("the controllers", planeclient.Management(c.Account, h.service.writes), scheme, h.log, planeclient.OfCluster(c.Dir.Namespace()))
	if err != nil {
		return err
	}
	connection := planeclient.Cluster(c)
	plane, err := runtimecluster.New(connection, func(o *runtimecluster.Options) { o.Scheme, o.Logger = scheme, manager.GetLogger() }, nodegroup.ClusterOptions)
	if err != nil {
		return fmt.Errorf("making a cache of the cluster for machines: %w", err)
	}
	providers, routes, err := h.providers(c)
	if err != nil {
		return err
	}
	store, err := machine.NewStore(machine.StoreConfig{Dir: c.State.Machines(), Subnets: local.Subnets(c.State), Region: c.Region})
	if err != nil {
		return err
	}
	health, err := h.health(c, connection)
	if err != nil {
		return err
	}
	userData, err := launchdata.Renderer(c)
	if err != nil {
		return err
	}
	keys, err := keyservice.NewClient(keyservice.ClientConfig{Socket: c.State.MetadataSocket(), Credential: accountCredential(c.Account, component.CredentialAccountMetadata), Logger: h.log})
	if err != nil {
		return err
	}
	defer keys.Close()
	direct, err := client.New(connection, client.Options{Scheme: scheme, Mapper: clusteraccess.Mapper()})
	if err != nil {
		return fmt.Errorf("making a client of the cluster for access entries: %w", err)
	}
	access := clusteraccess.New(clusteraccess.Config{
		Management: manager.GetAPIReader(), Cluster: direct, Namespace: c.Dir.Namespace(), Mode: c.Cluster.Spec.AccessConfig.AuthenticationMode,
		Store: h.service.identityStore,
	})
	roles, err := clusteraccess.NewNodeRoles(c, access, keys)
	if err != nil {
		return err
	}
	admitted, err := clusteraccess.NewAdmitted(connection, keys)
	if err != nil {
		return err
	}
	// If the watch fails, admission is polled every 15 s.
	watching, stopWatching := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stopWatching()
	group.Go(func() {
		if err := admitted.Run(watching); err != nil {
			h.log.Warn("watching the mappings of the cluster failed; machines are checked every 15 s", "error", err)
		}
	})
	entries, err := authenticator.AccessEntries(connection)
	if err != nil {
		return err
	}
	group.Go(func() { principalid.New(manager.GetAPIReader(), direct, h.log).Run(watching, entries) })
	group.Go(func() { new(auditlog.Notice).Tell(watching, manager, c.Dir.Namespace(), h.securityState, h.log) })
	group.Go(func() { h.memoryTold.Tell(watching, manager, c.Dir.Namespace(), h.components) })
	creator := c.Cluster.Spec.AccessConfig.BootstrapClusterCreatorAdminPermissions
	group.Go(func() {
		access.First(watching, creator == nil || *creator, h.log)
		if err := roles.Tidy(watching); err != nil && watching.Err() == nil { // of groups that went while the service was away
			h.log.Warn("instance profiles of groups that are gone may be left", "error", err)
		}
		roles.Leave(watching, formerRoleLeft(watching, manager, c.Dir.Namespace()), h.log)
	})
	if err := nodegroup.Add(manager, nodegroup.Config{
		NodeRoles:   roles,
		Admitted:    admitted.Changed(),
		Refused:     h.refused,
		ClusterName: c.Cluster.Spec.Name, ImageID: ami.OfRelease(c.Release),
		Cluster:     plane,
		Providers:   providers,
		Routes:      routes,
		Network:     c.Network,
		Usage:       func() ([]machine.Usage, error) { return store.Usage(c.Network.VPCID) },
		UserData:    userData,
		HostRoot:    func() (hostroot.Clusters, error) { return hostroot.Read(c.State) },
		Health:      health,
		Authorities: h.kubelets.Answer,
		AuditLog:    c.Dir.Audit(0), // of the one instance
		Boots:       h.service.boots,
		Log:         h.log,
	}); err != nil {
		return fmt.Errorf("adding the controllers of node groups: %w", err)
	}
	if err := addoncontroller.AddOfCluster(manager, connection, c, providers); err != nil {
		return err
	}
	if err := h.addBalancers(manager, scheme, connection, c, store); err != nil {
		return err
	}
	if err := h.addVolumes(manager, scheme, connection, c, providers); err != nil {
		return err
	}
	h.setReader(manager.GetClient())
	defer h.setReader(nil)
	h.say("")
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running controllers: %w", err)
	}
	return errControllersEnded
}

var errControllersEnded = errors.New("the controllers ended")

// providers are those that this host can have, and the routes to their machines.
func (h *hosted) providers(c component.Config) (machine.Providers, map[v1alpha1.Provider]nodegroup.Routes, error) {
	routes := map[v1alpha1.Provider]nodegroup.Routes{}
	providers, err := machineProviders(c.Account, h.log)
	if err != nil || !c.VPC {
		return providers, routes, err
	}
	opened, err := networkrecord.OpenRoutes(c)
	for name := range providers {
		if name.Can(v1alpha1.RunPods) {
			routes[name] = opened
		}
	}
	return providers, routes, err
}

// machineProviders are the providers of machines that this host can have: the one list of them, a line each.
func machineProviders(c component.Account, log *slog.Logger) (machine.Providers, error) {
	subnets := local.Subnets(c.State)
	store, err := machine.NewStore(machine.StoreConfig{Dir: c.State.Machines(), Subnets: subnets, Region: c.Region})
	if err != nil {
		return nil, err
	}
	providers := machine.Providers{}
	if providers[v1alpha1.ProviderSimulated], err = simulated.New(simulated.Config{Store: store}); err != nil || !c.VPC {
		return providers, err
	}
	providers[v1alpha1.ProviderLocal], err = local.New(local.Config{
		State: c.State, BinDir: c.BinDir, Subnets: subnets, Region: c.Region, Log: log,
		IDs: func() (userns.IDs, error) { return local.IDs(c.State) },
	})
	return providers, err
}

// health looks at the components that a cluster cannot do without, and asks the API server for its version.
func (h *hosted) health(c component.Config, config *rest.Config) (func(context.Context) nodegroup.Health, error) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server's version: %w", err)
	}
	endpoint, err := c.PrivateURL()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) nodegroup.Health {
		health := nodegroup.Health{Endpoint: c.ServerURL(), PrivateEndpoint: endpoint, Issuer: c.Issuer.URL, Mode: c.Cluster.Spec.AccessConfig.AuthenticationMode}
		if groups, err := networkrecord.EndpointGroups(c); err != nil {
			health.Err = errors.Join(health.Err, err)
		} else {
			health.SecurityGroups = groups
		}
		h.mu.Lock()
		health.Refused, health.RefusedAt = h.refusal, h.refusedAt
		h.mu.Unlock()
		if pem, err := os.ReadFile(c.Authority(authority.Cluster)); err == nil {
			health.Authority = base64.StdEncoding.EncodeToString(pem)
		} else {
			health.Err = fmt.Errorf("reading the cluster's authority: %w", err)
		}
		components := h.components()
		if condition, known := apiservermemory.Condition(apiservermemory.Of(components)); known {
			health.Conditions = append(health.Conditions, condition)
		}
		if summary := supervise.Summary(components, time.Now()); summary != "" {
			health.Err = errors.Join(health.Err, errors.New(summary))
		}
		if !answersRequests(components) { // and says so above
			return health
		}
		version, err := api.WithLegacy().ServerVersion()
		if err != nil {
			health.Err = errors.Join(health.Err, fmt.Errorf("asking the API server for its version: %w", err))
			return health
		}
		health.Version = version.GitVersion
		return health
	}, nil
}

// answersRequests reports whether the API server of a cluster is Ready. Before, it refuses the service, whose roles it
// has not written yet.
func answersRequests(components []supervise.Status) bool {
	return !slices.ContainsFunc(components, func(s supervise.Status) bool {
		return s.Name == component.APIServer && s.State != supervise.Ready
	})
}
