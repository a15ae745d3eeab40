// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/storage/efs"
)

// use is a pod's use of a volume.
type use struct{ readOnly bool }

// authorize looks for a pod of a Node that uses the volume with a handle. The cluster is asked, as it is now: the
// machine's word counts for nothing.
func authorize(ctx context.Context, cluster kubernetes.Interface, node, handle string) (use, error) {
	pods, err := cluster.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return use{}, status.Errorf(codes.Unavailable, "the pods of node %s: %v", node, err)
	}
	found, allReadOnly := false, true
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != node || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for j := range pod.Spec.Volumes {
			readOnly, ok, err := usesHandle(ctx, cluster, pod, &pod.Spec.Volumes[j], handle)
			if err != nil {
				return use{}, err
			}
			if ok {
				found, allReadOnly = true, allReadOnly && readOnly
			}
		}
	}
	if !found {
		return use{}, status.Errorf(codes.PermissionDenied, "no pod of node %s uses a claim that is bound to volume %s", node, handle)
	}
	return use{readOnly: allReadOnly}, nil
}

// usesHandle reports whether a volume of a pod is by a claim that is bound to the handle, and whether it may only be
// read.
func usesHandle(ctx context.Context, cluster kubernetes.Interface, pod *corev1.Pod, v *corev1.Volume, handle string) (readOnly, uses bool, err error) {
	var name string
	switch {
	case v.PersistentVolumeClaim != nil:
		name, readOnly = v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly
	case v.Ephemeral != nil:
		name = pod.Name + "-" + v.Name
	default:
		return false, false, nil
	}
	// A claim that does not exist is bound to nothing. It must not be an error: anybody who may make a pod can name a
	// node and a claim that does not exist, and would keep the volumes of all pods from that node.
	claim, err := cluster.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, status.Errorf(codes.Unavailable, "claim %s of pod %s: %v", name, pod.Name, err)
	}
	if v.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) || claim.Spec.VolumeName == "" {
		return false, false, nil
	}
	volume, err := cluster.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, status.Errorf(codes.Unavailable, "volume %s of claim %s: %v", claim.Spec.VolumeName, name, err)
	}
	source, bound := volume.Spec.CSI, volume.Spec.ClaimRef
	if source == nil || source.Driver != efs.Driver || source.VolumeHandle != handle || bound == nil || bound.UID != claim.UID {
		return false, false, nil
	}
	onlyRead := !slices.ContainsFunc(volume.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
	return readOnly || source.ReadOnly || onlyRead, true, nil
}

// describe names a machine and its node in messages.
func describe(machine, node string) string { return fmt.Sprintf("machine %s (node %s)", machine, node) }
