// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/platform/systemd"
)

// LeaveRequest is how to leave.
type LeaveRequest struct {
	// Admin reaches the cluster as a user that may drain and delete Nodes; nil: there is none.
	Admin kubernetes.Interface
	// Force goes on when the cluster does not answer, pods cannot be evicted, or the container runtime cannot remove
	// them.
	Force bool
	// KeepNode leaves the Node object in the cluster.
	KeepNode bool
	// DrainTimeout is how long pods may take to go.
	DrainTimeout time.Duration
}

// Leave undoes a join: everything that its ledger lists, and nothing else. A host that has not joined is left alone. An
// interrupted one is taken up by the next.
func (h *Host) Leave(ctx context.Context, r LeaveRequest) (Report, error) {
	h.begin()
	unlock, err := h.lock()
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	l, err := ReadLedger(h.Root)
	if errors.Is(err, ErrNotJoined) {
		if err := h.forget(); err != nil {
			return Report{}, err
		}
		h.done("leave", "%v: there is nothing to undo", ErrNotJoined)
		return h.report(Ledger{}), nil
	}
	if err != nil {
		return Report{}, err
	}
	leaving := &leaving{Host: h, request: r, ledger: l}
	err = leaving.leave(ctx)
	return h.report(leaving.ledger), err
}

// leaving is a leave under way.
type leaving struct {
	*Host
	request LeaveRequest
	ledger  Ledger
}

func (l *leaving) leave(ctx context.Context) error {
	if err := l.wait(func() error { return l.drain(ctx) }); err != nil {
		if !l.request.Force {
			return fmt.Errorf("%w; --force leaves without that", err)
		}
		l.warn("drain", "%v", err)
	} else if err := l.drained(); err != nil {
		return err
	}
	if err := l.stop(ctx, watchUnit, kubeProxyUnit, kubeletUnit); err != nil {
		return err
	}
	if l.ledger.SkipKubeProxy {
		l.done("kubelet", "stopped")
	} else {
		l.done("kubelet", "stopped, and kube-proxy")
	}
	if err := l.wait(func() error { return l.pods(ctx) }); err != nil {
		if !l.request.Force {
			return fmt.Errorf("%w; --force leaves without that", err)
		}
		l.warn("pods", "%v", err)
	}
	if err := l.disk.change("clean up firewall"); err != nil {
		return err
	}
	if err := l.firewall(ctx); err != nil {
		l.warn("kube-proxy", "%v", err)
	}
	l.removeKubeletChains(ctx)
	if err := l.wait(func() error { return l.revoke(ctx) }); err != nil {
		if !l.request.Force {
			return fmt.Errorf("%w; --force leaves without that", err)
		}
		l.warn("node", "%v", err)
	}
	if l.ledger.OwnContainerd {
		if err := l.stop(ctx, containerdUnit); err != nil {
			return err
		}
		l.done("containerd", "stopped")
	}
	if err := l.slices(ctx); err != nil {
		return err
	}
	return l.remove(ctx)
}

// slices ends those that the join began, unless somebody else's unit is in one by now.
func (l *leaving) slices(ctx context.Context) error {
	for _, name := range l.ledger.Slices {
		slice, err := l.Units.Show(ctx, name)
		if err != nil {
			return err
		}
		if name != programSlice || !slice.Active() || l.disk.hasDirectories("/sys/fs/cgroup/"+name) || l.disk.hasDirectories("/sys/fs/cgroup/systemd/"+name) {
			continue
		}
		if err := l.do(ctx, systemd.Stop, name); err != nil {
			return err
		}
	}
	return nil
}

