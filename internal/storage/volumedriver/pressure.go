// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
)

// reasonDiskPressure is the reason of the Event that a claim gets when the host's disk begins to be full.
const reasonDiskPressure = "HostDiskPressure"

// pressure tells the claims of a cluster when the host's disk begins to be full: pods that write to their volumes are
// what fills it, and what fails then.
type pressure struct {
	cluster kubernetes.Interface
	events  record.EventRecorder
	told    bool
}

// look tells the claims, if there is pressure and they have not been told.
func (p *pressure) look(ctx context.Context, space filestore.Space) error {
	if space.Room() > 0 {
		p.told = false
		return nil
	}
	if p.told {
		return nil
	}
	volumes, err := p.cluster.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("telling claims that the host's disk is nearly full: %w", err)
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if v.Spec.CSI == nil || v.Spec.CSI.Driver != efs.Driver || v.Spec.ClaimRef == nil || v.Status.Phase != corev1.VolumeBound {
			continue
		}
		p.events.Eventf(v.Spec.ClaimRef, corev1.EventTypeWarning, reasonDiskPressure,
			"the host's disk has %d MiB and %d files left: writes to the volume fail when it has none; free some, or delete claims that nothing uses", space.Available>>20, space.FilesAvailable)
	}
	p.told = true
	return nil
}
