// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	provisioning "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
)

// copyWorld is a world on a file system that can share content, as far as it is told, with a volume that has a file.
func copyWorld(t *testing.T, reflink func(to, from *os.File) error, cluster ...objects) (w *world, source string) {
	t.Helper()
	source = own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "source")
	w = newWorld(t, uses(nodeName, source, func(p *corev1.Pod, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
		c.Status.Phase = corev1.ClaimBound
		for _, change := range cluster {
			change(p, c, v)
		}
	})...)
	w.files = filestore.NewReflinking(w.root, reflink)
	w.node.files = w.files
	response, err := w.CreateVolume(t.Context(), asks("source", nil))
	if err != nil || response.GetVolume().GetVolumeId() != source {
		t.Fatal(response, err)
	}
	if err := os.WriteFile(filepath.Join(w.at("source"), "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, source
}

// at is where a volume is.
func (w *world) at(volume string) string {
	return filepath.Join(w.root, own, "data", v1alpha1.VolumeAccessPointID(clusterName, volume))
}

func (w *world) point(t *testing.T, volume string) *v1alpha1.AccessPoint {
	t.Helper()
	point := &v1alpha1.AccessPoint{}
	err := w.management.Get(t.Context(), client.ObjectKey{Name: v1alpha1.VolumeAccessPointID(clusterName, volume)}, point)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return point
}

func copying(to, from *os.File) error {
	_, err := io.Copy(to, from)
	return err
}

// noReflink is what a file system says in which files cannot share their content.
func noReflink(_, _ *os.File) error { return unix.EOPNOTSUPP }

// mounts has a volume mounted for a pod that may write it.
func (w *world) mounts(t *testing.T, volume string) {
	t.Helper()
	if _, err := w.node.NodePublishVolume(t.Context(), publish(volume, target)); err != nil {
		t.Fatal(err)
	}
}

func asksCopy(name, source string) *csi.CreateVolumeRequest {
	request := asks(name, nil)
	request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source}}}
	return request
}

func TestCopy(t *testing.T) {
	w, source := copyWorld(t, copying)
	w.failure = errors.New("etcd is slow")
	if _, err := w.CreateVolume(t.Context(), asksCopy("copy", source)); status.Code(err) != codes.Unavailable {
		t.Fatalf("while the management plane fails: %v", err)
	}
	for _, after := range []func() error{
		func() error { return nil },
		func() error { return nil }, // once more, as after a crash
		func() error {
			_, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: source})
			return err
		},
	} {
		if err := after(); err != nil {
			t.Fatal(err)
		}
		response, err := w.CreateVolume(t.Context(), asksCopy("copy", source))
		if err != nil || response.GetVolume().GetContentSource().GetVolume().GetVolumeId() != source {
			t.Fatalf("%v, %v", response, err)
		}
		if raw, err := os.ReadFile(filepath.Join(w.at("copy"), "file")); err != nil || string(raw) != "content" {
			t.Fatalf("%q, %v", raw, err)
		}
	}
	for name, request := range map[string]*csi.CreateVolumeRequest{"empty": asks("copy", nil), "of another volume": asksCopy("copy", own+"::fsap-00000000000000009")} {
		if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.AlreadyExists {
			t.Errorf("a volume of the same name, %s: %v", name, err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(w.at("copy"), "file")); err != nil || string(raw) != "content" {
		t.Errorf("%q, %v", raw, err)
	}
	if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "copy")}); err != nil || w.point(t, "copy") != nil {
		t.Errorf("%v", err)
	}
}