// stop ends units for good. A unit that does not exist counts as ended.
func (l *leaving) stop(ctx context.Context, units ...string) error {
	for _, name := range units {
		if !slices.Contains(l.ledger.Units, name) {
			continue
		}
		var unit systemd.Unit
		err := l.wait(func() (err error) {
			unit, err = l.Units.Show(ctx, name)
			return err
		})
		if err != nil {
			return err
		}
		if unit.Exists() {
			if err := l.do(ctx, systemd.Stop, name); err != nil {
				return err
			}
			if err := l.do(ctx, systemd.Disable, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// runtimePatience is how long a runtime that was stopped may take to answer.
const runtimePatience = 10 * time.Second

// pods removes what is left: those of daemon sets, static ones, and all if the node could not be drained. A containerd
// of the join's own is started for that if it does not run, since nobody else can undo the network of a pod.
func (l *leaving) pods(ctx context.Context) error {
	if l.ledger.OwnContainerd {
		unit, err := l.Units.Show(ctx, containerdUnit)
		if err != nil {
			return err
		}
		// Without its files and state there is nothing left to be undone by it.
		if !unit.Exists() || !l.disk.exists("/var/lib/containerd") && !unit.Active() {
			return nil
		}
		if !unit.Active() {
			if err := l.do(ctx, systemd.Start, containerdUnit); err != nil {
				return err
			}
		}
	}
	answering, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	for {
		_, err := l.Runtime.Version(answering)
		if err == nil {
			break
		}
		if !sleep(answering, pollInterval) {
			return err
		}
	}
	if err := l.disk.change("remove pods"); err != nil {
		return err
	}
	since := l.ledger.Began
	if l.ledger.OwnContainerd {
		since = time.Time{} // nothing else has ever run in it
	}
	removed, err := l.Runtime.RemovePods(ctx, since)
	if err != nil {
		return err
	}
	l.done("pods", "%d removed", removed)
	slice, err := l.Units.Show(ctx, podSlice)
	if err == nil && slice.Exists() && slice.Active() {
		return l.do(ctx, systemd.Stop, podSlice) // the kubelet's; empty now
	}
	return err
}

// podSlice is what the kubelet has systemd put pods into.
const podSlice = "kubepods.slice"

// firewall has kube-proxy remove its rules, as only it knows them.
func (l *leaving) firewall(ctx context.Context) error {
	program := filepath.Join(l.BinDir, "kube-proxy")
	if !slices.Contains(l.ledger.Units, kubeProxyUnit) || !l.disk.exists(program) {
		return nil
	}
	err := l.wait(func() error {
		_, err := l.Run(ctx, l.disk.at(program), "--cleanup")
		return err
	})
	if err != nil {
		return fmt.Errorf("removing kube-proxy's rules: %w", err)
	}
	l.done("kube-proxy", "its rules are removed")
	return nil
}

// remove takes away everything that the ledger lists, and the ledger last.
func (l *leaving) remove(ctx context.Context) error {
	for _, tree := range l.ledger.Trees {
		if !slices.Contains(treePaths(), tree.Path) {
			continue
		}
		if err := l.disk.removeTree(tree); err != nil {
			return err
		}
	}
	replaced, err := l.ledger.replaced(l.disk)
	if err != nil {
		return err
	}
	for _, path := range l.ledger.Files {
		if slices.Contains(replaced, path) {
			continue
		}
		if err := l.disk.remove(path); err != nil {
			return err
		}
	}
	if err := l.do(ctx, systemd.Reload); err != nil {
		return err
	}
	for _, name := range l.ledger.Units {
		unit, err := l.Units.Show(ctx, name)
		if err == nil && unit.ActiveState == "failed" {
			err = l.do(ctx, systemd.ResetFailed, name)
		}
		if err != nil {
			return err
		}
	}
	for _, setting := range l.ledger.Settings {
		if err := l.disk.change("restore " + setting.Name); err != nil {
			return err
		}
		if err := l.disk.restore(setting); err != nil { // as where the kernel's settings are read-only
			l.warn("settings", "%v", err)
		}
	}
	kept, err := l.removeDirectories()
	if err != nil {
		return err
	}
	if len(replaced) > 0 {
		l.warn("files", "stay, as somebody has changed them since the join: %s", strings.Join(replaced, ", "))
	}
	if len(kept) > 0 {
		l.warn("files", "stay, as there is something in them that no join made: %s", strings.Join(kept, ", "))
	}
	l.done("files", "%d removed", len(l.ledger.Files)-len(replaced))
	return l.forget()
}

// removeDirectories does so from the innermost on, and returns those that have something in them.
func (l *leaving) removeDirectories() (kept []string, err error) {
	directories := slices.Clone(l.ledger.Directories)
	slices.SortFunc(directories, func(a, b string) int { return strings.Compare(b, a) })
	for _, path := range directories {
		if path == dataDir || strings.HasPrefix(dataDir, path+"/") {
			continue // the ledger is in it
		}
		gone, err := l.disk.removeDir(path)
		if err != nil {
			return nil, err
		}
		if !gone {
			kept = append(kept, path)
		}
	}
	return kept, nil
}

// forget removes the ledger, and its directory if nothing else is in it.
func (h *Host) forget() error {
	if err := h.disk.remove(LedgerPath); err != nil {
		return err
	}
	if _, err := os.Lstat(h.disk.at(dataDir)); err != nil {
		return nil //nolint:nilerr // it is not there, as it should be
	}
	_, err := h.disk.removeDir(dataDir)
	return err
}
