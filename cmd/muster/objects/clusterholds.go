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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/cmd/muster/plane"
	"muster.dev/muster/internal/cluster/efs"
)

// holds is what the Services and claims of a cluster hold, which goes with it.
type holds struct {
	services, claims []string // namespace/name
	volumes          []string // the access points of volumes that are to be deleted with their claims
	unseen           error    // why the cluster cannot be asked
}

// lookInto asks a cluster what it holds. One that has never run holds nothing.
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
	return held(services.Items, claims.Items, volumes.Items), nil
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
		if v.Spec.CSI == nil || v.Spec.CSI.Driver != efs.Driver || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		if handle, err := efs.ParseHandle(v.Spec.CSI.VolumeHandle); err == nil && handle.AccessPointID != "" {
			h.volumes = append(h.volumes, handle.AccessPointID)
		}
	}
	slices.Sort(h.services)
	slices.Sort(h.claims)
	return h
}

// refuse says what would go with the cluster; nil if nothing would.
func (h holds) refuse(cluster string) error {
	switch {
	case h.unseen != nil:
		return fmt.Errorf("cluster %q cannot be asked what its Services and claims hold: delete it all the same with --cascade; the data of its volumes then stays: %w", cluster, h.unseen)
	case len(h.services)+len(h.claims) == 0:
		return nil
	}
	var what []string
	if n := len(h.services); n > 0 {
		what = append(what, console.Count(n, "load balancer", "load balancers")+" of Services ("+few(h.services)+")")
	}
	if n := len(h.claims); n > 0 {
		what = append(what, console.Count(n, "volume", "volumes")+" of claims ("+few(h.claims)+")")
	}
	return fmt.Errorf("cluster %q holds %s: delete these first, or all together with --cascade; volumes with the reclaim policy Retain stay", cluster, strings.Join(what, " and "))
}

// few lists names, five at most.
func few(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(names, ", ")
}

// doom marks the volumes of a cluster that are to be deleted with their claims: the service removes their data when the cluster is gone.
func (d *deleteClusterCommand) doom(ctx context.Context, p *plane.Client, c doomed) error {
	if c.holds.unseen != nil {
		_, _ = fmt.Fprintf(d.Err, "Warning: cluster %s cannot be asked what its claims hold, so the data of its volumes stays: %v\n", c.Spec.Name, c.holds.unseen)
	}
	for _, id := range c.holds.volumes {
		point := &v1alpha1.AccessPoint{}
		err := p.Read(ctx, id, point)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || point.Spec.ClusterName != c.Spec.Name || point.Spec.DeleteWithCluster {
			continue
		}
		before := point.DeepCopy()
		point.Spec.DeleteWithCluster = true
		if err := p.Within(ctx, func(ctx context.Context) error { return p.Patch(ctx, point, client.MergeFrom(before)) }); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
