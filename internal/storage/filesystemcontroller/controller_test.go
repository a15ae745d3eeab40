// SPDX-License-Identifier: Apache-2.0

package filesystemcontroller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/filestore"
)

// store is one in memory that fails on demand.
type store struct {
	there   map[string]bool
	failure error
	space   filestore.Space
	kept    []string // snapshots
	stuck   error    // the error of removing a snapshot
}

func (s *store) DiscardPlace(at filestore.Place) error {
	if s.stuck != nil {
		return s.stuck
	}
	return s.do(func() {
		s.kept = slices.DeleteFunc(s.kept, func(name string) bool { return at.Snapshot && at.Path == "/"+name })
	})
}

func (s *store) Space() (filestore.Space, error) { return s.space, s.failure }

func (s *store) Ensure(id string) error { return s.do(func() { s.there[id] = true }) }
func (s *store) Remove(id string) error { return s.do(func() { delete(s.there, id) }) }
func (s *store) Sweep() error           { return s.failure }

func (s *store) do(what func()) error {
	if s.failure == nil {
		what()
	}
	return s.failure
}

func TestFileSystemComesAndGoes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.FileSystem{}).Build()
	disk := &store{there: map[string]bool{}, failure: errors.New("no room")}
	r := &reconciler{store: disk, api: api, live: api}
	for range 2 {
		if err := First(t.Context(), api); err != nil {
			t.Fatal(err)
		}
	}
	list := &v1alpha1.FileSystemList{}
	if err := api.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Spec.Name != "default" {
		t.Fatalf("%v, %v", list.Items, err)
	}
	id := list.Items[0].Name
	look := func(wantErr bool, want metav1.ConditionStatus, reason string) {
		t.Helper()
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}})
		if (err != nil) != wantErr {
			t.Errorf("error is %v", err)
		}
		system := &v1alpha1.FileSystem{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: id}, system); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(system.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != want || ready.Reason != reason {
			t.Errorf("it is %+v, want %s %s", ready, want, reason)
		}
	}
	look(true, metav1.ConditionFalse, ReasonFailed)
	disk.failure = nil
	look(false, metav1.ConditionTrue, ReasonAvailable)
	point := &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: "fsap-00000000000000001"}, Spec: v1alpha1.AccessPointSpec{FileSystemID: id, Path: "/a"}}
	snapshot := aSnapshot("fssnap-00000000000000001", id)
	goes := aSnapshot("fssnap-00000000000000002", id)
	const nameless = "fssnap-00000000000000003"
	disk.kept = []string{snapshot.Name, goes.Name, nameless}
	if err := errors.Join(api.Create(t.Context(), point), api.Create(t.Context(), snapshot), api.Create(t.Context(), goes), api.Delete(t.Context(), goes)); err != nil {
		t.Fatal(err)
	}
	look(false, metav1.ConditionTrue, ReasonAvailable)
	if !slices.Equal(disk.kept, []string{snapshot.Name, nameless}) {
		t.Errorf("snapshots that are left: %q", disk.kept)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(goes), goes); !apierrors.IsNotFound(err) {
		t.Errorf("%s is still there: %v", goes.Name, err)
	}
	if err := api.Delete(t.Context(), &list.Items[0]); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{point, snapshot} {
		look(false, metav1.ConditionFalse, ReasonInUse)
		if !disk.there[id] {
			t.Fatalf("data of %s is gone", object.GetName())
		}
		if got := systemOf(t.Context(), object); len(got) != 1 || got[0].Name != id {
			t.Errorf("the end of %s is heard of by %v", object.GetName(), got)
		}
		if err := api.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.removeSnapshots(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	disk.failure = errors.New("input/output error")
	look(true, metav1.ConditionFalse, ReasonFailed)
	disk.failure = nil
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}}); err != nil || len(disk.there) > 0 {
		t.Fatalf("%v, %v", err, disk.there)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: id}, &v1alpha1.FileSystem{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}}); err != nil {
		t.Error(err)
	}
	if err := Add(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "needs") {
		t.Error(err)
	}
}

// A snapshot goes with its object, also when its file system is gone, or going. An object that only a cache still has
// does not count.
func TestSnapshotsOfAFileSystemThatIsGone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const id, name = "fs-00000000000000001", "fssnap-00000000000000001"
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(aSnapshot(name, id)).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(aSnapshot(name, id)).Build()
	if err := api.Delete(t.Context(), aSnapshot(name, id)); err != nil {
		t.Fatal(err)
	}
	disk := &store{there: map[string]bool{}, kept: []string{name}}
	for _, of := range []struct {
		live client.Reader
		left int
	}{{live, 1}, {api, 0}} {
		r := &reconciler{store: disk, api: api, live: of.live}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}}); err != nil || len(disk.kept) != of.left {
			t.Errorf("left are %q, %v", disk.kept, err)
		}
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: name}, &v1alpha1.VolumeSnapshot{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func aSnapshot(name, system string) *v1alpha1.VolumeSnapshot {
	return &v1alpha1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.FinalizerVolumeSnapshot}}, Spec: v1alpha1.VolumeSnapshotSpec{FileSystemID: system},
	}
}

// A disk that is nearly full is told for as long as it is.
func TestDiskPressure(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.FileSystem{}).Build()
	disk := &store{there: map[string]bool{}}
	r := &reconciler{store: disk, api: api, live: api}
	if err := First(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	list := &v1alpha1.FileSystemList{}
	for _, test := range []struct {
		space filestore.Space
		want  metav1.ConditionStatus
	}{
		{filestore.Space{Total: 1000 << 20, Available: 100 << 20}, metav1.ConditionFalse},
		{filestore.Space{Total: 1000 << 20, Available: 50 << 20}, metav1.ConditionTrue},
		{filestore.Space{Total: 1000 << 20, Available: 100 << 20, Files: 1000, FilesAvailable: 10}, metav1.ConditionTrue},
		{filestore.Space{Total: 1000 << 20, Available: 51 << 20, Files: 1000, FilesAvailable: 11}, metav1.ConditionFalse},
	} {
		// A disk that is full may keep snapshots from being removed.
		if err := api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		disk.space, disk.stuck = test.space, nil
		if test.want == metav1.ConditionTrue {
			disk.stuck = errors.New("no space left on device")
			snapshot := aSnapshot("fssnap-00000000000000001", list.Items[0].Name)
			if err := errors.Join(client.IgnoreAlreadyExists(api.Create(t.Context(), snapshot)), client.IgnoreNotFound(api.Delete(t.Context(), snapshot))); err != nil {
				t.Fatal(err)
			}
		}
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: list.Items[0].Name}})
		if !errors.Is(err, disk.stuck) || err == nil && result.RequeueAfter == 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		if err := api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		conditions := list.Items[0].Status.Conditions
		if !meta.IsStatusConditionPresentAndEqual(conditions, v1alpha1.ConditionDiskPressure, test.want) || !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
			t.Errorf("%+v: %+v", test.space, conditions)
		}
	}
}
