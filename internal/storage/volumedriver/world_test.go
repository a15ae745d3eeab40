// SPDX-License-Identifier: Apache-2.0

// These tests give directories to other users, so they need root.
package volumedriver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

const (
	clusterName = "blue"
	vpcID       = "vpc-0123456789abcdef0"
	machineID   = "i-0123456789abcdef0"
	nodeName    = "ip-172-31-0-5.ec2.internal"
	otherNode   = "ip-172-31-0-6.ec2.internal"
	own         = "fs-00000000000000001" // a file system that people made
	target      = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-1/mount"
)

var defaultID = v1alpha1.DefaultFileSystemID("123456789012")

// machines is a machine in memory, with sockets in a directory.
type machines struct {
	dir     string
	mounted map[string]string // target → source
	ro      map[string]bool
	failure error
	boots   map[string]string

	withdrawn []int // loop devices

	hang   map[string]chan struct{} // machines that do not answer until their channel is closed
	listen map[string]chan struct{} // machines that have no sockets until their channel is closed
}

func (m *machines) Boot(id string) (string, bool) { boot, ok := m.boots[id]; return boot, ok }

func (m *machines) Listen(id, socket string) (net.Listener, error) {
	if m.failure != nil {
		return nil, m.failure
	}
	if m.listen[id] != nil {
		<-m.listen[id]
		return nil, errors.New("it hangs")
	}
	path := filepath.Join(m.dir, id[len(id)-2:], filepath.Base(socket))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.RemoveAll(path)); err != nil {
		return nil, err
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

func (m *machines) LoopDevices() (map[int]bool, error) {
	all := map[int]bool{}
	for _, source := range m.mounted {
		if number, err := strconv.Atoi(strings.TrimPrefix(source, "/dev/loop")); err == nil {
			all[number] = true
		}
	}
	return all, m.failure
}

func (m *machines) WithdrawLoops(numbers ...int) error {
	m.withdrawn = append(m.withdrawn, numbers...)
	return m.failure
}

func (m *machines) Mount(_ string, source *os.File, target string, readOnly bool) error {
	if m.failure != nil {
		return m.failure
	}
	m.mounted[target], m.ro[target] = source.Name(), readOnly
	return nil
}

func (m *machines) Mounted(id string, source *os.File, target string) (bool, error) {
	if m.hang[id] != nil {
		<-m.hang[id]
	}
	return m.mounted[target] == source.Name(), m.failure
}

func (m *machines) MountedAt(_ string, source *os.File) (all []string, err error) {
	for target, is := range m.mounted {
		if is == source.Name() {
			all = append(all, target)
		}
	}
	return all, m.failure
}

func (m *machines) Writers(source *os.File) ([]string, error) {
	for target, is := range m.mounted {
		if is == source.Name() && !m.ro[target] {
			return []string{machineID}, m.failure
		}
	}
	return nil, m.failure
}

func (m *machines) Unmount(_, target string) error {
	delete(m.mounted, target)
	return m.failure
}

// world is a driver with everything around it in memory, and its files in a directory.
type world struct {
	*controller
	root       string
	node       *node
	machines   *machines
	management client.WithWatch
	failure    error // of the next write to the management plane
}

func newWorld(t *testing.T, cluster ...runtime.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{root: t.TempDir(), machines: &machines{dir: t.TempDir(), mounted: map[string]string{}, ro: map[string]bool{}, boots: map[string]string{}}}
	systems := []client.Object{}
	files := filestore.New(w.root)
	for _, id := range []string{defaultID, own} {
		system := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: id}}
		system.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		systems = append(systems, system)
		if err := files.Ensure(id); err != nil {
			t.Fatal(err)
		}
	}
	w.management = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(systems...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := w.take(); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := w.take(); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
	})
	mounts := volumemount.New(files, w.machines)
	t.Cleanup(func() {
		if err := volumemount.DetachAll(files); err != nil {
			t.Error(err)
		}
	})
	reaches := reach{vpcID: vpcID, defaultFileSystem: defaultID}
	w.controller = &controller{clusterName: clusterName, reach: reaches, management: w.management, files: files, mounts: mounts}
	w.node = &node{
		machine: machineID, name: nodeName, clusterName: clusterName, reach: reaches, management: w.management,
		cluster: kubernetes.Interface(kubernetesfake.NewClientset(cluster...)), mounts: mounts, files: files, usages: &usages{}, log: slog.New(slog.DiscardHandler),
	}
	return w
}

func (w *world) take() error {
	err := w.failure
	w.failure = nil
	return err
}

// uses are the objects of a pod on a node that uses a volume.
func uses(node, handle string, change func(*corev1.Pod, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume)) []runtime.Object {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u"}}
	pod.Spec.NodeName = node
	pod.Spec.Volumes = []corev1.Volume{{Name: "none"}, {Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "c"}}
	claim.Spec.VolumeName = "pvc-1"
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: efs.Driver, VolumeHandle: handle}
	volume.Spec.ClaimRef = &corev1.ObjectReference{UID: "c"}
	if change != nil {
		change(pod, claim, volume)
	}
	return []runtime.Object{pod, claim, volume}
}
