// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/storage/efs"
)

// holds is what the Services and claims of a cluster hold, which goes with it.
type holds struct {
	services, claims []string // namespace/name
	snapshots        []string // namespace/name of VolumeSnapshots
	volumes          []string // the access points of volumes that are to be deleted with their claims
	doomed           []string // the snapshots that are to be deleted with their VolumeSnapshots
	keptVolumes      []string // the access points of volumes that are retained
	keptSnapshots    []string // the snapshots that are retained
	unseen           error    // why the cluster cannot be asked
}

// lookInto asks a cluster what it holds. A cluster without a kubeconfig has never run and holds nothing.
func (d *deleteClusterCommand) lookInto(ctx context.Context, cluster *v1alpha1.Cluster) (holds, error) {
	dir, err := d.Open()
	if err != nil {
		return holds{}, err
	}
	if _, err := os.Stat(dir.Cluster(cluster.Namespace).Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
		return holds{}, nil
	}
	options := *d.Options
	options.Cluster = cluster.Spec.Name
	p, err := d.planes.Cluster(&options)
	if err != nil {
		return holds{unseen: err}, nil //nolint:nilerr // it is told as what was not seen
	}
	var services corev1.ServiceList
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	for _, list := range []client.ObjectList{&services, &claims, &volumes} {
		if err := p.ReadAll(ctx, list); err != nil {
			return holds{unseen: err}, nil //nolint:nilerr // as above
		}
	}
	contents := &unstructured.UnstructuredList{}
	contents.SetGroupVersionKind(kinds.SnapshotContents())
	if err := p.ReadAll(ctx, contents); err != nil && !apierrors.IsNotFound(err) { // the cluster may not have the kind
		return holds{unseen: err}, nil
	}
	h := held(services.Items, claims.Items, volumes.Items)
	h.addSnapshots(cluster.Spec.Name, contents.Items)
	return h, nil
}

// held says what Services, claims and volumes hold.
func held(services []corev1.Service, claims []corev1.PersistentVolumeClaim, volumes []corev1.PersistentVolume) holds {
	var h holds
	for i := range services {
		if s := &services[i]; s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			h.services = append(h.services, s.Namespace+"/"+s.Name)
		}
	}
	for i := range claims {
		if c := &claims[i]; c.Spec.VolumeName != "" {
			h.claims = append(h.claims, c.Namespace+"/"+c.Name)
		}
	}
	for i := range volumes {
		v := &volumes[i]
		if v.Spec.CSI == nil || v.Spec.CSI.Driver != efs.Driver {
			continue
		}
		handle, err := efs.ParseHandle(v.Spec.CSI.VolumeHandle)
		switch {
		case err != nil || handle.AccessPointID == "":
		case v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
			h.volumes = append(h.volumes, handle.AccessPointID)
		default:
			h.keptVolumes = append(h.keptVolumes, handle.AccessPointID)
		}
	}
	slices.Sort(h.services)
	slices.Sort(h.claims)
	return h
}

// addSnapshots adds the snapshots that contents of a cluster hold. The content of a new snapshot may have no handle
// yet; the snapshot's id is computed from the VolumeSnapshot then.
func (h *holds) addSnapshots(cluster string, contents []unstructured.Unstructured) {
	for i := range contents {
		at := func(path ...string) string {
			text, _, _ := unstructured.NestedString(contents[i].Object, path...)
			return text
		}
		if at("spec", "driver") != efs.Driver {
			continue
		}
		id := at("status", "snapshotHandle")
		if id == "" && at("spec", "source", "volumeHandle") != "" {
			id = v1alpha1.VolumeSnapshotID(cluster, efs.SnapshotName(at("spec", "volumeSnapshotRef", "uid")))
		}
		if at("spec", "deletionPolicy") != "Delete" {
			h.keptSnapshots = append(h.keptSnapshots, id)
			continue
		}
		h.snapshots = append(h.snapshots, at("spec", "volumeSnapshotRef", "namespace")+"/"+at("spec", "volumeSnapshotRef", "name"))
		h.doomed = append(h.doomed, id)
	}
	none := func(id string) bool { return id == "" }
	h.doomed, h.keptSnapshots = slices.DeleteFunc(h.doomed, none), slices.DeleteFunc(h.keptSnapshots, none)
	slices.Sort(h.snapshots)
}

