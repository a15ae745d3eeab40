// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

type objects = func(*corev1.Pod, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume)

// A machine gets a volume if a pod of its node uses it, whatever the machine says, and only then.
func TestAuthorize(t *testing.T) {
	const handle = own + ":/a"
	for name, test := range map[string]struct {
		node     string
		change   objects
		code     codes.Code
		readOnly bool
	}{
		"uses it":         {nodeName, nil, codes.OK, false},
		"on another node": {otherNode, nil, codes.PermissionDenied, false},
		"over": {nodeName, func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Status.Phase = corev1.PodFailed
		}, codes.PermissionDenied, false},
		"another volume": {nodeName, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.CSI.VolumeHandle = own
		}, codes.PermissionDenied, false},
		"another driver": {nodeName, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.CSI.Driver = "x"
		}, codes.PermissionDenied, false},
		"not of this claim": {nodeName, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID = "d"
		}, codes.PermissionDenied, false},
		"not bound": {nodeName, func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.VolumeName = ""
		}, codes.PermissionDenied, false},
		"of another pod": {nodeName, func(p *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			c.Name = "db-data"
		}, codes.PermissionDenied, false},
		"ephemeral": {nodeName, func(p *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			c.Name, c.OwnerReferences = "db-data", []metav1.OwnerReference{{UID: p.UID, Controller: new(true)}}
		}, codes.OK, false},
		"no claim":  {nodeName, func(_ *corev1.Pod, c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Name = "other" }, codes.PermissionDenied, false},
		"no volume": {nodeName, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Name = "other" }, codes.PermissionDenied, false},
		"beside a claim that there is not": {nodeName, func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nowhere"}
			p.Spec.Volumes = append([]corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}, p.Spec.Volumes...)
		}, codes.OK, false},
		"pod only reads": {nodeName, func(p *corev1.Pod, _ *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.Volumes[1].PersistentVolumeClaim.ReadOnly = true
		}, codes.OK, true},
		"only read": {nodeName, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.AccessModes[0] = corev1.ReadOnlyMany
		}, codes.OK, true},
	} {
		w := newWorld(t, uses(test.node, handle, test.change)...)
		got, err := authorize(t.Context(), w.node.cluster, nodeName, handle)
		if status.Code(err) != test.code || got.readOnly != test.readOnly {
			t.Errorf("%s: %+v, %v; want %s, read-only %t", name, got, err, test.code, test.readOnly)
		}
	}
}

func publish(id, at string) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{VolumeId: id, TargetPath: at, VolumeCapability: mounts()[0]}
}

