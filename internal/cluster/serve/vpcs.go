// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/machine/providerlist"
	"muster.dev/muster/internal/machine/vpccontroller"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/securitygroupcontroller"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/runner"
)

// keepVPCs has the networks of the account be as their objects say until the context ends. Until it does, and while the
// management plane is away, they are as they are described on disk.
func (s *Service) keepVPCs(ctx context.Context, scheme *runtime.Scheme, account component.Account) {
	_ = retry(ctx, "keeping VPCs", s.say, func(ctx context.Context) error { return s.runVPCController(ctx, scheme, account) })
}

func (s *Service) runVPCController(ctx context.Context, scheme *runtime.Scheme, account component.Account) error {
	api, err := s.managementClient(account, scheme)
	if err != nil {
		return err
	}
	all, err := vpc.List(account.State.VPCs())
	if err != nil {
		return err
	}
	// Before the controller reads objects: a VPC that it sees without its subnets has none.
	if err := vpccontroller.First(ctx, api, all); err != nil {
		return err
	}
	store, err := providerlist.Store(account)
	if err != nil {
		return err
	}
	manager, err := planeclient.NewManager("the controller of VPCs", planeclient.Management(account, s.writes), scheme, s.cfg.Log, s.machines, cache.Options{})
	if err != nil {
		return err
	}
	err = vpccontroller.Add(manager, vpccontroller.Config{
		Root: account.State.VPCs(), Zones: networkrecord.ZoneNames(account.Region), Store: store,
		Networks:   vpccontroller.OnDisk{Root: account.State.VPCs(), Possible: account.VPC},
		Processes:  &vpccontroller.Supervised{Account: account, Supervisor: s.accountProcesses(), Certify: func() error { return s.ensureKeys(account, time.Now()) }},
		HostRanges: func() ([]netip.Prefix, error) { return balancerrange.OfHost(account.State) },
	})
	if err != nil {
		return err
	}
	if err := securitygroupcontroller.Add(manager, securitygroupcontroller.OnDisk{Root: account.State.VPCs()}); err != nil {
		return err
	}
	s.say("")
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers of VPCs and security groups: %w", err)
	}
	return errControllersEnded
}

// accountProcesses is the list of the account's own processes; nil until they run.
func (s *Service) accountProcesses() *runner.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes
}
