// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	kubernetestesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/storage/efs"
)

func class(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
}

// tells are what the objects of a cluster say, by class, and what was written.
func tells(t *testing.T, cluster *kubernetesfake.Clientset) (all, writes []string) {
	t.Helper()
	for _, action := range cluster.Actions() {
		if verb := action.GetVerb(); slices.Contains([]string{"create", "update", "delete"}, verb) {
			writes = append(writes, verb)
		}
	}
	cluster.ClearActions()
	listed, err := cluster.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range listed.Items {
		if one.NodeTopology == nil || len(one.NodeTopology.MatchLabels)+len(one.NodeTopology.MatchExpressions) > 0 {
			t.Errorf("the object of class %s is not about all nodes: %v", one.StorageClassName, one.NodeTopology)
		}
		all = append(all, one.Namespace+" "+one.StorageClassName+" "+one.Capacity.String())
	}
	slices.Sort(all)
	return all, writes
}

func TestCapacity(t *testing.T) {
	other := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}, NodeTopology: &metav1.LabelSelector{}, StorageClassName: "other", Capacity: new(resource.MustParse("1Gi")),
	}
	cluster := kubernetesfake.NewClientset(class("efs", efs.Driver), class("other", "ebs.csi.aws.com"), other)
	const others = "shop other 1Gi"
	long := strings.Repeat("a", 253)
	for _, step := range []struct {
		name   string
		change func() error
		room   int64
		all    []string
		writes []string
	}{
		{"first", nil, 10 << 30, []string{"kube-system efs 10Gi", others}, []string{"create"}},
		{"as before", nil, 10<<30 + 1, []string{"kube-system efs 10Gi", others}, nil},
		{"less", nil, 1 << 30, []string{"kube-system efs 1Gi", others}, []string{"update"}},
		{"another class", func() error {
			_, err := cluster.StorageV1().StorageClasses().Create(t.Context(), class(long, efs.Driver), metav1.CreateOptions{})
			return err
		}, 1 << 30, []string{"kube-system " + long + " 1Gi", "kube-system efs 1Gi", others}, []string{"create", "create"}},
		{"none", nil, 0, []string{"kube-system " + long + " 0", "kube-system efs 0", others}, []string{"update", "update"}},
		{"a class goes", func() error {
			return cluster.StorageV1().StorageClasses().Delete(t.Context(), long, metav1.DeleteOptions{})
		}, 0, []string{"kube-system efs 0", others}, []string{"delete", "delete"}},
	} {
		if step.change != nil {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
		}
		if err := (capacity{cluster}).tell(t.Context(), step.room); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if all, writes := tells(t, cluster); !slices.Equal(all, step.all) || !slices.Equal(writes, step.writes) {
			t.Errorf("%s: %q by %q, want %q by %q", step.name, all, writes, step.all, step.writes)
		}
	}
}

// One class whose object cannot be written keeps none from another.
func TestCapacityFails(t *testing.T) {
	cluster := kubernetesfake.NewClientset(class("a", efs.Driver), class("b", efs.Driver))
	cluster.PrependReactor("create", "csistoragecapacities", func(action kubernetestesting.Action) (bool, runtime.Object, error) {
		object, _ := action.(kubernetestesting.CreateAction).GetObject().(*storagev1.CSIStorageCapacity)
		return object.StorageClassName == "a", nil, errors.New("refused")
	})
	err := capacity{cluster}.tell(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "StorageClass a: refused") {
		t.Error(err)
	}
	if all, _ := tells(t, cluster); !slices.Equal(all, []string{"kube-system b 1"}) {
		t.Errorf("%q", all)
	}
	cluster.PrependReactor("list", "storageclasses", func(kubernetestesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	if err := (capacity{cluster}).tell(t.Context(), 1); err == nil {
		t.Error("classes that cannot be listed are none")
	}
	if all, writes := tells(t, cluster); len(all) != 1 || len(writes) > 0 {
		t.Errorf("%q by %q", all, writes)
	}
}

func TestRounded(t *testing.T) {
	for room, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 63: 63, 64: 64, 65: 64, 127: 126, 10 << 30: 10 << 30, 10<<30 + 9: 10 << 30, math.MaxInt64: 63 << 57} {
		if got := rounded(room); got != want {
			t.Errorf("%d is told as %d, want %d", room, got, want)
		}
	}
	for room := int64(1); room < 1<<40; room = room*5/4 + 1 {
		if got := rounded(room); got > room || got < room-room/32 {
			t.Errorf("%d is told as %d", room, got)
		}
	}
}

func TestClassesChange(t *testing.T) {
	cluster := kubernetesfake.NewClientset(class("efs", efs.Driver))
	// A clientset in memory sends a watch nothing that happened between the list and it.
	watched := make(chan struct{}, 1)
	cluster.PrependWatchReactor("storageclasses", func(action kubernetestesting.Action) (bool, watch.Interface, error) {
		w, err := cluster.Tracker().Watch(action.GetResource(), "")
		watched <- struct{}{}
		return true, w, err
	})
	changes, err := classesChange(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	<-changes // of the existing classes
	<-watched
	if err := cluster.StorageV1().StorageClasses().Delete(t.Context(), "efs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changes
}
