// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/storage/efs"
)

const (
	// capacityNamespace is where the objects are: the scheduler reads those of all namespaces.
	capacityNamespace = metav1.NamespaceSystem
	// driverLabel is the external provisioner's, by which it finds the objects of a driver.
	driverLabel = "csi.storage.k8s.io/drivername"
)

// capacity tells the scheduler of a cluster how large a new volume may be, by one CSIStorageCapacity for each
// StorageClass of the driver: what upstream's external provisioner does beside a driver. Volumes are on one host, so
// the object of a class is about all nodes.
type capacity struct{ cluster kubernetes.Interface }

// tell has the objects say how much room there is. An object whose class is gone goes.
func (c capacity) tell(ctx context.Context, room int64) error {
	classes, err := c.cluster.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("telling the capacity of StorageClasses: %w", err)
	}
	objects := c.cluster.StorageV1().CSIStorageCapacities(capacityNamespace)
	listed, err := objects.List(ctx, metav1.ListOptions{LabelSelector: driverLabel + "=" + efs.Driver})
	if err != nil {
		return fmt.Errorf("telling the capacity of StorageClasses: %w", err)
	}
	left := map[string]*storagev1.CSIStorageCapacity{}
	for i := range listed.Items {
		left[listed.Items[i].Name] = &listed.Items[i]
	}
	told := resource.NewQuantity(rounded(room), resource.BinarySI)
	var errs []error
	for i := range classes.Items {
		class := &classes.Items[i]
		if class.Provisioner != efs.Driver {
			continue
		}
		name := capacityName(class.Name)
		is := left[name]
		delete(left, name)
		switch {
		case is == nil:
			_, err = objects.Create(ctx, &storagev1.CSIStorageCapacity{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{driverLabel: efs.Driver}},
				// Without a selector it would be about no node.
				NodeTopology: &metav1.LabelSelector{}, StorageClassName: class.Name, Capacity: told,
			}, metav1.CreateOptions{})
		case is.Capacity == nil || is.Capacity.Cmp(*told) != 0:
			is.Capacity = told
			_, err = objects.Update(ctx, is, metav1.UpdateOptions{})
		default:
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("telling the capacity of StorageClass %s: %w", class.Name, err))
		}
	}
	for name := range left {
		if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing the capacity of a StorageClass that is gone: %w", err))
		}
	}
	return errors.Join(errs...)
}

// capacityName is the name of the object of a class, whose own may be as long as a name can be.
func capacityName(class string) string {
	sum := sha256.Sum256([]byte(class))
	return fmt.Sprintf("efs-%x", sum[:8])
}

// roundedBits is how many digits are told of the room, in binary: at most a thirty-second of it is kept back. The
// host's disk is written all the time, and each object that changes has the scheduler look at pods again. More than
// there is would have it choose a node for a claim that is refused then.
const roundedBits = 6

func rounded(room int64) int64 {
	if room <= 0 {
		return 0
	}
	drop := max(bits.Len64(uint64(room))-roundedBits, 0)
	return room >> drop << drop
}

// classesChange sends when a StorageClass of the driver is made or goes, until the context ends.
func classesChange(ctx context.Context, cluster kubernetes.Interface) (<-chan struct{}, error) {
	changes := make(chan struct{}, 1)
	changed := func(object any) {
		if class, ok := object.(*storagev1.StorageClass); ok && class.Provisioner != efs.Driver {
			return
		}
		select {
		case changes <- struct{}{}:
		default: // nobody has looked since the one before
		}
	}
	factory := informers.NewSharedInformerFactory(cluster, 0)
	if _, err := factory.Storage().V1().StorageClasses().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed}); err != nil {
		return nil, fmt.Errorf("watching StorageClasses: %w", err)
	}
	factory.StartWithContext(ctx)
	return changes, nil
}
