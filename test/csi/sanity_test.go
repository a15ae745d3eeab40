// SPDX-License-Identifier: Apache-2.0

// Package csi holds upstream's csi-sanity against the volume driver. It is a module of its own, since this one does not
// link the suite.
//
// The driver is the real one behind real sockets, with real directories, disks, loop devices and mounts; the host
// stands for the machine, and copying for a file system that shares the content of copies. The management plane and the
// cluster are in memory: what the suite creates by CSI has no claim, and the driver mounts nothing that no pod uses, so
// the test makes the objects that the cluster would have.
package csi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	ginkgotypes "github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumedriver"
	"muster.dev/muster/internal/storage/volumemount"
)

const (
	machine    = "i-0123456789abcdef0"
	nodeName   = "ip-172-31-0-5.ec2.internal"
	fileSystem = "fs-00000000000000001"
)

// The suite runs once for volumes that are directories and once for those that are block devices. Specs are registered
// before it runs, and are told then where the driver is.
var directories, blocks = sanity.NewTestConfig(), sanity.NewTestConfig()

var _ = ginkgo.Describe("directories", func() { sanity.GinkgoTest(&directories) })

var _ = ginkgo.Describe("block devices", func() { sanity.GinkgoTest(&blocks) })

// reasons are why specs are skipped: what the driver has not, and says so by its capabilities. Another one is a
// failure.
var reasons = []string{
	// There is nothing to attach: volumes are on the host.
	"Controller Publish, UnpublishVolume not supported", "ControllerPublishVolume not supported", "ControllerUnpublishVolume not supported",
	// For monitors, and drivers that attach; `kubectl get accesspoints` lists volumes.
	"ListVolumes not supported", "ControllerGetVolumeHealth not supported", "ControllerListVolumeHealth not supported", "NodeGetVolumeHealth not supported",
	"NodeGetStorageHealth not supported",
	// ListSnapshots finds one, too. There are no snapshots of groups of volumes.
	"GetSnapshot not supported", "GroupControllerService not supported",
	// They are on one host, as volumes are.
	"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported",
	// No parameter of a volume can be changed.
	"ModifyVolume not supported", "Modify Volume not supported", "ControllerModifyVolume not supported",
	// One step mounts a volume.
	"NodeStageVolume not supported", "NodeUnstageVolume not supported",
	// The controller does it all.
	"NodeExpandVolume not supported", "Service does not support NodeExpandVolume",
	// Nothing limits how many volumes a node has.
	"testnodevolumeattachlimit not enabled",
}

func TestSanity(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts directories and devices, which needs root")
	}
	dir := t.TempDir()
	for kind, config := range map[string]*sanity.TestConfig{"mount": &directories, "block": &blocks} {
		own := filepath.Join(dir, kind)
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		config.Address = "unix:" + serve(t, own)
		config.TargetPath, config.StagingPath = filepath.Join(own, "target"), filepath.Join(own, "staging")
		config.TestVolumeAccessType = kind
		config.TestVolumeSize, config.TestVolumeExpandSize = 16<<20, 32<<20
		config.TestVolumeParameters = map[string]string{"provisioningMode": "efs-ap", "fileSystemId": fileSystem, "directoryPerms": "700"}
		config.IDGen = ids{}
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Log("this kernel has no loop devices: the specs about block devices are left out")
		suite.SkipStrings = append(suite.SkipStrings, "block devices")
	}
	reporter.Succinct = true
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)
	if left := loops(t, dir); len(left) > 0 {
		t.Errorf("loop devices are left: %+v", left)
	}
}

var _ = ginkgo.ReportAfterSuite("why specs were skipped", func(report ginkgo.Report) {
	passed, skipped, unknown := 0, 0, map[string]bool{}
	for _, spec := range report.SpecReports {
		switch {
		case spec.State.Is(ginkgotypes.SpecStatePassed):
			passed++
		case spec.State.Is(ginkgotypes.SpecStateSkipped) && spec.Failure.Message != "":
			skipped++
			if !slices.ContainsFunc(reasons, func(reason string) bool { return strings.EqualFold(reason, spec.Failure.Message) }) {
				unknown[spec.Failure.Message] = true
			}
		}
	}
	ginkgo.GinkgoWriter.Printf("%d passed, %d skipped for want of a capability\n", passed, skipped)
	if len(unknown) > 0 {
		ginkgo.Fail(fmt.Sprintf("specs were skipped for reasons that nobody knows: %q", slices.Sorted(maps.Keys(unknown))))
	}
})

