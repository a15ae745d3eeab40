// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
)

const (
	goesPoint, staysPoint, greenPoint = "fsap-00000000000000001", "fsap-00000000000000002", "fsap-00000000000000003"
	goesSnapshot                      = "fssnap-00000000000000001"
	staysSnapshot                     = "fssnap-00000000000000002"
	greenSnapshot                     = "fssnap-00000000000000003"
	heldSystem                        = "fs-00000000000000001"
)

// claimed is a claim with its volume and the volume's access point.
func claimed(name, point, cluster string, policy corev1.PersistentVolumeReclaimPolicy) []client.Object {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	claim.Spec.VolumeName = "pvc-" + name
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + name}}
	volume.Spec.PersistentVolumeReclaimPolicy = policy
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com", VolumeHandle: heldSystem + "::" + point}
	return []client.Object{claim, volume, &v1alpha1.AccessPoint{
		ObjectMeta: metav1.ObjectMeta{Name: point}, Spec: v1alpha1.AccessPointSpec{FileSystemID: heldSystem, Path: "/" + point, ClusterName: cluster},
	}}
}

// snapshotted is the content of a VolumeSnapshot with its snapshot.
func snapshotted(name, id, cluster, policy string) []client.Object {
	content := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "content-" + name},
		"spec":     map[string]any{"driver": "efs.csi.aws.com", "deletionPolicy": policy, "volumeSnapshotRef": map[string]any{"namespace": "shop", "name": name}},
		"status":   map[string]any{"snapshotHandle": id},
	}}
	content.SetGroupVersionKind(kinds.SnapshotContents())
	return []client.Object{content, &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.VolumeSnapshotSpec{FileSystemID: heldSystem, ClusterName: cluster}}}
}

func TestDeleteClusterThatHolds(t *testing.T) {
	t.Parallel()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	all := slices.Concat(lone("Blue_2"), []client.Object{service}, claimed("goes", goesPoint, "Blue_2", corev1.PersistentVolumeReclaimDelete),
		snapshotted("goes", goesSnapshot, "Blue_2", "Delete"), snapshotted("stays", staysSnapshot, "Blue_2", "Retain"), snapshotted("green", greenSnapshot, "green", "Delete"),
		claimed("stays", staysPoint, "Blue_2", corev1.PersistentVolumeReclaimRetain), claimed("green", greenPoint, "green", corev1.PersistentVolumeReclaimDelete))
	b := clitest.NewBench(t, remover(t), all...)
	writeClusterKubeconfig(t, b, "Blue_2")
	want := `cluster "Blue_2" holds 1 load balancer of Services (shop/web), 3 volumes of claims (shop/goes, shop/green, shop/stays) and 2 snapshots of volumes (shop/goes, shop/green): delete these first, or all together with --cascade`
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "Blue_2"), want, false)
	if b.Out.Len() > 0 || b.Asked.Cluster != "Blue_2" {
		t.Errorf("printed %q, asked cluster %q", &b.Out, b.Asked.Cluster)
	}
	if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2", "--cascade"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{goesPoint: true, staysPoint: false, greenPoint: false} {
		point := &v1alpha1.AccessPoint{}
		if err := b.Client.Get(t.Context(), client.ObjectKey{Name: id}, point); err != nil || point.Spec.DeleteWithCluster != want {
			t.Errorf("%s goes with the cluster: %t, %v; want %t", id, point.Spec.DeleteWithCluster, err, want)
		}
	}
	for id, want := range map[string]bool{goesSnapshot: true, staysSnapshot: false, greenSnapshot: false} {
		snapshot := &v1alpha1.VolumeSnapshot{}
		if err := b.Client.Get(t.Context(), client.ObjectKey{Name: id}, snapshot); err != nil || snapshot.Spec.DeleteWithCluster != want {
			t.Errorf("%s goes with the cluster: %t, %v; want %t", id, snapshot.Spec.DeleteWithCluster, err, want)
		}
	}
}

