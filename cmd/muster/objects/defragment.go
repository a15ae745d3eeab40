// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/etcdspace"
)

// NewDefragmentCommand returns "muster defragment".
func NewDefragmentCommand(o *terminal.Options) *cobra.Command {
	return (&defragmentCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval, space: spaceOf, management: newManagementEtcd}).command()
}

// defragmentCommand holds the flags of "muster defragment".
type defragmentCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration
	space    func(ctx context.Context, o *terminal.Options, namespace string) (etcdspace.Space, error)

	management func(o *terminal.Options) (managementEtcd, error)

	cluster      string
	ofManagement bool
	dryRun       bool
	timeout      time.Duration
}

func (d *defragmentCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "defragment",
		Short: "Give back the space of a cluster's etcd that is not in use",
		Long: `Give back the space of a cluster's etcd that is not in use. The file of etcd never shrinks by itself, and an etcd whose file has
reached its quota raises the alarm NOSPACE and takes deletions alone.

  without the alarm  the file is defragmented if more than 200 MiB of it are not in use, and more than half unless it is nearly full; otherwise nothing is done
  with the alarm     the history is compacted, the file defragmented, and the alarm disarmed; lists in pages and watches begin anew

While etcd copies what is in use it answers nobody, so neither does the API of the cluster. How long that takes at most is told before.
It is done by an Update of the type EtcdDefragmentation: interrupted, this command leaves it to the service. The management plane's own
etcd (--management) may have no room for an Update: the service frees it while this command waits.`,
		Example: `  # What there is, and what it would take
  muster defragment --dry-run

  muster defragment --cluster blue

  # The etcd of Clusters, node groups, machines and IAM
  muster defragment --management`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	kinds.AddClusterFlag(cmd, d.Options, d.planes, &d.cluster, "cluster whose etcd is meant (default: the only one there is)")
	flags.BoolVar(&d.ofManagement, "management", false, "the management plane's etcd is meant")
	cmd.MarkFlagsMutuallyExclusive("cluster", "management")
	flags.BoolVar(&d.dryRun, "dry-run", false, "tell alone what there is, and what it would take")
	flags.DurationVar(&d.timeout, "timeout", 10*time.Minute, "how long to wait for its end")
	return cmd
}

func (d *defragmentCommand) run(ctx context.Context) error {
	if d.ofManagement {
		return d.runManagement(ctx)
	}
	p, err := d.planes.Management(d.Options)
	if err != nil {
		return err
	}
	name, err := p.Cluster(ctx, d.cluster)
	if err != nil {
		return err
	}
	space, err := d.space(ctx, d.Options, v1alpha1.ClusterSlug(name))
	if err != nil {
		return err
	}
	fmt.Fprintln(d.Out, "etcd of cluster "+name+": "+space.Forecast())
	if d.dryRun || !space.NoSpace && !space.Worth() {
		return nil
	}
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterSlug(name), GenerateName: "defragment-"}, Spec: v1alpha1.UpdateSpec{
		ClusterName: name, Type: v1alpha1.UpdateEtcd, Change: v1alpha1.UpdateChange{DefragmentEtcd: true},
	}}
	if err := p.Within(ctx, func(ctx context.Context) error { return p.Create(ctx, u) }); err != nil {
		return err
	}
	return d.wait(ctx, p, u)
}

// managementEtcd is what the service says and does of the management plane's etcd.
type managementEtcd interface {
	Status(ctx context.Context) (servicestatus.Status, error)
	FreeManagementEtcd(ctx context.Context) (done string, err error)
}

func newManagementEtcd(o *terminal.Options) (managementEtcd, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return nil, err
	}
	return controlsocket.NewClient(dir), nil
}

func (d *defragmentCommand) runManagement(ctx context.Context) error {
	service, err := d.management(d.Options)
	if err != nil {
		return err
	}
	status, err := service.Status(ctx)
	if err != nil {
		return fmt.Errorf("asking for the space of etcd: %w", err)
	}
	space := status.Etcd
	if space.Quota == 0 {
		return errors.New("the management plane's etcd has not said yet how much space it has: see muster status, and try again")
	}
	fmt.Fprintln(d.Out, "etcd of the management plane: "+space.Forecast())
	if d.dryRun || !space.NoSpace && !space.Worth() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	done, err := service.FreeManagementEtcd(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("--timeout: etcd is not done after %s; try again, and see how much space it has: muster defragment --management --dry-run", d.timeout)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(d.Out, done)
	return nil
}

// wait returns when an update has ended, and says how.
func (d *defragmentCommand) wait(ctx context.Context, p *kinds.Client, u *v1alpha1.Update) error {
	err := terminal.Poll(ctx, d.timeout, d.interval, func(ctx context.Context) (bool, error) {
		if err := p.ReadKey(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return false, err
		}
		return u.Phase() != v1alpha1.UpdateInProgress, nil
	})
	switch {
	case errors.Is(err, terminal.ErrTimeUp):
		return fmt.Errorf("update %s: %w; it goes on: muster get updates (%s)", u.Name, err, terminal.Or(u.Status.Message, "it has not begun"))
	case err != nil:
		return err
	case u.Phase() != v1alpha1.UpdateSuccessful && len(u.Status.Errors) > 0:
		return fmt.Errorf("update %s: %s", u.Name, u.Status.Errors[0].ErrorMessage)
	case u.Phase() != v1alpha1.UpdateSuccessful:
		return fmt.Errorf("update %s is %s", u.Name, u.Phase())
	}
	fmt.Fprintln(d.Out, u.Status.Message)
	return nil
}

// spaceOf asks the service for the space of the etcd of a cluster, by its namespace.
func spaceOf(ctx context.Context, o *terminal.Options, namespace string) (etcdspace.Space, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return etcdspace.Space{}, err
	}
	status, err := controlsocket.NewClient(dir).Status(ctx)
	if err != nil {
		return etcdspace.Space{}, fmt.Errorf("asking for the space of etcd: %w", err)
	}
	cluster, _ := status.In(namespace)
	if cluster.Etcd.Quota == 0 {
		return etcdspace.Space{}, errors.New("the etcd of the cluster has not said yet how much space it has: see muster status, and try again")
	}
	return cluster.Etcd, nil
}
