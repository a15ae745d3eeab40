// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// grows is a claim that is bound, and asks for more.
func grows(wanted string) objects {
	return func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(wanted)}
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	}
}

// A block volume grows while pods have it: the disk, the device, and what is said of it.
func TestExpand(t *testing.T) {
	w, handle := blockWorld(t, grows("2Mi"))
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil {
		t.Fatal(err)
	}
	device, err := os.Open(w.attached(t)[0].Node())
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	events := record.NewFakeRecorder(10)
	e := &expander{w.node.cluster, w.controller, events}
	for range 2 {
		if err := e.expand(t.Context(), cache.ObjectName{Namespace: "shop", Name: "data"}); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := device.Seek(0, 2); err != nil || size != 2<<20 {
		t.Errorf("the device has %d bytes, %v", size, err)
	}
	claim, err := w.node.cluster.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := claim.Status; s.Capacity.Storage().String() != "2Mi" || len(s.Conditions) > 0 || len(s.AllocatedResourceStatuses) > 0 || asksForMore(claim) {
		t.Errorf("%+v", s)
	}
	volume, err := w.node.cluster.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-1", metav1.GetOptions{})
	if err != nil || volume.Spec.Capacity.Storage().String() != "2Mi" {
		t.Errorf("%v, %v", volume.Spec.Capacity, err)
	}
	if first, second := <-events.Events, <-events.Events; !strings.Contains(first, "Normal Resizing") || !strings.Contains(second, "Normal VolumeResizeSuccessful") || len(events.Events) > 0 {
		t.Errorf("%q, %q and %d more", first, second, len(events.Events))
	}
}

func TestExpandFails(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, says string
		infeasible   bool
		failure      bool
	}{
		"no room":                    {"1Pi", "MiB left", true, false},
		"the management plane fails": {"2Mi", "", false, true},
	} {
		handle := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
		w := newWorld(t, uses(nodeName, handle, grows(test.wanted))...)
		if _, err := w.CreateVolume(t.Context(), asks("pvc-1", nil)); err != nil {
			t.Fatal(err)
		}
		if test.failure {
			w.controller.management = failing{w.management}
		}
		e := &expander{w.node.cluster, w.controller, record.NewFakeRecorder(10)}
		if err := e.expand(t.Context(), cache.ObjectName{Namespace: "shop", Name: "data"}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Fatalf("%s: %v", name, err)
		}
		claim, err := w.node.cluster.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		infeasible := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible
		if len(claim.Status.Conditions) != 2 || infeasible != test.infeasible || claim.Status.Capacity.Storage().String() != "1Mi" {
			t.Errorf("%s: %+v", name, claim.Status)
		}
	}
}

// failing is a management plane that cannot be asked.
type failing struct{ client.Client }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("etcd is slow")
}

// Volumes of other drivers are not expanded.
func TestExpandLeaves(t *testing.T) {
	for name, change := range map[string]objects{
		"of another driver": func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.CSI.Driver = "x"
		},
		"of another claim": func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID = "d"
		},
		"not bound": func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		},
	} {
		cluster := kubernetesfake.NewClientset(uses(nodeName, own, func(p *corev1.Pod, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			grows("2Mi")(p, c, v)
			change(p, c, v)
		})...)
		e := &expander{cluster, nil, record.NewFakeRecorder(1)}
		if err := e.expand(t.Context(), cache.ObjectName{Namespace: "shop", Name: "data"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The controller sees a claim that begins to ask for more, and ends with its context.
func TestExpandController(t *testing.T) {
	handle := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
	w := newWorld(t, uses(nodeName, handle, grows("1Mi"))...)
	if _, err := w.CreateVolume(t.Context(), asks("pvc-1", nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		expand(ctx, w.node.cluster, w.controller)
		close(ended)
	}()
	claims := w.node.cluster.CoreV1().PersistentVolumeClaims("shop")
	for wanted := int64(2 << 20); ; wanted++ { // its watch begins a moment later
		claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.Value() >= 2<<20 {
			break
		}
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = *resource.NewQuantity(wanted, resource.BinarySI)
		if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // it polls, and ends with the test
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

func TestExpandVolumeRefuses(t *testing.T) {
	w := newWorld(t)
	if _, err := w.CreateVolume(t.Context(), asks("pvc-1", nil)); err != nil {
		t.Fatal(err)
	}
	green := &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: "fsap-00000000000000002"}, Spec: v1alpha1.AccessPointSpec{FileSystemID: own, Path: "/x", ClusterName: "green"}}
	if err := w.management.Create(t.Context(), green); err != nil {
		t.Fatal(err)
	}
	mine := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
	size := func(required, limit int64) *csi.CapacityRange {
		return &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit}
	}
	for name, test := range map[string]struct {
		id   string
		size *csi.CapacityRange
		code codes.Code
		want int64
	}{
		"no id": {"", size(1, 0), codes.InvalidArgument, 0}, "no size": {mine, nil, codes.InvalidArgument, 0}, "limit": {mine, size(2, 1), codes.OutOfRange, 0},
		"no handle": {"x", size(1, 0), codes.NotFound, 0}, "not there": {own + "::fsap-0000000000000000f", size(1, 0), codes.NotFound, 0},
		"a path": {own + ":/x", size(1, 0), codes.FailedPrecondition, 0}, "of another cluster": {own + "::" + green.Name, size(1, 0), codes.FailedPrecondition, 0},
		"smaller": {mine, size(1, 0), codes.OK, 1 << 20}, "too large": {mine, size(1<<60, 0), codes.ResourceExhausted, 0},
	} {
		response, err := w.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: test.id, CapacityRange: test.size})
		if status.Code(err) != test.code || response.GetCapacityBytes() != test.want {
			t.Errorf("%s: %v, %v; want %s", name, response, err, test.code)
		}
	}
}