// Data that an earlier attempt has marked stays if people have it retained since.
func TestDeleteClusterThatRetainsByNow(t *testing.T) {
	t.Parallel()
	all := slices.Concat(lone("Blue_2"), claimed("stays", staysPoint, "Blue_2", corev1.PersistentVolumeReclaimRetain), claimed("green", greenPoint, "green", corev1.PersistentVolumeReclaimRetain),
		snapshotted("stays", staysSnapshot, "Blue_2", "Retain"), snapshotted("green", greenSnapshot, "green", "Retain"))
	for _, object := range all {
		switch object := object.(type) {
		case *v1alpha1.AccessPoint:
			object.Spec.DeleteWithCluster = true
		case *v1alpha1.VolumeSnapshot:
			object.Spec.DeleteWithCluster = true
		}
	}
	b := clitest.NewBench(t, remover(t), all...)
	writeClusterKubeconfig(t, b, "Blue_2")
	if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2", "--cascade"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{staysPoint, greenPoint} {
		point := &v1alpha1.AccessPoint{}
		if err := b.Client.Get(t.Context(), client.ObjectKey{Name: id}, point); err != nil || point.Spec.DeleteWithCluster != (id == greenPoint) {
			t.Errorf("%s goes with the cluster: %t, %v", id, point.Spec.DeleteWithCluster, err)
		}
	}
	for _, id := range []string{staysSnapshot, greenSnapshot} {
		snapshot := &v1alpha1.VolumeSnapshot{}
		if err := b.Client.Get(t.Context(), client.ObjectKey{Name: id}, snapshot); err != nil || snapshot.Spec.DeleteWithCluster != (id == greenSnapshot) {
			t.Errorf("%s goes with the cluster: %t, %v", id, snapshot.Spec.DeleteWithCluster, err)
		}
	}
}

// A snapshot that is made, and that its content does not name yet, goes with the cluster, too.
func TestDeleteClusterWithASnapshotThatIsNotNamed(t *testing.T) {
	t.Parallel()
	id := v1alpha1.VolumeSnapshotID("Blue_2", "snapshot-u")
	objects := snapshotted("goes", id, "Blue_2", "Delete")
	content := objects[0].(*unstructured.Unstructured)
	unstructured.RemoveNestedField(content.Object, "status")
	if err := errors.Join(unstructured.SetNestedField(content.Object, heldSystem+"::"+goesPoint, "spec", "source", "volumeHandle"),
		unstructured.SetNestedField(content.Object, "u", "spec", "volumeSnapshotRef", "uid")); err != nil {
		t.Fatal(err)
	}
	b := clitest.NewBench(t, remover(t), slices.Concat(lone("Blue_2"), objects)...)
	writeClusterKubeconfig(t, b, "Blue_2")
	if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2", "--cascade"); err != nil {
		t.Fatal(err)
	}
	snapshot := &v1alpha1.VolumeSnapshot{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: id}, snapshot); err != nil || !snapshot.Spec.DeleteWithCluster {
		t.Errorf("%s stays: %v", id, err)
	}
}

// A cluster that does not answer is not deleted as if it held nothing.
func TestDeleteClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	funcs := remover(t)
	funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.PersistentVolumeClaimList); ok {
			return errors.New("etcd has gone")
		}
		return c.List(ctx, list, opts...)
	}
	b := clitest.NewBench(t, funcs, lone("Blue_2")...)
	writeClusterKubeconfig(t, b, "Blue_2")
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "Blue_2"), "cannot be asked what its Services and claims hold", false)
	if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2", "--cascade"); err != nil || !strings.Contains(b.Err.String(), "the data of its volumes stays: etcd has gone") {
		t.Errorf("%v, %q", err, &b.Err)
	}

	// A second attempt does not take back what the first has found out.
	b = clitest.NewBench(t, interceptor.Funcs{List: funcs.List}, lone("Blue_2")...)
	writeClusterKubeconfig(t, b, "Blue_2")
	for _, want := range []string{"so the data of its volumes stays", "so its volumes stay, but for those that an earlier attempt found"} {
		b.Err.Reset()
		if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2", "--cascade", "--wait=false"); err != nil || !strings.Contains(b.Err.String(), want) {
			t.Errorf("%v, %q, want %q", err, &b.Err, want)
		}
	}
}