func TestCopyOfADisk(t *testing.T) {
	w, _ := copyWorld(t, copying)
	raw := asks("raw", nil)
	raw.VolumeCapabilities = blocks()
	response, err := w.CreateVolume(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	request := asksCopy("copy", response.GetVolume().GetVolumeId())
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.InvalidArgument || w.point(t, "copy") != nil {
		t.Errorf("a directory is made a copy of a disk: %v", err)
	}
	request.VolumeCapabilities, request.CapacityRange.RequiredBytes = blocks(), 2<<20
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.at("copy")); err != nil || info.Size() != 2<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCopyRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(t *testing.T, w *world, r *csi.CreateVolumeRequest)
		reflink func(to, from *os.File) error
		code    codes.Code
		says    string
	}{
		"no reflink, and pods write": {func(t *testing.T, w *world, r *csi.CreateVolumeRequest) {
			t.Helper()
			w.mounts(t, r.GetVolumeContentSource().GetVolume().GetVolumeId())
		}, noReflink, codes.FailedPrecondition, "Stop the pods"},
		"the disk fails": {nil, func(*os.File, *os.File) error { return unix.EIO }, codes.Unavailable, "input/output"},
		"a snapshot": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{}}
		}, copying, codes.InvalidArgument, "of nothing else"},
		"a path": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			r.GetVolumeContentSource().GetVolume().VolumeId = own + ":/a"
		}, copying, codes.NotFound, "a StorageClass has made"},
		"below a volume": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			v := r.GetVolumeContentSource().GetVolume()
			v.VolumeId = strings.Replace(v.VolumeId, "::", ":/a:", 1)
		}, copying, codes.NotFound, "of cluster blue"},
		"another system": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			v := r.GetVolumeContentSource().GetVolume()
			v.VolumeId = strings.Replace(v.VolumeId, own, defaultID, 1)
		}, copying, codes.NotFound, "of cluster blue"},
		"not a handle": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			r.GetVolumeContentSource().GetVolume().VolumeId = "../x"
		}, copying, codes.NotFound, "a StorageClass has made"},
		"no volume": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) {
			r.GetVolumeContentSource().GetVolume().VolumeId = own + "::fsap-00000000000000009"
		}, copying, codes.NotFound, "fsap-00000000000000009"},
		"too small": {func(_ *testing.T, _ *world, r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes-- }, copying, codes.OutOfRange, "at least as much"},
		"lost": {func(t *testing.T, w *world, _ *csi.CreateVolumeRequest) {
			t.Helper()
			if err := os.RemoveAll(w.at("source")); err != nil {
				t.Fatal(err)
			}
		}, copying, codes.NotFound, "has lost"},
		"another cluster": {func(t *testing.T, w *world, _ *csi.CreateVolumeRequest) {
			t.Helper()
			p := w.point(t, "source")
			p.Spec.ClusterName = "green"
			if err := w.management.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}, copying, codes.NotFound, "of cluster blue"},
	} {
		t.Run(name, func(t *testing.T) {
			w, source := copyWorld(t, test.reflink)
			request := asksCopy("copy", source)
			if test.change != nil {
				test.change(t, w, request)
			}
			if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != test.code || !strings.Contains(err.Error(), test.says) {
				t.Error(err)
			}
			if point := w.point(t, "copy"); point != nil {
				t.Errorf("left is %+v", point)
			}
		})
	}
}

