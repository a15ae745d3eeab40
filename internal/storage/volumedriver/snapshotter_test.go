// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/record"
	provisioning "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
)

// snapshotObjects are the objects of the kinds of snapshots of a cluster, from YAML.
func snapshotObjects(texts ...string) *dynamicfake.FakeDynamicClient {
	var all []runtime.Object
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			panic(err)
		}
		all = append(all, object)
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		snapshotsResource: "VolumeSnapshotList", snapshotClassResource: "VolumeSnapshotClassList", snapshotContentsByName: "VolumeSnapshotContentList",
	}, all...)
}

const (
	classOfSnapshots = `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: c}, driver: efs.csi.aws.com, deletionPolicy: Delete, parameters: {csi.storage.k8s.io/snapshotter-secret-name: s}}`
	// contentOf is a content with a policy, a source, and what else there is of its metadata.
	contentOf = `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {name: content, finalizers: [a/b, snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection]%[3]s},
  spec: {deletionPolicy: %[1]s, driver: efs.csi.aws.com, source: {%[2]s}, volumeSnapshotClassName: c, volumeSnapshotRef: {namespace: shop, name: s, uid: u}}}`
	going = `, deletionTimestamp: "2026-01-01T00:00:00Z"`
	mark  = `, annotations: {snapshot.storage.kubernetes.io/volumesnapshot-being-deleted: "yes"}`
)

// snapshotWorld is a copyWorld with a snapshotter.
func snapshotWorld(t *testing.T, reflink func(to, from *os.File) error, texts ...string) (w *world, s *snapshotter, told *record.FakeRecorder) {
	t.Helper()
	w, volume := copyWorld(t, reflink)
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], "VOLUME", `"`+volume+`"`)
	}
	told = record.NewFakeRecorder(10)
	return w, &snapshotter{cluster: w.node.cluster, objects: snapshotObjects(texts...), clusterName: clusterName, volumes: w.controller, events: told}, told
}

// content is the content as it is in the cluster; nil if it has gone.
func (s *snapshotter) content(t *testing.T) *snapshotContent {
	t.Helper()
	content := &snapshotContent{}
	err := readSnapshot(t.Context(), s.contents(), "content", content)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

var nameOfSnapshot = v1alpha1.VolumeSnapshotID(clusterName, "snapshot-u")

func TestSnapshotterMakes(t *testing.T) {
	w, s, told := snapshotWorld(t, copying, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""))
	for range 2 {
		if err := s.sync(t.Context(), "content"); err != nil {
			t.Fatal(err)
		}
		is := s.content(t).Status
		if is.SnapshotHandle != nameOfSnapshot || !is.ReadyToUse || is.RestoreSize != 1<<20 || is.Error != nil || time.Unix(0, is.CreationTime).Year() < 2000 {
			t.Errorf("%+v", is)
		}
	}
	if files, objects := w.snapshots(t); len(files) != 1 || len(objects) != 1 || len(told.Events) > 0 {
		t.Errorf("%q, %q, %d Events", files, objects, len(told.Events))
	}
	if err := s.sync(t.Context(), "another"); err != nil {
		t.Errorf("a content that has gone: %v", err)
	}
}

