// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	provisioning "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"muster.dev/muster/internal/storage/efs"
)

const (
	// firstPause and longestPause are between attempts at a claim or volume that failed.
	firstPause, longestPause = 500 * time.Millisecond, time.Minute
	// callTime is how long one attempt may take.
	callTime = time.Minute
	// copyTime is how long one may take that copies a volume, which may have a million files.
	copyTime = 30 * time.Minute
)

// reasonCopying is that of the Events that say how far a copy has come.
const reasonCopying = "Copying"

// provision makes volumes for claims, and removes those that are released, until the context ends. Which claims, and in
// which order with their PersistentVolumes, upstream's library decides, as it does for the external provisioner.
func provision(ctx context.Context, cluster kubernetes.Interface, snapshots dynamic.Interface, volumes *controller) {
	recorder, stop := events(ctx, cluster)
	defer stop()
	provisioning.NewProvisionController(ctx, cluster, efs.Driver, &provisioner{volumes, cluster, snapshots, recorder},
		provisioning.LeaderElection(false), // the service is alone
		provisioning.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstPause, longestPause)),
		provisioning.FailedProvisionThreshold(0), // a claim is tried for as long as it is there
		provisioning.FailedDeleteThreshold(0),
		provisioning.ProvisionTimeout(copyTime),
		provisioning.DeletionTimeout(callTime),
	).Run(ctx)
}

// provisioner turns claims into calls of CSI.
type provisioner struct {
	volumes   *controller
	cluster   kubernetes.Interface
	snapshots dynamic.Interface
	events    record.EventRecorder
}

// Provision implements [provisioning.Provisioner].
func (p *provisioner) Provision(ctx context.Context, options provisioning.ProvisionOptions) (*corev1.PersistentVolume, provisioning.ProvisioningState, error) {
	claim := options.PVC
	if claim.Spec.Selector != nil {
		return nil, provisioning.ProvisioningFinished, errors.New("a claim with a selector takes a volume that is there: leave selector out for a new one")
	}
	request := &csi.CreateVolumeRequest{
		Name: options.PVName, Parameters: options.StorageClass.Parameters,
		VolumeCapabilities: capabilities(claim, options.StorageClass.MountOptions),
		CapacityRange:      &csi.CapacityRange{RequiredBytes: claim.Spec.Resources.Requests.Storage().Value()},
	}
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		content, err := p.content(ctx, claim)
		if err != nil {
			// A copy that an earlier attempt finished, while the source existed, is the claim's. An unfinished copy
			// must not be left.
			made, left := p.volumes.abandonCopy(ctx, options.PVName)
			switch {
			case left != nil:
				return nil, provisioning.ProvisioningInBackground, errors.New(status.Convert(left).Message())
			case !made.whole || copiedFrom(made.point) == "":
				return nil, provisioning.ProvisioningFinished, err
			}
			content = made.content()
		}
		request.VolumeContentSource = content
	}
	ctx = telling(ctx, func(message string) { p.events.Event(claim, corev1.EventTypeNormal, reasonCopying, message) })
	response, err := p.volumes.CreateVolume(ctx, request)
	if err != nil {
		return nil, stateOf(err), errors.New(status.Convert(err).Message())
	}
	policy := corev1.PersistentVolumeReclaimDelete
	if options.StorageClass.ReclaimPolicy != nil {
		policy = *options.StorageClass.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(response.GetVolume().GetCapacityBytes(), resource.BinarySI)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: efs.Driver, VolumeHandle: response.GetVolume().GetVolumeId(), VolumeAttributes: response.GetVolume().GetVolumeContext(),
			}},
		},
	}, provisioning.ProvisioningFinished, nil
}

// content is what the volume of a claim is to have in it. The API server has both fields say the same, unless one of
// them is left out.
func (p *provisioner) content(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*csi.VolumeContentSource, error) {
	source := corev1.TypedObjectReference{}
	if ref := claim.Spec.DataSourceRef; ref != nil {
		source = *ref
	} else if ref := claim.Spec.DataSource; ref != nil {
		source = corev1.TypedObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
	group, here := "", source.Namespace == nil || *source.Namespace == claim.Namespace
	if source.APIGroup != nil {
		group = *source.APIGroup
	}
	switch {
	case here && group == snapshotGroup && source.Kind == snapshotKind:
		id, err := restored(ctx, p.snapshots, claim.Namespace, source.Name)
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}, err
	case here && group == "" && source.Kind == "PersistentVolumeClaim":
		handle, err := p.copied(ctx, claim, source.Name)
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: handle}}}, err
	}
	return nil, fmt.Errorf("a volume is made as a copy of the volume of a PersistentVolumeClaim, or of a VolumeSnapshot (%s), of namespace %s, not of a %s of another group or namespace: change dataSource or leave it out", snapshotGroup, claim.Namespace, source.Kind)
}

// copied is the volume of the claim that a claim is to be a copy of.
func (p *provisioner) copied(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (handle string, err error) {
	from, err := p.cluster.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("the claim that dataSource names: %w", err)
	}
	if from.Status.Phase != corev1.ClaimBound || from.Spec.VolumeName == "" {
		return "", fmt.Errorf("claim %s, which dataSource names, is not bound yet", from.Name)
	}
	volume, err := p.cluster.CoreV1().PersistentVolumes().Get(ctx, from.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("the volume of claim %s: %w", from.Name, err)
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != efs.Driver || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != from.UID {
		return "", fmt.Errorf("the volume of claim %s, which dataSource names, is of another driver: only those of %s are copied", from.Name, efs.Driver)
	}
	return volume.Spec.CSI.VolumeHandle, nil
}

// stateOf says whether something may be left of a call that failed, and whether the scheduler is to look for a node
// again.
func stateOf(err error) provisioning.ProvisioningState {
	switch status.Code(err) { //nolint:exhaustive // the others may have been cut short
	case codes.InvalidArgument, codes.OutOfRange, codes.AlreadyExists, codes.NotFound, codes.FailedPrecondition:
		return provisioning.ProvisioningFinished
	case codes.ResourceExhausted:
		return provisioning.ProvisioningReschedule // the scheduler, if it chose the node, waits until the capacity told is enough
	}
	return provisioning.ProvisioningInBackground
}

// SupportsBlock implements [provisioning.BlockProvisioner]: the controller says itself what it cannot.
func (p *provisioner) SupportsBlock(context.Context) bool { return true }

// Delete implements [provisioning.Provisioner].
func (p *provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != efs.Driver {
		return &provisioning.IgnoredError{Reason: "the volume is of another driver"}
	}
	if _, err := p.volumes.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle}); err != nil {
		return errors.New(status.Convert(err).Message())
	}
	return nil
}

// capabilities are what a claim asks of its volume.
func capabilities(claim *corev1.PersistentVolumeClaim, options []string) []*csi.VolumeCapability {
	modes := map[corev1.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
		corev1.ReadWriteOnce:    csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
		corev1.ReadWriteOncePod: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		corev1.ReadOnlyMany:     csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		corev1.ReadWriteMany:    csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	}
	all := make([]*csi.VolumeCapability, 0, len(claim.Spec.AccessModes))
	for _, mode := range claim.Spec.AccessModes {
		one := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: modes[mode]}}
		if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock {
			one.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		} else {
			one.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: options}}
		}
		all = append(all, one)
	}
	return all
}
