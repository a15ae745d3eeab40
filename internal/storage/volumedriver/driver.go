// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/platform/lograte"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// Machines are the machines of this host, as far as their kubelets are answered.
type Machines interface {
	// Boot names the boot of a machine that runs: it is another one after each reboot. False if it does not run.
	Boot(id string) (string, bool)
	// Listen makes a unix socket that root on the machine reaches at a path.
	Listen(id, socket string) (net.Listener, error)
}

// Config configures the driver of a cluster.
type Config struct {
	// ClusterName is the spec.name of the cluster.
	ClusterName string
	// VPCID is the cluster's VPC: a file system with mount targets is mounted in theirs only.
	VPCID string
	// Inventory lists the Machines of the management plane; it may be a cache.
	Inventory client.Reader
	// Management is the management plane, without a cache.
	Management client.Client
	// Cluster is the cluster itself, without a cache.
	Cluster kubernetes.Interface
	// Snapshots is the cluster too, for the kinds of snapshots, which it may not have.
	Snapshots dynamic.Interface
	// Machines have kubelets, and Mounts has volumes mounted on the same machines.
	Machines Machines
	Mounts   volumemount.Mounts
	// Files are the file systems of the account, the same for all its clusters.
	Files *filestore.Store
	// DefaultFileSystem is the id of the account's own file system, which has volumes of all clusters and so is mounted
	// by access points only.
	DefaultFileSystem string
	Log               *slog.Logger
}

// Driver is the driver of a cluster.
type Driver struct {
	Config
	controller *controller
}

// New makes a driver that does nothing yet.
func New(c Config) (*Driver, error) {
	if c.ClusterName == "" || c.Inventory == nil || c.Management == nil || c.Cluster == nil || c.Snapshots == nil || c.Machines == nil || c.Mounts == nil || c.Files == nil || c.Log == nil {
		return nil, errors.New("the volume driver needs a cluster, the management plane, machines, file systems and a log")
	}
	return &Driver{Config: c, controller: &controller{
		clusterName: c.ClusterName, reach: c.reach(), management: c.Management, files: c.Files, mounts: c.Mounts,
	}}, nil
}

func (c Config) reach() reach {
	return reach{vpcID: c.VPCID, defaultFileSystem: c.DefaultFileSystem}
}

// Identity says which driver it is: the identity service of CSI.
func (d *Driver) Identity() csi.IdentityServer { return identity{} }

// Controller makes, expands and removes volumes: the controller service of CSI, which the driver itself calls for
// claims.
func (d *Driver) Controller() csi.ControllerServer { return d.controller }

// Node mounts volumes on a machine that is the Node of a name: the node service of CSI.
func (d *Driver) Node(machine, name string) csi.NodeServer { return d.node(machine, name, &usages{}) }

func (d *Driver) node(machine, name string, counted *usages) *node {
	return &node{
		machine: machine, name: name, clusterName: d.ClusterName, reach: d.reach(), management: d.Management,
		cluster: d.Cluster, mounts: d.Mounts, files: d.Files, usages: counted, log: lograte.Logger(d.Log),
	}
}

// Start provisions and expands volumes, makes snapshots and answers kubelets until the context ends.
func (d *Driver) Start(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(d.Log.Handler()))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { provision(ctx, d.Cluster, d.Snapshots, d.controller) })
	group.Go(func() { expand(ctx, d.Cluster, d.controller) })
	group.Go(func() { d.snapshot(ctx) })
	group.Go(func() { d.check(ctx) })
	d.answer(ctx)
	return nil
}

// snapshot makes and removes the snapshots of VolumeSnapshotContents.
func (d *Driver) snapshot(ctx context.Context) {
	recorder, stop := events(ctx, d.Cluster)
	defer stop()
	(&snapshotter{cluster: d.Cluster, objects: d.Snapshots, clusterName: d.ClusterName, volumes: d.controller, events: recorder}).run(ctx)
}

// checkInterval is how often it is looked how much room the host's disk has, and for devices that nobody uses any more:
// those of machines that are gone, mostly. The others go when they are unmounted.
const checkInterval = 10 * time.Second

func (d *Driver) check(ctx context.Context) {
	recorder, stop := events(ctx, d.Cluster)
	defer stop()
	full, told := &pressure{cluster: d.Cluster, events: recorder}, capacity{d.Cluster}
	classes, err := classesChange(ctx, d.Cluster)
	if err != nil {
		d.Log.ErrorContext(ctx, "the capacity of a new StorageClass is told late", "error", err)
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	said := ""
	for {
		err := d.Mounts.Sweep(ctx, d.ClusterName)
		space, spaceErr := d.Files.Space()
		if spaceErr == nil {
			spaceErr = errors.Join(full.look(ctx, space), told.tell(ctx, space.Room()))
		}
		if err = errors.Join(err, spaceErr); err != nil && err.Error() != said && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "looking after volumes", "error", err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-classes:
		}
	}
}

// events records Events of a cluster's claims and snapshots.
func events(ctx context.Context, cluster kubernetes.Interface) (recorder record.EventRecorder, stop func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.CoreV1().Events(metav1.NamespaceAll)})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: efs.Driver}), broadcaster.Shutdown
}