// A failure is told once, and the snapshot is tried again until it is made.
func TestSnapshotterFails(t *testing.T) {
	for name, test := range map[string]struct {
		reflink func(to, from *os.File) error
		class   string
		content string
		says    string
	}{
		"no class":       {copying, strings.Replace(classOfSnapshots, "name: c", "name: d", 1), fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""), `Failed to create snapshot: the VolumeSnapshotClass: volumesnapshotclasses.snapshot.storage.k8s.io "c" not found`},
		"names no class": {copying, classOfSnapshots, strings.Replace(fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""), "volumeSnapshotClassName: c, ", "", 1), "has no VolumeSnapshotClass"},
		"not bound":      {copying, classOfSnapshots, strings.Replace(fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""), ", uid: u", "", 1), "not bound"},
		"parameters":     {copying, strings.Replace(classOfSnapshots, "csi.storage.k8s.io/snapshotter-secret-name", "tags", 1), fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""), `parameters ["tags"] mean nothing`},
		"not there":      {copying, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "snapshotHandle: fssnap-00000000000000009", ""), "SnapshotContentCheckandUpdateFailed Failed to check and update snapshot content: there is no snapshot fssnap-00000000000000009 of cluster blue"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, told := snapshotWorld(t, test.reflink, test.class, test.content)
			for range 2 {
				if err := s.sync(t.Context(), "content"); err == nil {
					t.Error("no error")
				}
			}
			is := s.content(t).Status
			if is.ReadyToUse || is.Error == nil || is.Error.Time == nil {
				t.Fatalf("%+v", is)
			}
			if len(told.Events) != 1 {
				t.Fatalf("%d Events", len(told.Events))
			}
			if event := <-told.Events; !strings.HasPrefix(event, "Warning ") || !strings.Contains(event, test.says) || !strings.HasSuffix(event, is.Error.Message) {
				t.Errorf("Event %q, want %q", event, test.says)
			}
			if files, objects := w.snapshots(t); len(files)+len(objects) > 0 {
				t.Errorf("left are %q and %q", files, objects)
			}
		})
	}
}

// slow are volumes whose snapshots take longer than there is time.
type slow struct{ csi.ControllerServer }

func (slow) CreateSnapshot(ctx context.Context, _ *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A snapshot that takes too long is told, too. A snapshot that ends with the service is not.
func TestSnapshotterTakesTooLong(t *testing.T) {
	for name, ends := range map[string]bool{"too long": false, "the service ends": true} {
		_, s, told := snapshotWorld(t, copying, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""))
		s.volumes = slow{}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if ends {
				time.AfterFunc(time.Second, cancel)
			}
			if err := s.sync(ctx, "content"); err == nil {
				t.Error(name)
			}
		})
		if is := s.content(t).Status.Error; ends != (is == nil) || ends != (len(told.Events) == 0) || is != nil && !strings.Contains(is.Message, "longer than 30m0s") {
			t.Errorf("%s: %+v, %d Events", name, is, len(told.Events))
		}
	}
}

// A failure that has passed is in the status no more.
func TestSnapshotterGoesOn(t *testing.T) {
	fails := true
	_, s, _ := snapshotWorld(t, func(to, from *os.File) error {
		if fails {
			return unix.EIO
		}
		return copying(to, from)
	}, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""))
	if err := s.sync(t.Context(), "content"); err == nil || s.content(t).Status.Error == nil {
		t.Fatal(err)
	}
	fails = false
	if err := s.sync(t.Context(), "content"); err != nil {
		t.Fatal(err)
	}
	if is := s.content(t).Status; !is.ReadyToUse || is.Error != nil {
		t.Errorf("%+v", is)
	}
}