func TestPublish(t *testing.T) {
	const (
		point = "fsap-00000000000000001" // that people made
		green = "fsap-00000000000000002" // of another cluster
		late  = "fsap-00000000000000003" // whose directory is made when it is mounted
		mixed = "fsap-00000000000000004" // that people made in the default file system
	)
	for name, test := range map[string]struct {
		handle string
		code   codes.Code
		says   string
		source string
	}{
		"file system":                {own, codes.OK, "", own + "/data"},
		"path":                       {own + ":/made", codes.OK, "", own + "/data/made"},
		"access point":               {own + "::" + point, codes.OK, "", own + "/data/made"},
		"path below an access point": {own + ":/inner:" + point, codes.OK, "", own + "/data/made/inner"},
		"directory is made":          {own + "::" + late, codes.OK, "", own + "/data/late"},
		"link":                       {own + ":/link", codes.Unavailable, "link", ""},
		"not there":                  {own + ":/none", codes.NotFound, "nothing at /none", ""},
		"no file system":             {"fs-0000000000000000f", codes.NotFound, "no file system", ""},
		"no access point":            {own + "::fsap-0000000000000000f", codes.NotFound, "no access point", ""},
		"of another file system":     {defaultID + "::" + point, codes.NotFound, "not of", ""},
		"of another cluster":         {own + "::" + green, codes.PermissionDenied, "not one of cluster blue", ""},
		"default file system":        {defaultID, codes.PermissionDenied, "muster create filesystem", ""},
		"path of the default":        {defaultID + ":/x", codes.PermissionDenied, "muster create filesystem", ""},
		"point in the default":       {defaultID + "::" + mixed, codes.PermissionDenied, "not one of cluster", ""},
		"no handle":                  {"nonsense", codes.NotFound, "invalid volume handle", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, uses(nodeName, test.handle, nil)...)
			for id, spec := range map[string]v1alpha1.AccessPointSpec{
				point: {FileSystemID: own, Path: "/made"},
				green: {FileSystemID: own, Path: "/made", ClusterName: "green"},
				late:  {FileSystemID: own, Path: "/late", Owner: &v1alpha1.DirectoryOwner{Permissions: "700"}},
				mixed: {FileSystemID: defaultID, Path: "/"},
			} {
				if err := w.management.Create(t.Context(), &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: spec}); err != nil {
					t.Fatal(err)
				}
			}
			data := filepath.Join(w.root, own, "data")
			if err := errors.Join(os.MkdirAll(filepath.Join(data, "made", "inner"), 0o700), os.Symlink("/etc", filepath.Join(data, "link"))); err != nil {
				t.Fatal(err)
			}
			_, err := w.node.NodePublishVolume(t.Context(), publish(test.handle, target))
			if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.says) {
				t.Fatalf("%v; want %s about %q", err, test.code, test.says)
			}
			if source := w.machines.mounted[target]; (test.source == "") != (source == "") || test.source != "" && filepath.Clean(source) != filepath.Join(w.root, test.source) {
				t.Errorf("%q is mounted", source)
			}
			if test.code != codes.OK {
				return
			}
			stats, err := w.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: test.handle, VolumePath: target})
			if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetAvailable() <= 0 || stats.GetUsage()[1].GetUsed() < 1 {
				t.Errorf("%v, %v", stats, err)
			}
			if _, err := w.node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: test.handle, TargetPath: target}); err != nil || len(w.machines.mounted) > 0 {
				t.Errorf("%v, %v is left", err, w.machines.mounted)
			}
			if _, err := w.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: test.handle, VolumePath: target}); status.Code(err) != codes.NotFound {
				t.Errorf("figures of what is not mounted: %v", err)
			}
		})
	}
}

func TestPublishRefuses(t *testing.T) {
	w := newWorld(t, uses(otherNode, own, nil)...)
	if _, err := w.node.NodePublishVolume(t.Context(), publish(own, target)); status.Code(err) != codes.PermissionDenied || len(w.machines.mounted) > 0 {
		t.Errorf("a volume of another node's pod: %v, %v", err, w.machines.mounted)
	}
	for name, request := range map[string]*csi.NodePublishVolumeRequest{
		"no id": publish("", target), "no target": publish(own, ""), "no capability": {VolumeId: own, TargetPath: target},
	} {
		if _, err := w.node.NodePublishVolume(t.Context(), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	w = newWorld(t, uses(nodeName, own, nil)...)
	w.machines.failure = errors.New("it has just stopped")
	if _, err := w.node.NodePublishVolume(t.Context(), publish(own, target)); status.Code(err) != codes.Unavailable {
		t.Errorf("on a machine that has stopped: %v", err)
	}
}

// A read-only volume is mounted read-only, whatever the kubelet asks for.
func TestPublishReadOnly(t *testing.T) {
	change := func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
		v.Spec.CSI.ReadOnly = true
	}
	w := newWorld(t, uses(nodeName, own, change)...)
	if _, err := w.node.NodePublishVolume(t.Context(), publish(own, target)); err != nil || !w.machines.ro[target] {
		t.Errorf("%v, read-only: %t", err, w.machines.ro[target])
	}
}

func TestCapabilitiesOfClaims(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod}
	for _, one := range capabilities(claim, nil) {
		if one.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_UNKNOWN || one.GetMount() == nil {
			t.Errorf("%v", one)
		}
	}
	claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	if got := capabilities(claim, nil); got[0].GetBlock() == nil {
		t.Errorf("%v", got)
	}
}

// A volume for one pod only (ReadWriteOncePod) is not mounted for a second pod, and again for the first.
func TestPublishAlone(t *testing.T) {
	w := newWorld(t, uses(nodeName, own, nil)...)
	request := publish(own, target)
	request.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	if _, err := w.node.NodePublishVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	request.TargetPath = target + "-2"
	if _, err := w.node.NodePublishVolume(t.Context(), request); status.Code(err) != codes.FailedPrecondition || len(w.machines.mounted) != 1 {
		t.Errorf("a second pod: %v", err)
	}
	request.TargetPath = target
	if _, err := w.node.NodePublishVolume(t.Context(), request); err != nil {
		t.Errorf("once more: %v", err)
	}
}
