// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// A file system is mounted, and volumes are made in it, by the clusters that its spec names, and with mount targets in
// their VPC alone.
func TestReach(t *testing.T) {
	target := func(system, vpc string) string { return fmt.Sprintf(`{"fileSystem":%q,"vpc":%q}`, system, vpc) }
	const (
		here, there = vpcID, "vpc-0123456789abcdef1"
		point       = "fsap-00000000000000001" // of this cluster, in its own file system
	)
	for name, test := range map[string]struct {
		clusters []string
		records  []string
		other    bool // the records are of another type
		code     codes.Code
		says     string
	}{
		"for all":                      {nil, nil, false, codes.OK, ""},
		"for this one":                 {[]string{"green", clusterName}, nil, false, codes.OK, ""},
		"for another one":              {[]string{"green"}, nil, false, codes.PermissionDenied, "is for other clusters than blue"},
		"a mount target here":          {nil, []string{target(own, there), target(own, here)}, false, codes.OK, ""},
		"another's mount target":       {nil, []string{target("fs-0123456789abcdef1", there)}, false, codes.OK, ""},
		"a mount target elsewhere":     {nil, []string{target(own, there)}, false, codes.PermissionDenied, "fsmt-0 in " + there},
		"named, and elsewhere":         {[]string{clusterName}, []string{target(own, there)}, false, codes.PermissionDenied, "another VPC"},
		"here, and not named":          {[]string{"green"}, []string{target(own, here)}, false, codes.PermissionDenied, "for other clusters"},
		"a record that cannot be read": {nil, []string{`{"fileSystem":1}`}, false, codes.Unavailable, "fsmt-0"},
		"a record of something else":   {nil, []string{target(own, there)}, true, codes.OK, ""},
	} {
		for _, handle := range []string{own, own + ":/made", own + "::" + point} {
			w := newWorld(t, uses(nodeName, handle, nil)...)
			w.limit(t, own, test.clusters, test.records, test.other)
			made := &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: point}, Spec: v1alpha1.AccessPointSpec{FileSystemID: own, Path: "/made", ClusterName: clusterName}}
			made.Spec.Owner = &v1alpha1.DirectoryOwner{Permissions: "700"}
			if err := w.management.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			if err := makeDirectory(w.files, made); err != nil {
				t.Fatal(err)
			}
			_, err := w.node.NodePublishVolume(t.Context(), publish(handle, "/pods/x/mount"))
			if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.says) || (len(w.machines.mounted) > 0) != (test.code == codes.OK) {
				t.Errorf("%s: %s: %v; want %s about %q", name, handle, err, test.code, test.says)
			}
		}
		w := newWorld(t)
		w.limit(t, own, test.clusters, test.records, test.other)
		_, err := w.CreateVolume(t.Context(), asks("pvc-1", map[string]string{"fileSystemId": own}))
		if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.says) {
			t.Errorf("%s: a new volume: %v; want %s about %q", name, err, test.code, test.says)
		}
	}
}

// Mount targets of the default file system keep no cluster from it; the clusters that its spec names do.
func TestReachOfDefault(t *testing.T) {
	request := asks("pvc-1", map[string]string{"fileSystemId": defaultID})
	w := newWorld(t)
	w.limit(t, defaultID, nil, []string{`{"fileSystem":"` + defaultID + `","vpc":"vpc-0123456789abcdef1"}`}, false)
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Error(err)
	}
	w = newWorld(t)
	w.limit(t, defaultID, []string{"green"}, nil, false)
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.PermissionDenied {
		t.Errorf("in a default file system for another cluster: %v", err)
	}
}

// Data of a file system that is for other clusters by now is not taken out of it, neither by copies nor by snapshots.
func TestReachOfCopies(t *testing.T) {
	for name, test := range map[string]struct{ clusters, records []string }{
		"for another one":          {clusters: []string{"green"}},
		"a mount target elsewhere": {records: []string{`{"fileSystem":"` + own + `","vpc":"vpc-0123456789abcdef1"}`}},
	} {
		w, volume := copyWorld(t, copying)
		before, err := w.CreateSnapshot(t.Context(), asksSnapshot("before", volume))
		if err != nil {
			t.Fatal(err)
		}
		w.limit(t, own, test.clusters, test.records, false)
		for _, request := range []*csi.CreateVolumeRequest{asksCopy("copy", volume), asksRestore("copy", before.GetSnapshot().GetSnapshotId())} {
			request.Parameters["fileSystemId"] = defaultID
			if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.PermissionDenied || w.point(t, "copy") != nil {
				t.Errorf("%s: a volume of %v: %v", name, request.GetVolumeContentSource(), err)
			}
		}
		if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("after", volume)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: a snapshot: %v", name, err)
		}
		if files, objects := w.snapshots(t); len(files) != 1 || len(objects) != 1 {
			t.Errorf("%s: there are %q and %q", name, files, objects)
		}
		if _, err := w.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: before.GetSnapshot().GetSnapshotId()}); err != nil {
			t.Errorf("%s: what is there is not removed: %v", name, err)
		}
	}
}

// limit has a file system be for some clusters, and makes records of mount targets.
func (w *world) limit(t *testing.T, id string, clusters, records []string, other bool) {
	t.Helper()
	system := &v1alpha1.FileSystem{}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: id}, system); err != nil {
		t.Fatal(err)
	}
	system.Spec.Clusters = clusters
	if err := w.management.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	for n, data := range records {
		record := &v1alpha1.AWSRecord{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fsmt-%d", n)}}
		record.Spec = v1alpha1.AWSRecordSpec{Type: "efs-mount-target", Data: runtime.RawExtension{Raw: []byte(data)}}
		if other {
			record.Spec.Type = "internet-gateway"
		}
		if err := w.management.Create(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
}
