// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/machine/instancecontroller"
	"muster.dev/muster/internal/machine/loopservice"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/providerlist"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/storage/filesystemcontroller"
)

// runAccountControllers reconciles what is the account's until the context ends: Clusters and their namespaces,
// Updates, and Machines of no cluster.
func (s *Service) runAccountControllers(ctx context.Context, scheme *runtime.Scheme, account component.Account) error {
	manager, err := planeclient.NewManager("the account's controllers", planeclient.Management(account, s.writes), scheme, s.cfg.Log, s.machines, cache.Options{})
	if err != nil {
		return err
	}
	if err := clustercontroller.Add(manager, clusterHosts{Service: s, account: account, api: manager.GetClient()}); err != nil {
		return err
	}
	if err := updatecontroller.Add(manager, freeEtcd(s), func(of release.Release) string { return programs.Unbuilt(s.cfg.BinDir, of) }); err != nil {
		return err
	}
	providers, err := providerlist.OfHost(account, s.cfg.Log, nil)
	if err != nil {
		return err
	}
	if err := instancecontroller.Add(manager, instancecontroller.Config{Providers: onHost(providers, s.files), Room: s.room, Log: s.cfg.Log}); err != nil {
		return err
	}
	if err := filesystemcontroller.Add(manager, s.files, s.cfg.Log); err != nil {
		return err
	}
	if err := addServices(s, manager, scheme, account); err != nil {
		return err
	}
	attachers, err := machine.AskAll[loopservice.Machines](providers, v1alpha1.AttachBlocks)
	if err != nil {
		return err
	}
	for _, machines := range attachers {
		server := &loopservice.Server{Machines: machines, Log: s.cfg.Log, Refused: loopservice.UsedUp(manager.GetClient(), manager.GetEventRecorder("muster"))}
		if err := manager.Add(server); err != nil {
			return fmt.Errorf("adding loop devices for machines: %w", err)
		}
	}
	keepers, err := machine.AskAll[machine.DiskKeeper](providers, v1alpha1.RunPods)
	if err != nil {
		return err
	}
	for _, machines := range keepers {
		if err := manager.Add(ctrlmanager.RunnableFunc(machines.KeepReserve)); err != nil {
			return fmt.Errorf("adding the reserve of the host's disk: %w", err)
		}
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running the account's controllers: %w", err)
	}
	return errControllersEnded
}

// addServices adds the controllers of what the account's AWS APIs keep.
func addServices(s *Service, manager ctrlmanager.Manager, scheme *runtime.Scheme, account component.Account) error {
	if s.cfg.Controllers == nil {
		return nil
	}
	api, err := s.managementClient(account, scheme)
	if err != nil {
		return err
	}
	return s.cfg.Controllers(manager, Account{Management: api, Components: account, HostRanges: func() ([]netip.Prefix, error) { return balancerrange.OfHost(account.State) }, Room: s.room, Logs: keeperOf(s)})
}
