// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/hostcheck"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

// check finds what would keep a cluster from starting, before anything is changed. running says that a service answers.
func (s Session) check(binDir string, running bool) error {
	var own account.Account
	wantsLocal := s.wantsLocal()
	return inOrder(
		steps.Option("host of issuers", "--issuer-host", func() error { return s.issuers().Check(s.State) }),
		steps.Option("range of load balancers", "--load-balancer-range", func() error { return balancerrange.Check(s.State, s.BalancerRange) }),
		steps.New("release", func() error { return CheckRelease(binDir, s.Wanted.Cluster.Spec) }),
		steps.New("Karpenter", func() error {
			return addonfiles.CheckCompute(s.Wanted.Cluster.Spec, binDir, local.Possible())
		}).If(s.Explicit || !s.State.Exists()),
		steps.Into("account", &own, func() (account.Account, error) { return account.Plan(s.State, s.Region) }),
		steps.New("network", func() error { return s.checkNetwork(own) }),
		steps.New("local machines", func() error { return hostcheck.Local(s.State, binDir, own.Region) }).If(wantsLocal && (s.Explicit || !s.State.Exists())),
		steps.New("isolation", func() error { return hostcheck.Isolation(s.State, s.Wanted, s.HostRoot, s.Explicit) }).If(wantsLocal && (s.Explicit || !running)),
		steps.New("foreign files", func() error { return statedir.CheckDirectory(s.State) }).If(!running),
		steps.New("disk", func() error { return hostcheck.Disk(s.State) }).If(!running),
		steps.New("inotify", func() error { return hostcheck.Inotify(s.Wanted.NodeGroups) }).If(!running && wantsLocal),
		steps.New("port", s.checkPort).If(!running),
	)
}

// CheckRelease refuses a version that there is not, or whose programs are not built.
func CheckRelease(binDir string, wanted v1alpha1.ClusterSpec) error {
	of, err := clusterconfig.ReleaseOf(wanted.Version)
	if err != nil {
		return err
	}
	if missing := programs.Unbuilt(binDir, of); missing != "" {
		return fmt.Errorf("spec.version: %s", missing)
	}
	return nil
}

// checkPort refuses a port of the API server that another program has.
func (s Session) checkPort() error {
	wanted := int(s.Wanted.Cluster.Spec.APIServer.Port)
	if wanted == 0 {
		return nil
	}
	running, err := s.Running()
	if err != nil || len(running) > 0 {
		return err
	}
	return portplan.CheckFree(wanted)
}

// wantsLocal reports whether the cluster is to have nodes with pods.
func (s Session) wantsLocal() bool {
	return s.Wanted.Cluster.Spec.Compute.On() || slices.ContainsFunc(s.Wanted.NodeGroups, func(g *v1alpha1.NodeGroup) bool { return g.Spec.Provider.Can(v1alpha1.RunPods) })
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