// refuse says what would go with the cluster; nil if nothing would.
func (h holds) refuse(cluster string) error {
	switch {
	case h.unseen != nil:
		return fmt.Errorf("cluster %q cannot be asked what its Services and claims hold: delete it all the same with --cascade; the data of its volumes then stays: %w", cluster, h.unseen)
	case len(h.services)+len(h.claims)+len(h.snapshots) == 0:
		return nil
	}
	var what []string
	if n := len(h.services); n > 0 {
		what = append(what, terminal.Count(n, "load balancer", "load balancers")+" of Services ("+few(h.services)+")")
	}
	if n := len(h.claims); n > 0 {
		what = append(what, terminal.Count(n, "volume", "volumes")+" of claims ("+few(h.claims)+")")
	}
	if n := len(h.snapshots); n > 0 {
		what = append(what, terminal.Count(n, "snapshot", "snapshots")+" of volumes ("+few(h.snapshots)+")")
	}
	all := what[len(what)-1]
	if others := what[:len(what)-1]; len(others) > 0 {
		all = strings.Join(others, ", ") + " and " + all
	}
	return fmt.Errorf("cluster %q holds %s: delete these first, or all together with --cascade; volumes with the reclaim policy Retain stay, and snapshots with that deletion policy", cluster, all)
}

// few lists names, five at most.
func few(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(names, ", ")
}

// doom marks the volumes of a cluster that are to be deleted with their claims, and the snapshots with their
// VolumeSnapshots: the service removes their data when the cluster is gone. Retained volumes and snapshots lose a mark
// that an earlier attempt made.
func (d *deleteClusterCommand) doom(ctx context.Context, p *kinds.Client, c doomed) error {
	if c.holds.unseen != nil {
		fate := "so the data of its volumes stays"
		if c.DeletionTimestamp != nil {
			fate = "so its volumes stay, but for those that an earlier attempt found"
		}
		_, _ = fmt.Fprintf(d.Err, "Warning: cluster %s cannot be asked what its claims hold, %s: %v\n", c.Spec.Name, fate, c.holds.unseen)
	}
	for _, one := range []struct {
		volumes, snapshots []string
		goes               bool
	}{{c.holds.volumes, c.holds.doomed, true}, {c.holds.keptVolumes, c.holds.keptSnapshots, false}} {
		for _, id := range one.volumes {
			point := &v1alpha1.AccessPoint{}
			if err := d.mark(ctx, p, c.Spec.Name, id, point, &point.Spec.ClusterName, &point.Spec.DeleteWithCluster, one.goes); err != nil {
				return err
			}
		}
		for _, id := range one.snapshots {
			snapshot := &v1alpha1.VolumeSnapshot{}
			if err := d.mark(ctx, p, c.Spec.Name, id, snapshot, &snapshot.Spec.ClusterName, &snapshot.Spec.DeleteWithCluster, one.goes); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark sets the mark of an object or takes it away, unless it is another cluster's. An object that is gone needs none.
func (d *deleteClusterCommand) mark(ctx context.Context, p *kinds.Client, cluster, name string, object client.Object, of *string, mark *bool, goes bool) error {
	if err := p.Read(ctx, name, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if *of != cluster || *mark == goes {
		return nil
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%s cannot be marked", name)
	}
	*mark = goes
	return client.IgnoreNotFound(p.Within(ctx, func(ctx context.Context) error { return p.Patch(ctx, object, client.MergeFrom(before)) }))
}
