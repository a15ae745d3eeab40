// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/hostcheck"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

// check finds what would keep a cluster from starting, before anything is changed. running says that a service answers.
func (s Session) check(binDir string, running bool) error {
	if err := statedir.CheckLayout(s.State); err != nil {
		return err
	}
	if err := s.issuers().Check(s.State); err != nil {
		return fmt.Errorf("--issuer-host: %w", err)
	}
	if err := balancerrange.Check(s.State, s.BalancerRange); err != nil {
		return fmt.Errorf("--load-balancer-range: %w", err)
	}
	if _, err := releaseOf(binDir, s.Wanted.Cluster.Spec.Version); err != nil {
		return err
	}
	own, err := account.Plan(s.State, s.Region)
	if err != nil {
		return err
	}
	if err := s.checkNetwork(own); err != nil {
		return err
	}
	wantsLocal := s.wantsLocal()
	if wantsLocal && (s.Explicit || !s.State.Exists()) {
		if err := hostcheck.Local(s.State, binDir, own.Region); err != nil {
			return err
		}
	}
	if wantsLocal && (s.Explicit || !running) {
		if err := hostcheck.Isolation(s.State, s.Wanted, s.HostRoot, s.Explicit); err != nil {
			return err
		}
	}
	if running {
		return nil
	}
	if err := statedir.CheckDirectory(s.State); err != nil {
		return err
	}
	if err := hostcheck.Disk(s.State); err != nil {
		return err
	}
	if wantsLocal {
		if err := hostcheck.Inotify(s.Wanted.NodeGroups); err != nil {
			return err
		}
	}
	if wanted := int(s.Wanted.Cluster.Spec.APIServer.Port); wanted != 0 {
		processes, err := supervise.Find(s.State)
		if err != nil {
			return err
		}
		if len(processes) == 0 {
			return portplan.CheckFree(wanted)
		}
	}
	return nil
}

// wantsLocal reports whether the cluster is to have nodes with pods.
func (s Session) wantsLocal() bool {
	return slices.ContainsFunc(s.Wanted.NodeGroups, func(g *v1alpha1.NodeGroup) bool { return g.Spec.Provider == v1alpha1.ProviderLocal })
}

// checkNetwork refuses a network that a new cluster cannot have beside the account's VPCs and other clusters.
func (s Session) checkNetwork(own account.Account) error {
	if _, err := os.Stat(s.Cluster().Record()); err == nil {
		return nil // it has one
	}
	_, _, err := networkrecord.Plan(s.State, component.Config{
		Account: component.Account{State: s.State, Region: own.Region}, Dir: s.Cluster(), Cluster: *s.Wanted.Cluster,
	})
	return err
}

// Running lists the processes of a state directory, of each machine the first one.
func Running(dir statedir.Dir) ([]supervise.Process, error) {
	found, err := supervise.Find(dir)
	if err != nil {
		return nil, err
	}
	machines, err := local.Running(dir) // whose users are their own
	for id, pid := range machines {
		if !slices.ContainsFunc(found, func(p supervise.Process) bool { return p.PID == pid }) {
			found = append(found, supervise.Process{Name: local.ProcessName(id), PID: pid})
		}
	}
	return found, err
}
