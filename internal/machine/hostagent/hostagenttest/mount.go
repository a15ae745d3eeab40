// SPDX-License-Identifier: Apache-2.0

package hostagenttest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

const (
	fileSystem = "fs-00000000000000001"
	target     = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-1/mount"
)

// mounted is what a machine in memory has mounted.
type mounted struct {
	source   string
	readOnly bool
}

// newFiles has one file system, with a directory.
func newFiles(t *testing.T) *filestore.Store {
	t.Helper()
	root := t.TempDir()
	files := filestore.New(root)
	if err := files.Ensure(fileSystem); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, fileSystem, "data", "db"), 0o750); err != nil {
		t.Fatal(err)
	}
	return files
}

func (m *machines) Mount(id string, source *os.File, at string, readOnly bool) error {
	if err := m.failure; err != nil {
		return err
	}
	m.mounted[id+at] = mounted{source.Name(), readOnly}
	return nil
}

func (m *machines) Mounted(id string, source *os.File, at string) (bool, error) {
	return m.mounted[id+at].source == source.Name(), nil
}

func (m *machines) MountedAt(id string, source *os.File) (all []string, err error) {
	for at, is := range m.mounted {
		if path, ok := strings.CutPrefix(at, id); ok && is.source == source.Name() {
			all = append(all, path)
		}
	}
	return all, nil
}

func (m *machines) Writers(source *os.File) (all []string, err error) {
	for at, is := range m.mounted {
		if is.source == source.Name() && !is.readOnly {
			all = append(all, at[:len(machinetest.First)])
		}
	}
	return all, nil
}

func (m *machines) Unmount(id, at string) error {
	delete(m.mounted, id+at)
	return nil
}

func (m *machines) LoopDevices() (map[int]bool, error) { return map[int]bool{}, nil }

func (m *machines) WithdrawLoops(...int) error { return nil }

// newMounts asks as the driver of volumes does.
func newMounts(t *testing.T, reach Reach) (volumemount.Mounts, *machines) {
	t.Helper()
	host, m := newHost(t, reach)
	mounts, err := machine.Ask[volumemount.Mounts](hostagent.Providers(host, able()), able(), v1alpha1.MountVolumes)
	if err != nil {
		t.Fatal(err)
	}
	return mounts, m
}

// aMount is one of a volume for one pod only.
func aMount() volumemount.Mount {
	volume := volumemount.Volume{Cluster: "blue", FileSystemID: fileSystem, Path: "/db"}
	return volumemount.Mount{Machine: machinetest.First, Volume: volume, Target: target, Alone: true}
}

func volumesAreMounted(t *testing.T, reach Reach) {
	mounts, m := newMounts(t, reach)
	ctx, one := t.Context(), aMount()
	for range 2 {
		if err := mounts.Mount(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	if has := m.mounted[machinetest.First+target]; !strings.HasSuffix(has.source, "/db") || has.readOnly {
		t.Errorf("the machine has %+v", has)
	}
	other := one
	other.Target += "-2"
	for m, want := range map[volumemount.Mount]bool{one: true, other: false} {
		if is, err := mounts.Mounted(ctx, m); err != nil || is != want {
			t.Errorf("mounted at %s: %v, %v; want %v", m.Target, is, err, want)
		}
	}
	if writers, err := mounts.Writers(ctx, one.Volume); err != nil || !slices.Equal(writers, []string{machinetest.First}) {
		t.Errorf("writers are %v, %v", writers, err)
	}
	if err := mounts.Sweep(ctx, "blue"); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	for range 2 {
		if err := mounts.Unmount(ctx, machinetest.First, target); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.mounted) > 0 {
		t.Errorf("the machine still has %v", m.mounted)
	}
}

func mountsAreRefused(t *testing.T, reach Reach) {
	mounts, m := newMounts(t, reach)
	ctx, one := t.Context(), aMount()
	if err := mounts.Mount(ctx, one); err != nil {
		t.Fatal(err)
	}
	other := one
	other.Target += "-2"
	if err := mounts.Mount(ctx, other); !errors.Is(err, volumemount.ErrNotAlone) {
		t.Errorf("a second mount of a volume for one pod: %v", err)
	}
	other.Volume.Path, other.Alone = "/lost", false
	if err := mounts.Mount(ctx, other); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, machine.ErrNotFound) {
		t.Errorf("a volume whose directory is lost: %v", err)
	}
	other.Volume.Path = "/"
	if _, err := mounts.Mounted(ctx, other); err != nil {
		t.Errorf("the whole file system: %v", err)
	}
	if err := mounts.Resize(ctx, volumemount.Volume{Cluster: "blue", FileSystemID: fileSystem, Path: "/lost", Disk: "fsap-00000000000000001"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Resize of a disk that is lost: %v", err)
	}
	m.failure = errors.New("it does not answer")
	if err := mounts.Mount(ctx, one); err == nil || err.Error() != m.failure.Error() {
		t.Errorf("the error is %v, want %v", err, m.failure)
	}
}

// asked is a host that remembers what it was asked.
type asked struct {
	hostagent.Host
	all []any
}

func (a *asked) remember(ask any) error {
	a.all = append(a.all, ask)
	return nil
}

func (a *asked) Mount(_ context.Context, ask hostagent.Mount) error     { return a.remember(ask) }
func (a *asked) Unmount(_ context.Context, ask hostagent.Unmount) error { return a.remember(ask) }
func (a *asked) Resize(_ context.Context, ask hostagent.Volume) error   { return a.remember(ask) }
func (a *asked) Sweep(_ context.Context, ask hostagent.Sweep) error     { return a.remember(ask) }

func mountsArriveWhole(t *testing.T, reach Reach) {
	at := &asked{}
	host := reach(t, at)
	volume := volumemount.Volume{Cluster: "Blue_1", FileSystemID: fileSystem, Path: "/fsap-00000000000000001", Disk: "fsap-00000000000000001"}
	mount := hostagent.Mount{Provider: able(), Mount: volumemount.Mount{Machine: machinetest.First, Volume: volume, Target: target, ReadOnly: true, Alone: true}}
	unmount := hostagent.Unmount{Machine: first(), Target: target}
	about, sweep := hostagent.Volume{Provider: able(), Volume: volume}, hostagent.Sweep{Provider: able(), Cluster: "Blue_1"}
	err := errors.Join(host.Mount(t.Context(), mount), host.Unmount(t.Context(), unmount), host.Resize(t.Context(), about), host.Sweep(t.Context(), sweep))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{mount, unmount, about, sweep}
	isWhole(t, append(want, mount.Mount, volume))
	if diff := cmp.Diff(want, at.all); diff != "" {
		t.Errorf("the host is asked for (-sent +got):\n%s", diff)
	}
}

// isWhole checks that the suite sends each field of some requests.
func isWhole(t *testing.T, requests []any) {
	t.Helper()
	for _, request := range requests {
		v := reflect.ValueOf(request)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the suite does not send the field %s of a %s", v.Type().Field(i).Name, v.Type())
			}
		}
	}
}
