// SPDX-License-Identifier: Apache-2.0

package takedown

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/machine/balancerstore"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/memorylimit"
	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// Cluster is one cluster of an account that goes on.
type Cluster struct {
	Account component.Account
	// Name of the cluster, and its directory.
	Name      string
	Dir       statedir.Cluster
	Balancers *balancerstore.Store
	// Runner ends the cluster's processes, which it did not start.
	Runner runner.Runner
	// End ends what the service does for the cluster. The cluster's processes go on.
	End func(context.Context) error
	Log *slog.Logger
}

// Remove ends the cluster and removes everything of it on this host. It can be cut short at any point and called again.
func (c Cluster) Remove(ctx context.Context) error {
	if _, err := os.Stat(string(c.Dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := atomicfile.Write(c.Dir.Deleting(), nil, 0o600); err != nil {
		return fmt.Errorf("beginning the removal of cluster %s: %w", c.Name, err)
	}
	if err := c.End(ctx); err != nil {
		return err
	}
	prefix := component.ProcessPrefix(c.Dir.Namespace())
	for _, step := range stopOrder {
		if _, err := c.Runner.Stop(ctx, step.grace, func(process string) bool { return strings.HasPrefix(process, prefix) && step.choose(process) }); err != nil {
			return fmt.Errorf("stopping %s of cluster %s: %w", step.what, c.Name, err)
		}
	}
	if err := memorylimit.RemoveProcesses(c.Account.State, prefix); err != nil {
		return fmt.Errorf("removing control groups of cluster %s: %w", c.Name, err)
	}
	if err := local.DiscardCluster(ctx, c.Account.State, c.Name); err != nil {
		return err
	}
	if err := c.Balancers.RemoveCluster(ctx, c.Account, c.Name); err != nil {
		return err
	}
	if err := networkrecord.RemoveEndpoints(c.Account.State, c.Name); err != nil {
		return err
	}
	for _, socket := range []string{
		c.Account.State.EgressSocket(c.Dir.Namespace()), c.Account.State.WebhookSocket(c.Dir.Namespace()), c.Account.State.ControlPlaneSocket(c.Dir.Namespace()), c.Account.State.TokenSocket(c.Dir.Namespace()),
		statedir.AccountAPIsSocket(c.Account.State, c.Dir.Namespace()),
		c.Dir.FrontSocket(), c.Dir.KarpenterSocket(), c.Dir.KarpenterProxySocket(),
	} {
		if err := socketdir.Remove(socket); err != nil {
			return fmt.Errorf("removing a socket of cluster %s: %w", c.Name, err)
		}
	}
	if err := addonfiles.New(hostagent.New(hostagent.Config{State: c.Account.State}), c.Dir.Namespace(), c.Account.BinDir).UnloadAll(ctx); err != nil {
		return fmt.Errorf("removing images of the add-ons of cluster %s: %w", c.Name, err)
	}
	if err := removeFiles(c.Dir); err != nil {
		return fmt.Errorf("removing the files of cluster %s: %w", c.Name, err)
	}
	c.Log.Info("a cluster was removed", "cluster", c.Dir.Namespace())
	return nil
}

// removeFiles removes a cluster's directory. The record goes first, and the file that says so last: at no moment is
// there a part of a cluster that would be run, nor a file of users that another cluster could get.
func removeFiles(dir statedir.Cluster) error {
	if err := os.Remove(dir.Record()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if path := filepath.Join(string(dir), entry.Name()); path != dir.Deleting() && path != dir.IDs() {
			if err := removetree.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(string(dir))
}
