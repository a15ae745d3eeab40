// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
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
		if err := s.checkLocal(binDir, own); err != nil {
			return err
		}
	}
	if wantsLocal && (s.Explicit || !running) {
		if err := s.checkIsolation(); err != nil {
			return err
		}
	}
	if running {
		return nil
	}
	if err := statedir.CheckDirectory(s.State); err != nil {
		return err
	}
	if err := checkDisk(s.State); err != nil {
		return err
	}
	if wantsLocal {
		if err := checkInotify(s.Wanted.NodeGroups); err != nil {
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

// checkLocal asks the local provider whether this host can run machines: root, programs, control group controllers.
func (s Session) checkLocal(binDir string, own account.Account) error {
	_, err := local.New(local.Config{State: s.State, BinDir: binDir, Subnets: local.Subnets(s.State), Region: own.Region, Log: slog.New(slog.DiscardHandler)})
	return err
}

// checkIsolation refuses node groups whose machines would be root on a host whose owner has not allowed it, and a host that cannot give machines ids of their
// own unless the owner lets them do without.
func (s Session) checkIsolation() error {
	name := s.Wanted.Cluster.Spec.Name
	clusters := s.HostRoot
	if clusters == nil {
		var err error
		if clusters, err = hostroot.Read(s.State); err != nil {
			return err
		}
	}
	allowed := clusters.Allow(name)
	for _, group := range s.Wanted.NodeGroups {
		if group.Spec.Isolation == v1alpha1.IsolationNone && !allowed && (s.Explicit || !s.State.Exists()) {
			return fmt.Errorf("node group %s: spec.isolation: %w", group.Spec.Name, hostroot.Refused{Cluster: name})
		}
	}
	if allowed {
		return nil
	}
	err := userns.Check(statedir.Nearest(s.State))
	if volumes := s.State.FileSystems(); err == nil && isDir(volumes) { // which may be on a disk of their own
		err = userns.Check(volumes)
	}
	if err != nil {
		return fmt.Errorf("machines cannot have users of their own on this host: %w. Or let root on machines of this cluster be root on this host, as isolation none: muster up --allow-host-root %s", err, name)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func checkDisk(dir statedir.Dir) error {
	path := statedir.Nearest(dir)
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", path, err)
	}
	size := uint64(stat.Bsize) //nolint:gosec // G115: a block size is positive
	return capacity.Disk(path, stat.Bavail*size, stat.Blocks*size)
}

func checkInotify(groups []*v1alpha1.NodeGroup) error {
	need := capacity.InotifyInstances(groups)
	left, err := host.Inotify(need)
	if err != nil {
		return err
	}
	return capacity.Inotify(need, left, host.InotifyLimit())
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
