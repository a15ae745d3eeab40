// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/internal/storage/efs"
)

// The kinds of snapshots, which a cluster has once somebody has installed them: the add-on snapshot-controller, mostly.
const (
	snapshotGroup    = "snapshot.storage.k8s.io"
	snapshotKind     = "VolumeSnapshot"
	snapshotContents = "volumesnapshotcontents"
)

var (
	snapshotVersion        = schema.GroupVersion{Group: snapshotGroup, Version: "v1"}
	snapshotsResource      = snapshotVersion.WithResource("volumesnapshots")
	snapshotClassResource  = snapshotVersion.WithResource("volumesnapshotclasses")
	snapshotContentsByName = snapshotVersion.WithResource(snapshotContents)
)

// volumeSnapshot is what the driver reads of a VolumeSnapshot.
type volumeSnapshot struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		BoundVolumeSnapshotContentName string         `json:"boundVolumeSnapshotContentName"`
		Error                          *snapshotError `json:"error"`
	} `json:"status"`
}

// snapshotContent is what the driver reads of a VolumeSnapshotContent.
type snapshotContent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		DeletionPolicy string `json:"deletionPolicy"`
		Driver         string `json:"driver"`
		Source         struct {
			VolumeHandle   string `json:"volumeHandle"`
			SnapshotHandle string `json:"snapshotHandle"`
		} `json:"source"`
		ClassName         string                 `json:"volumeSnapshotClassName"`
		VolumeSnapshotRef corev1.ObjectReference `json:"volumeSnapshotRef"`
	} `json:"spec"`
	Status snapshotContentStatus `json:"status"`
}

// snapshotContentStatus is the status that the driver writes.
type snapshotContentStatus struct {
	SnapshotHandle string         `json:"snapshotHandle,omitempty"`
	ReadyToUse     bool           `json:"readyToUse"`
	CreationTime   int64          `json:"creationTime,omitempty"` // in nanoseconds
	RestoreSize    int64          `json:"restoreSize,omitempty"`  // in bytes
	Error          *snapshotError `json:"error"`                  // null takes one away
}

type snapshotError struct {
	Time    *metav1.Time `json:"time,omitempty"`
	Message string       `json:"message,omitempty"`
}

// snapshotClass is what the driver reads of a VolumeSnapshotClass.
type snapshotClass struct {
	Parameters map[string]string `json:"parameters"`
}

// readSnapshot reads an object of the kinds of snapshots.
func readSnapshot(ctx context.Context, objects dynamic.ResourceInterface, name string, into any) error {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return fromUnstructured(object, into)
}

func fromUnstructured(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// restored is the snapshot that a claim is to be made from: the handle of the content that its VolumeSnapshot, of the
// same namespace, is bound to.
func restored(ctx context.Context, snapshots dynamic.Interface, namespace, name string) (handle string, err error) {
	var snapshot volumeSnapshot
	err = readSnapshot(ctx, snapshots.Resource(snapshotsResource).Namespace(namespace), name, &snapshot)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("there is no VolumeSnapshot %s, which dataSource names, in namespace %s", name, namespace)
	case err != nil:
		return "", fmt.Errorf("the VolumeSnapshot that dataSource names: %w", err)
	case snapshot.DeletionTimestamp != nil:
		return "", fmt.Errorf("VolumeSnapshot %s, which dataSource names, is being deleted", name)
	}
	notReady := fmt.Errorf("VolumeSnapshot %s, which dataSource names, is not ready to use yet", name)
	if snapshot.Status.Error != nil && snapshot.Status.Error.Message != "" {
		notReady = fmt.Errorf("%w: %s", notReady, snapshot.Status.Error.Message)
	}
	if snapshot.Status.BoundVolumeSnapshotContentName == "" {
		return "", notReady
	}
	var content snapshotContent
	if err := readSnapshot(ctx, snapshots.Resource(snapshotContentsByName), snapshot.Status.BoundVolumeSnapshotContentName, &content); err != nil {
		return "", fmt.Errorf("the content of VolumeSnapshot %s: %w", name, err)
	}
	switch {
	case content.Spec.VolumeSnapshotRef.UID != snapshot.UID || content.Spec.VolumeSnapshotRef.Namespace != namespace || content.Spec.VolumeSnapshotRef.Name != name:
		return "", fmt.Errorf("VolumeSnapshot %s is not bound to its content %s", name, content.Name)
	case content.Spec.Driver != efs.Driver:
		return "", fmt.Errorf("VolumeSnapshot %s, which dataSource names, is of driver %s: only those of %s are restored by this class", name, content.Spec.Driver, efs.Driver)
	case !content.Status.ReadyToUse:
		return "", notReady
	case content.Status.SnapshotHandle == "":
		return "", errors.New("the content of VolumeSnapshot " + name + " names no snapshot")
	}
	return content.Status.SnapshotHandle, nil
}
