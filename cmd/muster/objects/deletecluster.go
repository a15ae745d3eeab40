// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/platform/shellquote"
)

// deleteClusterCommand holds the flags of "muster delete cluster".
type deleteClusterCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration

	cascade, wait, ignoreNotFound bool
	timeout                       time.Duration
}

func (d *deleteClusterCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster NAME...",
		Aliases: []string{"clusters"},
		Short:   "Delete clusters with everything that is theirs",
		Long: `Delete clusters: their control planes, what is stored in them, their keys and their contexts in your kubeconfigs. Nothing
of another cluster is touched, nor users, roles and networks of the account.

A cluster that has node groups, or whose Services and claims hold load balancers and volumes, or that has snapshots of volumes,
is refused, unless --cascade takes these along; volumes and snapshots with the policy Retain stay. So is one with deletion protection. The account itself goes with muster down --delete.`,
		Example: `  # A cluster without node groups
  muster delete cluster blue

  # With its node groups and their machines, load balancers, volumes and snapshots
  muster delete cluster blue --cascade`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: kinds.CompleteNames(d.Options, d.planes, kinds.Clusters(), 0),
		RunE:              func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&d.cascade, "cascade", false, "delete the node groups, Fargate profiles, load balancers, volumes and snapshots of the clusters, too")
	addDeleteFlags(cmd, &d.wait, &d.timeout, &d.ignoreNotFound)
	return cmd
}

// doomed is a cluster that is to be deleted, with its node groups.
type doomed struct {
	*v1alpha1.Cluster

	groups, profiles []client.Object
	holds            holds
	server           string // the address of the API server in kubeconfigs; empty if it has never run
}

func (d *deleteClusterCommand) run(ctx context.Context, names []string) error {
	if d.Cluster != "" {
		return terminal.UsageError{Err: errors.New("--cluster: give the clusters to delete as arguments")}
	}
	p, err := d.planes.Management(d.Options)
	if err != nil {
		return err
	}
	k := kinds.Clusters()
	objects, _, err := p.Objects(ctx, k)
	if err != nil {
		return err
	}
	found, missing := k.Choose(objects, names)
	if d.ignoreNotFound {
		missing = nil
	}
	clusters, err := d.look(ctx, p, found)
	if err != nil {
		return errors.Join(missing, err)
	}
	deadline := time.Now().Add(d.timeout)
	for _, cluster := range clusters {
		if err := d.doom(ctx, p, cluster); err != nil {
			return errors.Join(missing, err)
		}
	}
	groups, err := d.delete(ctx, p, clusters)
	if err == nil && d.wait && len(groups) > 0 {
		err = d.of(kinds.NodeGroups()).waitUntilGone(ctx, p, groups)
	}
	if err != nil {
		return errors.Join(missing, err)
	}
	for _, cluster := range clusters {
		if d.wait {
			if err := d.waitUntilGone(ctx, p, cluster.Cluster, max(time.Until(deadline).Round(time.Second), time.Second)); err != nil {
				return errors.Join(missing, err)
			}
		}
		if err := d.forget(cluster); err != nil {
			_, _ = fmt.Fprintf(d.Err, "Warning: %v\n", err)
		}
	}
	return missing
}

// of deletes objects of another kind with the same flags.
func (d *deleteClusterCommand) of(k kinds.Kind) *deleteCommand {
	return &deleteCommand{Options: d.Options, planes: d.planes, kind: k, interval: d.interval, wait: d.wait, timeout: d.timeout}
}

// look reads the node groups of clusters, and refuses all of the clusters if one of them may not be deleted.
func (d *deleteClusterCommand) look(ctx context.Context, p *kinds.Client, found []client.Object) ([]doomed, error) {
	var clusters []doomed
	var refused []error
	for _, object := range found {
		cluster := doomed{Cluster: object.(*v1alpha1.Cluster)} //nolint:forcetypeassert // it is from a list of clusters
		var err error
		if cluster.groups, _, err = p.Objects(ctx, kinds.NodeGroups(), client.InNamespace(cluster.Namespace)); err != nil {
			return nil, err
		}
		if cluster.profiles, _, err = p.Objects(ctx, kinds.FargateProfiles(), client.InNamespace(cluster.Namespace)); err != nil {
			return nil, err
		}
		if cluster.holds, err = d.lookInto(ctx, cluster.Cluster); err != nil {
			return nil, err
		}
		cluster.server = d.server(cluster.Cluster)
		clusters = append(clusters, cluster)
		if err := d.refuse(cluster); err != nil {
			refused = append(refused, err)
		}
	}
	return clusters, errors.Join(refused...)
}

