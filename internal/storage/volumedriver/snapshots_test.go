// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

func asksSnapshot(name, volume string) *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume}
}

func asksRestore(name, snapshot string) *csi.CreateVolumeRequest {
	request := asks(name, nil)
	request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot}}}
	return request
}

// snapshots are the names in the directory of a file system's snapshots, and of the objects.
func (w *world) snapshots(t *testing.T) (files, objects []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.root, own, "snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	all := &v1alpha1.VolumeSnapshotList{}
	if err := errors.Join(err, w.management.List(t.Context(), all)); err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	for i := range all.Items {
		objects = append(objects, all.Items[i].Name)
	}
	return files, objects
}

func TestSnapshot(t *testing.T) {
	w, volume := copyWorld(t, copying)
	w.failure = errors.New("etcd is slow")
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.Unavailable {
		t.Fatalf("while the management plane fails: %v", err)
	}
	id, first := v1alpha1.VolumeSnapshotID(clusterName, "s"), time.Time{}
	for _, after := range []func() error{
		func() error { return nil },
		func() error { // once more, as after a crash
			return os.WriteFile(filepath.Join(w.at("source"), "file"), []byte("changed"), 0o600)
		},
		func() error {
			_, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: volume})
			return err
		},
	} {
		if err := after(); err != nil {
			t.Fatal(err)
		}
		response, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume))
		s := response.GetSnapshot()
		if err != nil || s.GetSnapshotId() != id || s.GetSourceVolumeId() != volume || !s.GetReadyToUse() || s.GetSizeBytes() != 1<<20 {
			t.Fatalf("%v, %v", response, err)
		}
		if taken := s.GetCreationTime().AsTime(); first.IsZero() {
			first = taken
		} else if !taken.Equal(first) || first.Year() < 2000 {
			t.Errorf("it was taken at %v, and before at %v", taken, first)
		}
	}
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", own+"::fsap-00000000000000009")); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a snapshot of the same name, of another volume: %v", err)
	}
	for _, volume := range []string{"restored", "restored"} {
		response, err := w.CreateVolume(t.Context(), asksRestore(volume, id))
		if err != nil || response.GetVolume().GetContentSource().GetSnapshot().GetSnapshotId() != id {
			t.Fatalf("%v, %v", response, err)
		}
		if raw, err := os.ReadFile(filepath.Join(w.at("restored"), "file")); err != nil || string(raw) != "content" {
			t.Errorf("%q, %v", raw, err)
		}
	}
	for range 2 {
		if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			t.Fatal(err)
		}
	}
	if files, objects := w.snapshots(t); len(files)+len(objects) > 0 {
		t.Errorf("left are %q and %q", files, objects)
	}
	if raw, err := os.ReadFile(filepath.Join(w.at("restored"), "file")); err != nil || string(raw) != "content" {
		t.Errorf("after its snapshot went: %q, %v", raw, err)
	}
}

func TestSnapshotOfADisk(t *testing.T) {
	w, _ := copyWorld(t, copying)
	raw := asks("raw", nil)
	raw.VolumeCapabilities = blocks()
	response, err := w.CreateVolume(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	made, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", response.GetVolume().GetVolumeId()))
	if err != nil {
		t.Fatal(err)
	}
	request := asksRestore("restored", made.GetSnapshot().GetSnapshotId())
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.InvalidArgument || w.point(t, "restored") != nil {
		t.Errorf("a directory is made of a disk: %v", err)
	}
	request.VolumeCapabilities, request.CapacityRange.RequiredBytes = blocks(), 4096
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.OutOfRange || w.point(t, "restored") != nil {
		t.Errorf("a smaller one is made: %v", err)
	}
	request.CapacityRange.RequiredBytes = 2 << 20
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.at("restored")); err != nil || info.Size() != 2<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestSnapshotRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(t *testing.T, w *world, r *csi.CreateSnapshotRequest)
		reflink func(to, from *os.File) error
		code    codes.Code
		says    string
	}{
		"no reflink, and pods write": {func(t *testing.T, w *world, r *csi.CreateSnapshotRequest) {
			t.Helper()
			w.mounts(t, r.GetSourceVolumeId())
		}, noReflink, codes.FailedPrecondition, "Stop the pods"},
		"no name":   {func(_ *testing.T, _ *world, r *csi.CreateSnapshotRequest) { r.Name = "" }, copying, codes.InvalidArgument, "a name"},
		"no volume": {func(_ *testing.T, _ *world, r *csi.CreateSnapshotRequest) { r.SourceVolumeId = "" }, copying, codes.InvalidArgument, "missing"},
		"parameters": {func(_ *testing.T, _ *world, r *csi.CreateSnapshotRequest) {
			r.Parameters = map[string]string{"tags": "x"}
		}, copying, codes.InvalidArgument, `"tags"`},
		"not there": {func(_ *testing.T, _ *world, r *csi.CreateSnapshotRequest) {
			r.SourceVolumeId = own + "::fsap-00000000000000009"
		}, copying, codes.NotFound, "fsap-00000000000000009"},
		"a file system": {func(_ *testing.T, _ *world, r *csi.CreateSnapshotRequest) { r.SourceVolumeId = own }, copying, codes.NotFound, "a StorageClass has made"},
		"another cluster": {func(t *testing.T, w *world, _ *csi.CreateSnapshotRequest) {
			t.Helper()
			p := w.point(t, "source")
			p.Spec.ClusterName = "green"
			if err := w.management.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}, copying, codes.NotFound, "of cluster blue"},
	} {
		t.Run(name, func(t *testing.T) {
			w, volume := copyWorld(t, test.reflink)
			request := asksSnapshot("s", volume)
			if test.change != nil {
				test.change(t, w, request)
			}
			if _, err := w.CreateSnapshot(t.Context(), request); status.Code(err) != test.code || !strings.Contains(err.Error(), test.says) {
				t.Error(err)
			}
			if files, objects := w.snapshots(t); len(files)+len(objects) > 0 {
				t.Errorf("left are %q and %q", files, objects)
			}
		})
	}
}

