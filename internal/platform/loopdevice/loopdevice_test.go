// SPDX-License-Identifier: Apache-2.0

// These tests attach loop devices, so they need root.
package loopdevice

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// file makes a sparse file. Whatever is still attached to it at the end is an error.
func file(t *testing.T, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range of(t, f) {
			t.Errorf("%s is left", d.Node())
			_ = Detach(d)
		}
		_ = f.Close()
	})
	return f
}

func of(t *testing.T, f *os.File) (all []Device) {
	t.Helper()
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.Path == f.Name() {
			all = append(all, d)
		}
	}
	return all
}

// supported skips a test where the kernel has no loop devices.
func supported(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
}

func TestAttach(t *testing.T) {
	supported(t)
	f := file(t, 1<<20)
	attached, err := Attach(f, "muster-test", false)
	if err != nil {
		t.Fatal(err)
	}
	found := of(t, f)
	if len(found) != 1 || found[0] != attached || attached.Name != "muster-test" || attached.Over != -1 || attached.ReadOnly || attached.Detaching {
		t.Fatalf("attached %+v, found %+v", attached, found)
	}
	if err := os.WriteFile(attached.Node(), []byte("hello"), 0); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(attached.Node(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Sync(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "hello" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if err := f.Truncate(2 << 20); err != nil {
		t.Fatal(err)
	}
	if err := Resize(attached); err != nil {
		t.Fatal(err)
	}
	if size, err := held.Seek(0, 2); err != nil || size != 2<<20 {
		t.Errorf("the device has %d bytes, %v", size, err)
	}
	// A program has it open: it goes when that ends.
	if err := Detach(attached); err != nil {
		t.Fatal(err)
	}
	if found := of(t, f); len(found) != 1 || !found[0].Detaching {
		t.Errorf("found %+v", found)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, f)
	if err := Detach(attached); err != nil { // again
		t.Errorf("what is detached: %v", err)
	}
}

// gone waits until a file is behind no device. The kernel detaches one a moment after its last program has closed it,
// udev's among them.
func gone(t *testing.T, f *os.File) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(of(t, f)) > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // it polls with a deadline
	}
}

func TestReadOnly(t *testing.T) {
	supported(t)
	f := file(t, 4096)
	attached, err := Attach(f, "muster-test", true)
	if err != nil {
		t.Fatal(err)
	}
	if !attached.ReadOnly {
		t.Errorf("%+v", attached)
	}
	if err := os.WriteFile(attached.Node(), []byte("hello"), 0); err == nil {
		t.Error("it can be written")
	}
	// A number that another file has by now is not detached.
	other := attached
	other.Inode++
	if err := Detach(other); err != nil || len(of(t, f)) != 1 {
		t.Errorf("%v, %+v", err, of(t, f))
	}
	if err := Detach(attached); err != nil {
		t.Fatal(err)
	}
	gone(t, f)
}

// A device that is held goes with the last who has it open, and a file is behind one at a time.
func TestHold(t *testing.T) {
	supported(t)
	f := file(t, 1<<20)
	first, held, err := Hold(f, "muster-test")
	if err != nil {
		t.Fatal(err)
	}
	second, again, err := Hold(f, "muster-other")
	if err != nil {
		t.Fatal(err)
	}
	if second != first || first.Name != "muster-test" || !first.Detaching || len(of(t, f)) != 1 {
		t.Errorf("held twice: %+v, %+v, and of the file there are %+v", first, second, of(t, f))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if len(of(t, f)) != 1 {
		t.Error("it goes with the first who closes it")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, f)
}

func TestAttachRefuses(t *testing.T) {
	f := file(t, 100)
	if _, err := Attach(f, "muster-test", false); err == nil {
		t.Error("a file without a whole sector is a device")
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := Attach(dir, "muster-test", false); err == nil {
		t.Error("a directory is a device")
	}
	large := file(t, 4096)
	for _, name := range []string{"", string(make([]byte, MaxName+1))} {
		if _, err := Attach(large, name, false); err == nil || errors.Is(err, ErrUnsupported) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

// asksAs is set in the environment of a process of a test that may open no device.
const asksAs = "MUSTER_TEST_LIST"

// A device that a process may not open is left out, and is not an error.
func TestListWithoutRights(t *testing.T) {
	if os.Getenv(asksAs) != "" {
		if all, err := List(); err != nil || len(all) > 0 {
			t.Errorf("%+v, %v", all, err)
		}
		return
	}
	supported(t)
	f := file(t, 4096)
	attached, err := Attach(f, "muster-test", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = Detach(attached)
		gone(t, f)
	}()
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestListWithoutRights$")
	again.Env, again.Dir = append(os.Environ(), asksAs+"=1"), "/"
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