// refuse says before anything is deleted what the management plane and the service would say afterwards.
func (d *deleteClusterCommand) refuse(c doomed) error {
	if c.Spec.DeletionProtection && c.DeletionTimestamp == nil {
		return fmt.Errorf("cluster %q has deletion protection enabled: switch it off first: "+
			`kubectl --context muster-management -n %s patch cluster %[2]s --type merge -p '{"spec":{"deletionProtection":false}}'`, c.Spec.Name, c.Name)
	}
	if d.cascade {
		return nil
	}
	return errors.Join(c.has(c.groups, "node group", "node groups"), c.has(c.profiles, "Fargate profile", "Fargate profiles"), c.holds.refuse(c.Spec.Name))
}

// has refuses to delete a cluster that has objects of a kind.
func (c doomed) has(objects []client.Object, one, many string) error {
	if len(objects) == 0 {
		return nil
	}
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, kinds.NameOf(object))
	}
	return fmt.Errorf("cluster %q has %s (%s): delete them first, or all together with --cascade",
		c.Spec.Name, terminal.Count(len(names), one, many), strings.Join(names, ", "))
}

// delete deletes clusters and then their node groups, which it returns: of a cluster that is refused now nothing is
// touched. The service keeps each until its node groups have gone, and ends their machines without regard to disruption
// budgets, as those of a cluster that ends.
func (d *deleteClusterCommand) delete(ctx context.Context, p *kinds.Client, clusters []doomed) ([]client.Object, error) {
	var groups []client.Object
	for _, cluster := range clusters {
		if err := d.of(kinds.Clusters()).delete(ctx, p, cluster.Cluster); err != nil {
			return nil, err
		}
		for _, profile := range cluster.profiles {
			if err := d.of(kinds.FargateProfiles()).delete(ctx, p, profile); err != nil {
				return nil, err
			}
		}
		for _, group := range cluster.groups {
			if err := d.of(kinds.NodeGroups()).delete(ctx, p, group); err != nil {
				return nil, err
			}
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// waitUntilGone returns when a cluster and its namespace are gone.
func (d *deleteClusterCommand) waitUntilGone(ctx context.Context, p *kinds.Client, cluster *v1alpha1.Cluster, timeout time.Duration) error {
	progress := terminal.NewWaitProgress(d.Err)
	defer progress.End()
	state := ""
	err := terminal.Poll(ctx, timeout, d.interval, func(ctx context.Context) (bool, error) {
		var there v1alpha1.Cluster
		err := p.ReadKey(ctx, client.ObjectKeyFromObject(cluster), &there)
		switch {
		case err == nil && there.UID != cluster.UID: // another one of that name has been made since
			return true, nil
		case err == nil:
			state = kinds.ClusterState(&there)
		case !apierrors.IsNotFound(err):
			return false, err
		default:
			if err := p.Read(ctx, cluster.Namespace, &corev1.Namespace{}); err != nil {
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			}
			state = "cluster " + cluster.Spec.Name + ": its namespace " + cluster.Namespace + " is being removed"
		}
		progress.Show(state)
		return false, nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		progress.End()
		return fmt.Errorf("%s: %w; the deletion goes on: muster get clusters", terminal.Or(state, "deletion"), err)
	}
	return err
}

// server is the address under which kubeconfigs know a cluster.
func (d *deleteClusterCommand) server(cluster *v1alpha1.Cluster) string {
	dir, err := d.Open()
	if err != nil {
		return cluster.Status.Endpoint
	}
	config, err := clientcmd.LoadFromFile(dir.Cluster(cluster.Namespace).Kubeconfig())
	if err != nil {
		return cluster.Status.Endpoint
	}
	for _, entry := range config.Clusters {
		return entry.Server
	}
	return cluster.Status.Endpoint
}

// forget removes the contexts of a cluster that is gone, or going, from the kubeconfigs that they were added to.
func (d *deleteClusterCommand) forget(cluster doomed) error {
	dir, err := d.Open()
	if err != nil {
		return err
	}
	if err := tools.ForgetCluster(d.Options, dir, cluster.Spec.Name, cluster.server); err != nil {
		return fmt.Errorf("removing the contexts of cluster %s (kubectl config delete-context %s does it): %w", cluster.Spec.Name, shellquote.Quote(cluster.Spec.Name), err)
	}
	return nil
}