// A snapshot that is cut short is made by the next attempt, with the size that the volume has then, or nothing is left
// of it.
func TestSnapshotIsCutShort(t *testing.T) {
	id := v1alpha1.VolumeSnapshotID(clusterName, "s")
	for name, next := range map[string]func(t *testing.T, w *world, volume string){
		"made": func(t *testing.T, w *world, volume string) {
			t.Helper()
			if _, err := w.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 20}}); err != nil {
				t.Fatal(err)
			}
			if made, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); err != nil || made.GetSnapshot().GetSizeBytes() != 2<<20 {
				t.Errorf("%v, %v", made, err)
			}
		},
		"deleted": func(t *testing.T, w *world, _ string) {
			t.Helper()
			if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
				t.Error(err)
			}
		},
		"without its volume": func(t *testing.T, w *world, volume string) {
			t.Helper()
			if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: volume}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.NotFound {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			var volume string
			calls := 0
			w, volume = copyWorld(t, func(to, from *os.File) error {
				if calls++; calls != 2 { // the first one is to see whether it can be
					return copying(to, from)
				}
				if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.Aborted {
					t.Errorf("making what is being made: %v", err)
				}
				if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); status.Code(err) != codes.Aborted {
					t.Errorf("deleting what is being made: %v", err)
				}
				return unix.EIO
			})
			if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.Unavailable {
				t.Fatalf("the disk fails: %v", err)
			}
			if files, objects := w.snapshots(t); len(files) > 0 || len(objects) != 1 {
				t.Errorf("there are %q and %q", files, objects)
			}
			if list, err := w.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: id}); err != nil || len(list.GetEntries()) > 0 {
				t.Errorf("what is not made is listed: %v, %v", list, err)
			}
			if _, err := w.CreateVolume(t.Context(), asksRestore("restored", id)); status.Code(err) != codes.NotFound || w.point(t, "restored") != nil {
				t.Errorf("what is not made is restored: %v", err)
			}
			next(t, w, volume)
			files, objects := w.snapshots(t)
			if want := map[string]int{"made": 1}[name]; len(files) != want || len(objects) != want {
				t.Errorf("left are %q and %q", files, objects)
			}
		})
	}
}

// A snapshot whose object people delete while it is made does not count, and leaves nothing. A snapshot that they
// deleted is made again once it is gone.
func TestSnapshotWhoseObjectIsDeleted(t *testing.T) {
	var w *world
	var volume string
	calls, id := 0, v1alpha1.VolumeSnapshotID(clusterName, "s")
	object := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: id}}
	remove := func(finalizerToo bool) {
		t.Helper()
		if err := w.management.Delete(t.Context(), object.DeepCopy()); err != nil {
			t.Error(err)
		}
		if !finalizerToo {
			return
		}
		// As the controller of file systems does.
		if err := w.management.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Error(err)
		}
	}
	finalizerToo := true
	w, volume = copyWorld(t, func(to, from *os.File) error {
		if calls++; calls == 2 || calls == 4 { // the first one of each attempt is to see whether it can be
			remove(finalizerToo)
		}
		return copying(to, from)
	})
	for _, finalizerToo = range []bool{true, false} {
		if made, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("%v, %v", made, err)
		}
		if files, _ := w.snapshots(t); len(files) > 0 {
			t.Errorf("there are %q", files)
		}
	}
	if made, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("%v, %v", made, err)
	}
	if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
		t.Error(err)
	}
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); err != nil {
		t.Error(err)
	}
	remove(false)
	if list, err := w.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{}); err != nil || len(list.GetEntries()) > 0 {
		t.Errorf("what is being deleted is listed: %v, %v", list, err)
	}
	if _, err := w.CreateVolume(t.Context(), asksRestore("restored", id)); status.Code(err) != codes.NotFound || w.point(t, "restored") != nil {
		t.Errorf("what is being deleted is restored: %v", err)
	}
}