// A copy that is cut short is made by the next attempt, or is not left when its source is gone. No pod finds an empty
// directory in its place.
func TestCopyIsCutShort(t *testing.T) {
	for name, goes := range map[string]bool{"the source is there": false, "the source is gone": true} {
		t.Run(name, func(t *testing.T) {
			var w *world
			var source string
			calls := 0
			handle := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "copy")
			w, source = copyWorld(t, func(to, from *os.File) error {
				if calls++; calls != 2 { // the first one is to see whether it can be
					return copying(to, from)
				}
				if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: handle}); status.Code(err) != codes.Aborted {
					t.Errorf("deleting what is being made: %v", err)
				}
				if _, err := w.CreateVolume(t.Context(), asksCopy("copy", source)); status.Code(err) != codes.Aborted {
					t.Errorf("making what is being made: %v", err)
				}
				if _, err := w.abandonCopy(t.Context(), "copy"); status.Code(err) != codes.Aborted {
					t.Errorf("abandoning what is being made: %v", err)
				}
				return unix.EIO
			}, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
				v.Spec.CSI.VolumeHandle = handle
			})
			if _, err := w.CreateVolume(t.Context(), asksCopy("copy", source)); status.Code(err) != codes.Unavailable || w.point(t, "copy") == nil {
				t.Fatalf("the disk fails: %v", err)
			}
			if _, err := w.node.NodePublishVolume(t.Context(), publish(handle, target)); err == nil || len(w.machines.mounted) > 0 {
				t.Errorf("what is not made is mounted: %v", err)
			}
			if _, err := os.Stat(w.at("copy")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is something in its place: %v", err)
			}
			if goes {
				if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: source}); err != nil {
					t.Fatal(err)
				}
				if _, err := w.CreateVolume(t.Context(), asksCopy("copy", source)); status.Code(err) != codes.NotFound || w.point(t, "copy") != nil {
					t.Errorf("%v; left is %v", err, w.point(t, "copy"))
				}
				return
			}
			if _, err := w.CreateVolume(t.Context(), asksCopy("copy", source)); err != nil {
				t.Error(err)
			}
			if made, err := w.abandonCopy(t.Context(), "copy"); err != nil || !made.whole || w.point(t, "copy") == nil {
				t.Errorf("a copy that is made is abandoned: %v", err)
			}
			if _, err := w.node.NodePublishVolume(t.Context(), publish(handle, target)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Copies that take long leave room for other claims.
func TestCopiesAtATime(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	w, source := copyWorld(t, func(to, from *os.File) error {
		if filepath.Base(from.Name()) == "file" { // not when it is tried whether it can be
			begun <- struct{}{}
			<-end
		}
		return copying(to, from)
	})
	var group sync.WaitGroup
	for i := range maxCopies {
		group.Go(func() {
			if _, err := w.CreateVolume(t.Context(), asksCopy("copy-"+strconv.Itoa(i), source)); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	go func() {
		for range begun { // of one more than there may be
		}
	}()
	if _, err := w.CreateVolume(t.Context(), asks("empty", nil)); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { _, err := w.CreateVolume(t.Context(), asksCopy("another", source)); done <- err }()
	select {
	case err := <-done:
		if status.Code(err) != codes.Aborted || w.point(t, "another") != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("another copy is begun")
	}
	close(end)
	group.Wait()
	if _, err := w.CreateVolume(t.Context(), asksCopy("another", source)); err != nil {
		t.Error(err)
	}
	close(begun)
}

// The source that a claim names is looked up in its own namespace and must be a volume of the driver's.
func TestProvisionCopy(t *testing.T) {
	group, elsewhere := "snapshot.storage.k8s.io", "bank"
	names := func(change func(*corev1.TypedObjectReference)) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
			change(c.Spec.DataSourceRef)
		}
	}
	for name, test := range map[string]struct {
		claim   func(*corev1.PersistentVolumeClaim)
		cluster objects
		says    string
	}{
		"by dataSource": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
		}, nil, ""},
		"by dataSourceRef": {names(func(*corev1.TypedObjectReference) {}), nil, ""},
		"a snapshot":       {names(func(r *corev1.TypedObjectReference) { r.APIGroup, r.Kind = &group, "VolumeSnapshot" }), nil, "there is no VolumeSnapshot data"},
		"another kind":     {names(func(r *corev1.TypedObjectReference) { r.Kind = "Pod" }), nil, "not of a Pod"},
		"another group":    {names(func(r *corev1.TypedObjectReference) { r.APIGroup = &group }), nil, "of another group"},
		"elsewhere":        {names(func(r *corev1.TypedObjectReference) { r.Namespace = &elsewhere }), nil, "or namespace"},
		"no claim":         {names(func(r *corev1.TypedObjectReference) { r.Name = "none" }), nil, "not found"},
		"not bound": {names(func(*corev1.TypedObjectReference) {}), func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}, "not bound yet"},
		"another's volume": {names(func(*corev1.TypedObjectReference) {}), func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID = "x"
		}, "another driver"},
		"another driver": {names(func(*corev1.TypedObjectReference) {}), func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.CSI.Driver = "x"
		}, "another driver"},
		"no volume": {names(func(*corev1.TypedObjectReference) {}), func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.VolumeName = "none"
		}, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := copyWorld(t, copying, func(p *corev1.Pod, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
				if test.cluster != nil {
					test.cluster(p, c, v)
				}
			})
			// An earlier attempt has begun.
			point := w.wanted("pvc-1", parametersOf(t), 1<<20, false)
			point.Annotations = map[string]string{annotationCopiedFrom: own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "source")}
			if err := w.management.Create(t.Context(), point); err != nil {
				t.Fatal(err)
			}
			volume, state, err := (&provisioner{w.controller, w.node.cluster, snapshotObjects(), record.NewFakeRecorder(10)}).Provision(t.Context(), options("1Mi", test.claim))
			if state != provisioning.ProvisioningFinished {
				t.Errorf("%s, %v", state, err)
			}
			raw, readErr := os.ReadFile(filepath.Join(w.at("pvc-1"), "file"))
			if test.says == "" && (err != nil || volume == nil || string(raw) != "content") {
				t.Errorf("%v, %v, %q, %v", volume, err, raw, readErr)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || w.point(t, "pvc-1") != nil) {
				t.Errorf("%v; left is %v", err, w.point(t, "pvc-1"))
			}
		})
	}
}

// A copy that was made before the service was killed is the claim's, though its source has gone since.
func TestProvisionCopyThatIsMade(t *testing.T) {
	group := snapshotGroup
	for name, ref := range map[string]corev1.TypedLocalObjectReference{
		"a volume": {Kind: "PersistentVolumeClaim", Name: "gone"}, "a snapshot": {APIGroup: &group, Kind: "VolumeSnapshot", Name: "gone"},
	} {
		w, source := copyWorld(t, copying)
		request := asksCopy("pvc-1", source)
		if ref.APIGroup != nil {
			made, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", source))
			if err != nil {
				t.Fatal(err)
			}
			request = asksRestore("pvc-1", made.GetSnapshot().GetSnapshotId())
		}
		if _, err := w.CreateVolume(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		volume, state, err := (&provisioner{w.controller, w.node.cluster, snapshotObjects(), record.NewFakeRecorder(10)}).Provision(t.Context(), options("1Mi", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &ref
		}))
		if err != nil || state != provisioning.ProvisioningFinished || volume.Spec.CSI.VolumeHandle != own+"::"+w.point(t, "pvc-1").Name {
			t.Errorf("%s: %v, %s, %v", name, volume, state, err)
		}
	}
}

func parametersOf(t *testing.T) efs.Parameters {
	t.Helper()
	p, err := efs.ParseParameters(asks("", nil).GetParameters())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