// A content that is made by hand gets what its snapshot is, and others keep what is theirs.
func TestSnapshotterFinds(t *testing.T) {
	w, s, _ := snapshotWorld(t, copying, fmt.Sprintf(contentOf, "Retain", "snapshotHandle: "+v1alpha1.VolumeSnapshotID(clusterName, "before"), ""))
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("before", own+"::"+v1alpha1.VolumeAccessPointID(clusterName, "source"))); err != nil {
		t.Fatal(err)
	}
	if err := s.sync(t.Context(), "content"); err != nil {
		t.Fatal(err)
	}
	if is := s.content(t).Status; !is.ReadyToUse || is.SnapshotHandle != v1alpha1.VolumeSnapshotID(clusterName, "before") || is.RestoreSize != 1<<20 {
		t.Errorf("%+v", is)
	}
	_, s, told := snapshotWorld(t, copying, strings.Replace(fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", going+mark), "efs.csi", "ebs.csi", 1))
	if err := s.sync(t.Context(), "content"); err != nil || len(told.Events) > 0 || len(s.content(t).Finalizers) != 2 {
		t.Errorf("another driver's content: %v", err)
	}
}

func TestSnapshotterRemoves(t *testing.T) {
	source := "snapshotHandle: " + nameOfSnapshot
	for name, test := range map[string]struct {
		policy, source, meta string
		status               string
		change               func(string) string
		stays, held          bool
	}{
		"by its handle":        {policy: "Delete", source: "volumeHandle: VOLUME", meta: going + mark, status: "status: {readyToUse: true, snapshotHandle: " + nameOfSnapshot + "}"},
		"half made":            {policy: "Delete", source: "volumeHandle: VOLUME", meta: going + mark},
		"retained":             {policy: "Retain", source: "volumeHandle: VOLUME", meta: going + mark, stays: true},
		"still needed":         {policy: "Delete", source: "volumeHandle: VOLUME", meta: going, stays: true, held: true},
		"made by hand":         {policy: "Delete", source: source, meta: going + mark, status: "status: {readyToUse: true, snapshotHandle: " + nameOfSnapshot + "}"},
		"made by hand, bound":  {policy: "Delete", source: source, meta: going, stays: true, held: true},
		"by hand, never bound": {policy: "Delete", source: source, meta: going, stays: true, change: func(s string) string { return strings.Replace(s, ", uid: u", "", 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(contentOf, test.policy, test.source, test.meta)
			if test.status != "" {
				text = strings.TrimSuffix(text, "}") + ", " + test.status + "}"
			}
			if test.change != nil {
				text = test.change(text)
			}
			w, s, _ := snapshotWorld(t, copying, classOfSnapshots, text)
			if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("snapshot-u", own+"::"+v1alpha1.VolumeAccessPointID(clusterName, "source"))); err != nil {
				t.Fatal(err)
			}
			for range 2 { // once more, as after a crash
				if err := s.sync(t.Context(), "content"); err != nil {
					t.Fatal(err)
				}
			}
			files, objects := w.snapshots(t)
			if stays := len(files) == 1 && len(objects) == 1; stays != test.stays || len(files) != len(objects) {
				t.Errorf("there are %q and %q", files, objects)
			}
			want := "a/b"
			if test.held {
				want += " " + finalizerContent
			}
			if got := strings.Join(s.content(t).Finalizers, " "); got != want {
				t.Errorf("it is held by %s, want %s", got, want)
			}
		})
	}
}

func TestSnapshotterCannotRemove(t *testing.T) {
	w, s, told := snapshotWorld(t, copying, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", going+mark))
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("snapshot-u", own+"::"+v1alpha1.VolumeAccessPointID(clusterName, "source"))); err != nil {
		t.Fatal(err)
	}
	w.failure = errors.New("etcd is slow")
	if err := s.sync(t.Context(), "content"); err == nil || len(s.content(t).Finalizers) != 2 {
		t.Errorf("the content goes before its snapshot: %v", err)
	}
	if event := <-told.Events; !strings.Contains(event, "SnapshotDeleteError Failed to delete snapshot: ") {
		t.Error(event)
	}
}

// The kinds may come and go while the driver runs.
func TestSnapshotterWaitsForTheKinds(t *testing.T) {
	w, s, _ := snapshotWorld(t, copying, classOfSnapshots, fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", ""))
	discovery := s.cluster.Discovery().(*discoveryfake.FakeDiscovery)
	if has, err := s.hasKinds(); has || err != nil {
		t.Fatalf("%t, %v", has, err)
	}
	discovery.Resources = []*metav1.APIResourceList{{GroupVersion: snapshotVersion.String(), APIResources: []metav1.APIResource{{Name: "volumesnapshots"}}}}
	if has, err := s.hasKinds(); has || err != nil {
		t.Fatalf("%t, %v", has, err)
	}
	discovery.Resources[0].APIResources[0].Name = snapshotContents
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	for s.content(t).Status.SnapshotHandle == "" {
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // it polls, and ends with the test
	}
	cancel()
	<-ended
	if files, _ := w.snapshots(t); len(files) != 1 {
		t.Errorf("%q", files)
	}
}

func TestConcerns(t *testing.T) {
	base := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGeneration(1)
		u.SetAnnotations(map[string]string{"a": "b"})
		return u
	}
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"status":     {func(u *unstructured.Unstructured) { u.Object["status"] = "x"; u.SetResourceVersion("2") }, false},
		"finalizers": {func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"a/b"}) }, false},
		"spec":       {func(u *unstructured.Unstructured) { u.SetGeneration(2) }, true},
		"mark":       {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "c"}) }, true},
		"deleted":    {func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Now())) }, true},
	} {
		now := base()
		test.change(now)
		if got := concerns(base(), now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

const snapshotOf = `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: s, namespace: shop, uid: u}, status: {boundVolumeSnapshotContentName: content}}`

// A claim must name a snapshot of its own namespace, bound to a content of the driver's that is ready.
func TestProvisionFromSnapshot(t *testing.T) {
	ready := func(text string) string {
		return strings.TrimSuffix(text, "}") + ", status: {readyToUse: true, snapshotHandle: " + v1alpha1.VolumeSnapshotID(clusterName, "s") + "}}"
	}
	content := fmt.Sprintf(contentOf, "Delete", "volumeHandle: VOLUME", "")
	for name, test := range map[string]struct {
		snapshot, content string
		size, says        string
	}{
		"ready":          {snapshotOf, ready(content), "1Mi", ""},
		"larger":         {snapshotOf, ready(content), "2Mi", ""},
		"smaller":        {snapshotOf, ready(content), "1Ki", "at least as much"},
		"not there":      {strings.Replace(snapshotOf, "name: s,", "name: other,", 1), ready(content), "1Mi", "there is no VolumeSnapshot s, which dataSource names, in namespace shop"},
		"elsewhere":      {strings.Replace(snapshotOf, "namespace: shop", "namespace: bank", 1), ready(content), "1Mi", "in namespace shop"},
		"going":          {strings.Replace(snapshotOf, "uid: u", `uid: u, deletionTimestamp: "2026-01-01T00:00:00Z"`, 1), ready(content), "1Mi", "being deleted"},
		"not bound":      {strings.Replace(snapshotOf, "{boundVolumeSnapshotContentName: content}", "{error: {message: no class}}", 1), ready(content), "1Mi", "not ready to use yet: no class"},
		"not ready":      {snapshotOf, content, "1Mi", "not ready to use yet"},
		"another's":      {strings.Replace(snapshotOf, "uid: u", "uid: v", 1), ready(content), "1Mi", "is not bound to its"},
		"no content":     {snapshotOf, strings.Replace(ready(content), "name: content", "name: other", 1), "1Mi", "the content of VolumeSnapshot s"},
		"another driver": {snapshotOf, strings.Replace(ready(content), "efs.csi", "ebs.csi", 1), "1Mi", "of driver ebs.csi.aws.com"},
		"lost":           {snapshotOf, strings.Replace(ready(content), v1alpha1.VolumeSnapshotID(clusterName, "s"), "fssnap-00000000000000009", 1), "1Mi", "there is no snapshot fssnap-00000000000000009"},
	} {
		t.Run(name, func(t *testing.T) {
			w, volume := copyWorld(t, copying)
			if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", volume)); err != nil {
				t.Fatal(err)
			}
			group := snapshotGroup
			asked := options(test.size, func(c *corev1.PersistentVolumeClaim) {
				c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "s"}
			})
			objects := snapshotObjects(test.snapshot, strings.ReplaceAll(test.content, "VOLUME", `"`+volume+`"`))
			made, state, err := (&provisioner{w.controller, w.node.cluster, objects, record.NewFakeRecorder(10)}).Provision(t.Context(), asked)
			if state != provisioning.ProvisioningFinished {
				t.Errorf("%s, %v", state, err)
			}
			raw, readErr := os.ReadFile(filepath.Join(w.at("pvc-1"), "file"))
			if test.says == "" && (err != nil || made == nil || string(raw) != "content") {
				t.Errorf("%v, %v, %q, %v", made, err, raw, readErr)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || w.point(t, "pvc-1") != nil) {
				t.Errorf("%v; left is %v", err, w.point(t, "pvc-1"))
			}
		})
	}
}
