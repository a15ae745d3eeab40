// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/filestore"
)

// Snapshots that are marked go with a cluster, and so do snapshots that never were whole.
func TestSnapshotsOfAClusterThatIsGone(t *testing.T) {
	const system, goes, half, stays, others = "fs-00000000000000001", "fssnap-00000000000000001", "fssnap-00000000000000002", "fssnap-00000000000000003", "fssnap-00000000000000004"
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	root := filepath.Join(t.TempDir(), "filesystems")
	files := filestore.New(root)
	if err := errors.Join(os.MkdirAll(root, 0o700), files.Ensure(system)); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]v1alpha1.VolumeSnapshotSpec{
		goes: {ClusterName: "blue", DeleteWithCluster: true}, half: {ClusterName: "blue"}, stays: {ClusterName: "blue"}, others: {ClusterName: "green", DeleteWithCluster: true},
	} {
		spec.FileSystemID = system
		err := api.Create(t.Context(), &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.FinalizerVolumeSnapshot}}, Spec: spec})
		if err == nil && name != half {
			err = os.MkdirAll(filepath.Join(root, system, "snapshots", name, "data"), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // once more, as after a crash
		if err := removeSnapshots(t.Context(), api, files, "blue"); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, system, "snapshots"))
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := []string{stays, others}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v; want %q", left, err, want)
	}
	list := &v1alpha1.VolumeSnapshotList{}
	if err := api.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("%d objects are left: %v", len(list.Items), err)
	}
}