func TestFileSystemCommands(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	commands := func() *createFileSystemCommand {
		return &createFileSystemCommand{Options: b.O, planes: b.Planes, random: strings.NewReader("123456789")}
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"shared", "--dry-run=client"}, "filesystem.muster.dev/shared created (dry run)\n"},
		{[]string{"shared"}, "filesystem.muster.dev/shared created\n"},
		{[]string{"shared"}, "filesystem.muster.dev/shared unchanged\n"},
	} {
		if err := b.Run(t.Context(), commands().command(), step.args...); err != nil || b.Out.String() != step.want {
			t.Errorf("%q: %q, %v; want %q", step.args, &b.Out, err, step.want)
		}
	}
	clitest.WantErr(t, b.Run(t.Context(), commands().command(), "a/b"), `invalid name "a/b"`, true)
	clitest.WantErr(t, b.Run(t.Context(), commands().command(), "own", "--cluster", ""), `invalid cluster ""`, true)
	clitest.WantErr(t, b.Run(t.Context(), commands().command(), "shared", "--cluster", "blue"), `file system "shared" is there, for all clusters: change spec.clusters`, false)
	system := &v1alpha1.FileSystem{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "fs-31323334353637383"}, system); err != nil || system.Spec.Name != "shared" {
		t.Fatalf("%+v, %v", system, err)
	}
	point := &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: goesPoint}, Spec: v1alpha1.AccessPointSpec{FileSystemID: system.Name, ClusterName: "blue"}}
	if err := b.Client.Create(t.Context(), point); err != nil {
		t.Fatal(err)
	}
	clitest.WantErr(t, b.Run(t.Context(), deleteFileSystems(b), "shared"), `file system "shared" has 1 access point, such as `+goesPoint+" of cluster blue", false)
	snapshot := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: goesSnapshot}, Spec: v1alpha1.VolumeSnapshotSpec{FileSystemID: system.Name, ClusterName: "blue"}}
	if err := errors.Join(b.Client.Delete(t.Context(), point), b.Client.Create(t.Context(), snapshot)); err != nil {
		t.Fatal(err)
	}
	clitest.WantErr(t, b.Run(t.Context(), deleteFileSystems(b), "shared"), `file system "shared" has 1 snapshot of volumes, such as `+goesSnapshot+" of cluster blue", false)
	if err := b.Client.Delete(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context(), deleteFileSystems(b), system.Name); err != nil || b.Out.String() != "filesystem.muster.dev \"shared\" deleted\n" {
		t.Errorf("%q, %v", &b.Out, err)
	}
}

// A file system for some clusters says so, and a second request for others is not taken for done.
func TestCreateFileSystemForClusters(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	create := func(args ...string) error {
		return b.Run(t.Context(), (&createFileSystemCommand{Options: b.O, planes: b.Planes, random: strings.NewReader("123456789")}).command(), args...)
	}
	if err := create("own", "--cluster", "green", "--cluster", "blue"); err != nil {
		t.Fatal(err)
	}
	system := &v1alpha1.FileSystem{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "fs-31323334353637383"}, system); err != nil || !slices.Equal(system.Spec.Clusters, []string{"blue", "green"}) {
		t.Fatalf("%+v, %v", system.Spec, err)
	}
	for _, args := range [][]string{{"own"}, {"own", "--cluster", "green,blue"}} {
		if err := create(args...); err != nil || b.Out.String() != "filesystem.muster.dev/own unchanged\n" {
			t.Errorf("%q: %q, %v", args, &b.Out, err)
		}
	}
	clitest.WantErr(t, create("own", "--cluster", "blue"), `file system "own" is there, for blue, green`, false)
	if err := b.Run(t.Context(), getOf(b), "filesystem", "own"); err != nil || !strings.Contains(b.Out.String(), "blue,green") {
		t.Errorf("%q, %v", &b.Out, err)
	}
}

func deleteFileSystems(b *clitest.Bench) *cobra.Command {
	return (&deleteCommand{Options: b.O, planes: b.Planes, kind: kinds.FileSystems(), interval: time.Millisecond}).fileSystems()
}