// serve serves the driver at a socket in a directory.
func serve(t *testing.T, dir string) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	system := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: fileSystem}}
	system.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	management := fake.NewClientBuilder().WithScheme(scheme).WithObjects(system).Build()
	// Whatever file system this host has: that content is really shared, the store's own tests hold.
	files := filestore.NewReflinking(filepath.Join(dir, "files"), func(to, from *os.File) error {
		_, err := io.Copy(to, from)
		return err
	})
	if err := files.Ensure(fileSystem); err != nil {
		t.Fatal(err)
	}
	cluster := kubernetesfake.NewClientset()
	driver, err := volumedriver.New(volumedriver.Config{
		ClusterName: "blue", Inventory: management, Management: management, Cluster: cluster,
		Snapshots: dynamicfake.NewSimpleDynamicClient(scheme), Machines: host{dir}, Mounts: volumemount.New(files, host{dir}), Files: files, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, driver.Identity())
	csi.RegisterControllerServer(server, provisioner{driver.Controller(), cluster})
	csi.RegisterNodeServer(server, driver.Node(machine, nodeName))
	socket := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		mounts, err := host{dir}.mounts() // of specs that failed
		for _, fields := range mounts {
			_ = unix.Unmount(fields[4], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		if err := errors.Join(err, <-ended, volumemount.DetachAll(files)); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// provisioner makes the objects of a cluster for each volume: a PersistentVolume, its claim, and a pod that uses it.
type provisioner struct {
	csi.ControllerServer
	cluster kubernetes.Interface
}

func (p provisioner) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	response, err := p.ControllerServer.CreateVolume(ctx, request)
	if err != nil {
		return nil, err
	}
	id := response.GetVolume().GetVolumeId()
	name := strings.NewReplacer(":", "-").Replace(id)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: efs.Driver, VolumeHandle: id}
	volume.Spec.ClaimRef = &corev1.ObjectReference{UID: types.UID(name)}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	claim.Spec.VolumeName = name
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	pod.Spec.NodeName = nodeName
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	core := p.cluster.CoreV1()
	_, _ = core.PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}) // each may be there
	_, _ = core.PersistentVolumeClaims("shop").Create(ctx, claim, metav1.CreateOptions{})
	_, _ = core.Pods("shop").Create(ctx, pod, metav1.CreateOptions{})
	return response, nil
}

// ids makes ids of volumes that are not there.
type ids struct{}

func (ids) GenerateUniqueValidVolumeID() string { return fileSystem + "::fsap-0000000000000000f" }
func (ids) GenerateInvalidVolumeID() string     { return "not a handle" }
func (ids) GenerateUniqueValidNodeID() string   { return "i-0000000000000000f" }
func (ids) GenerateInvalidNodeID() string       { return "not a node" }

// host mounts on the host, below a directory.
type host struct{ dir string }

func (h host) Boot(string) (string, bool)                  { return "", false }
func (h host) Listen(string, string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func (h host) Mount(_ string, source *os.File, target string, readOnly bool) error {
	if !strings.HasPrefix(target, h.dir+"/") {
		return fmt.Errorf("%s is not below %s", target, h.dir)
	}
	if mounted, err := h.Mounted("", source, target); mounted || err != nil {
		return err
	}
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o750)
	} else {
		err = os.WriteFile(target, nil, 0o600)
	}
	if err != nil {
		return err
	}
	return unix.Mount("/proc/self/fd/"+strconv.Itoa(int(source.Fd())), target, "", unix.MS_BIND, "")
}

func (h host) Mounted(_ string, source *os.File, target string) (bool, error) {
	var want, is unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &want); err != nil {
		return false, err
	}
	if err := unix.Lstat(target, &is); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return want.Dev == is.Dev && want.Ino == is.Ino, nil
}

func (h host) MountedAt(_ string, source *os.File) (found []string, err error) {
	mounts, err := h.mounts()
	if err != nil {
		return nil, err
	}
	for _, fields := range mounts {
		if mounted, err := h.Mounted("", source, fields[4]); err != nil {
			return nil, err
		} else if mounted {
			found = append(found, fields[4])
		}
	}
	return found, nil
}

func (h host) Writers(source *os.File) ([]string, error) {
	found, err := h.MountedAt("", source)
	if len(found) == 0 {
		return nil, err
	}
	return []string{machine}, err
}

// mounts are the lines of /proc/self/mountinfo about mounts below the directory, in fields.
func (h host) mounts() ([][]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all [][]string
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], h.dir+"/") {
			all = append(all, fields)
		}
	}
	return all, nil
}

func (h host) Unmount(_, target string) error {
	for unix.Unmount(target, unix.UMOUNT_NOFOLLOW) == nil {
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// WithdrawLoops implements [volumemount.Machines].
func (host) WithdrawLoops(...int) error { return nil }

func (h host) LoopDevices() (map[int]bool, error) {
	mounts, err := h.mounts()
	if err != nil {
		return nil, err
	}
	all := map[int]bool{}
	for _, fields := range mounts {
		if number, err := strconv.Atoi(strings.TrimPrefix(fields[3], "/loop")); err == nil {
			all[number] = true
		}
	}
	return all, nil
}

// loops are the devices whose files are below a directory.
func loops(t *testing.T, dir string) []loopdevice.Device {
	t.Helper()
	all, err := loopdevice.List()
	if err != nil {
		t.Fatal(err)
	}
	var left []loopdevice.Device
	for _, d := range all {
		if strings.HasPrefix(d.Path, dir+"/") {
			left = append(left, d)
		}
	}
	return left
}
