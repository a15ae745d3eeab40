// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/filestore"
)

// Where files cannot share content, what no pod can write is copied, is told, and can be mounted again only when it is
// done.
func TestPlainCopy(t *testing.T) {
	w, source := copyWorld(t, noReflink)
	var said []string
	during := 0
	ctx := telling(t.Context(), func(message string) {
		said = append(said, message)
		during++
		for name, readOnly := range map[string]bool{"to be written": false, "to be read": true} {
			request := publish(source, target)
			request.Readonly = readOnly
			if _, err := w.node.NodePublishVolume(t.Context(), request); (status.Code(err) == codes.Aborted) == readOnly {
				t.Errorf("mounted %s while it is copied: %v", name, err)
			}
		}
		if _, err := w.node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: source, TargetPath: target}); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.CreateVolume(ctx, asksCopy("copy", source)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateSnapshot(ctx, asksSnapshot("s", source)); err != nil {
		t.Fatal(err)
	}
	if during != 2 || !strings.Contains(said[0], "Copying ") || !strings.Contains(said[0], "wait until it is done") {
		t.Errorf("said %q", said)
	}
	w.mounts(t, source)
	restored := asks("restored", nil)
	restored.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{
		SnapshotId: v1alpha1.VolumeSnapshotID(clusterName, "s"),
	}}}
	if _, err := w.CreateVolume(t.Context(), restored); err != nil {
		t.Errorf("a snapshot is restored while pods write its volume: %v", err)
	}
	for _, volume := range []string{"copy", "restored"} {
		if raw, err := os.ReadFile(filepath.Join(w.at(volume), "file")); err != nil || string(raw) != "content" {
			t.Errorf("%s: %q, %v", volume, raw, err)
		}
	}
}

// A disk is copied when no device of it can be written. A device that nobody uses any more is detached first.
func TestPlainCopyOfADisk(t *testing.T) {
	w, volume := blockWorld(t, nil)
	w.files = filestore.NewReflinking(w.root, noReflink)
	w.node.files = w.files
	if err := os.WriteFile(w.at("pvc-1"), append([]byte("content"), make([]byte, 1<<20-7)...), 0o600); err != nil {
		t.Fatal(err)
	}
	request := asksCopy("copy", volume)
	request.VolumeCapabilities = blocks()
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(volume, target)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "Stop the pods") || w.point(t, "copy") != nil {
		t.Fatalf("while a pod can write it: %v", err)
	}
	clear(w.machines.mounted) // as when the machine has gone
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(w.at("copy")); err != nil || string(raw[:7]) != "content" {
		t.Errorf("%v", err)
	}
}

// A copy without enough room is refused, with the figures.
func TestPlainCopyWithoutRoom(t *testing.T) {
	s := source{what: "volume v", written: 3 << 30, plain: &filestore.NoReflinkError{Kind: "ext4"}}
	space := filestore.Space{Total: 100 << 30, Available: 8 << 30}
	for _, want := range []string{"volume v has 3.0 GiB in it", "8.0 GiB left", "may have 3.0 GiB", "ext4"} {
		s.written++
		if err := s.fits(space); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	s.written = 3 << 30
	if err := s.fits(space); err != nil {
		t.Error(err)
	}
}