// The management plane may have been brought back from a backup that is older than a snapshot.
func TestSnapshotThatIsThereWithoutItsObject(t *testing.T) {
	w, volume := copyWorld(t, copying)
	first, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume))
	if err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: first.GetSnapshot().GetSnapshotId()}}
	if err := errors.Join(w.management.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))),
		w.management.Delete(t.Context(), object), os.WriteFile(filepath.Join(w.at("source"), "file"), []byte("changed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if again, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); err != nil || !proto.Equal(again, first) {
		t.Errorf("%v, %v; it was %v", again, err, first)
	}
	if _, err := w.CreateVolume(t.Context(), asksRestore("restored", object.Name)); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(w.at("restored"), "file")); err != nil || string(raw) != "content" {
		t.Errorf("%q, %v", raw, err)
	}
}

// Snapshots of other clusters are listed, restored and deleted by them alone.
func TestSnapshotsOfOthersStay(t *testing.T) {
	w, _ := copyWorld(t, copying)
	const theirs = "fssnap-00000000000000009"
	other := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: theirs}, Spec: v1alpha1.VolumeSnapshotSpec{FileSystemID: own, SourceVolume: "v", ClusterName: "green"}}
	if err := errors.Join(w.management.Create(t.Context(), other), os.Mkdir(filepath.Join(w.root, own, "snapshots", theirs), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: theirs}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deleted: %v", err)
	}
	if list, err := w.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{}); err != nil || len(list.GetEntries()) > 0 {
		t.Errorf("listed: %v, %v", list, err)
	}
	for _, id := range []string{theirs, "../" + theirs, "fssnap-00000000000000008"} {
		if _, err := w.CreateVolume(t.Context(), asksRestore("restored", id)); status.Code(err) != codes.NotFound || w.point(t, "restored") != nil {
			t.Errorf("%s is restored: %v", id, err)
		}
	}
	for _, id := range []string{"../" + theirs, "fssnap-00000000000000008"} {
		if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			t.Errorf("one that is not there: %v", err)
		}
	}
	if files, objects := w.snapshots(t); len(files) != 1 || len(objects) != 1 {
		t.Errorf("there are %q and %q", files, objects)
	}
}

func TestListSnapshots(t *testing.T) {
	w, volume := copyWorld(t, copying)
	for i := range 5 {
		if _, err := w.CreateSnapshot(t.Context(), asksSnapshot(fmt.Sprint(i), volume)); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int32{0, 1, 2, 5, 6} {
		seen, pages, token := map[string]bool{}, 0, ""
		for pages == 0 || token != "" {
			list, err := w.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{MaxEntries: size, StartingToken: token, SourceVolumeId: volume})
			if err != nil || size > 0 && len(list.GetEntries()) > int(size) {
				t.Fatalf("%v, %v", list, err)
			}
			for _, entry := range list.GetEntries() {
				seen[entry.GetSnapshot().GetSnapshotId()] = true
			}
			pages, token = pages+1, list.GetNextToken()
		}
		if len(seen) != 5 || size > 0 && pages != (5+int(size)-1)/int(size) {
			t.Errorf("by %d: %d snapshots on %d pages", size, len(seen), pages)
		}
	}
	if list, err := w.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SourceVolumeId: "another"}); err != nil || len(list.GetEntries()) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	for code, request := range map[codes.Code]*csi.ListSnapshotsRequest{codes.InvalidArgument: {MaxEntries: -1}, codes.Aborted: {StartingToken: "x"}} {
		if _, err := w.ListSnapshots(t.Context(), request); status.Code(err) != code {
			t.Errorf("%v: %v", request, err)
		}
	}
	if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: v1alpha1.VolumeSnapshotID(clusterName, "0")}, &v1alpha1.VolumeSnapshot{}); err != nil {
		t.Error(err)
	}
}
