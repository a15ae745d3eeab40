// SPDX-License-Identifier: Apache-2.0

package sshserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/aws/sshkey"
)

const searched = "/usr/bin:/bin"

func newPublic(t *testing.T) string {
	t.Helper()
	public, _, _, err := sshkey.New(sshkey.ED25519)
	if err != nil {
		t.Fatal(err)
	}
	return public.String()
}

func prepared(t *testing.T, root, public string) {
	t.Helper()
	var owned []string
	err := Prepare(root, public, searched, func(path string, user, group int) error {
		owned = append(owned, fmt.Sprintf("%s %d:%d", strings.TrimPrefix(path, root), user, group))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(owned, "/home/ec2-user 1000:1000") {
		t.Errorf("owners: %q", owned)
	}
}

// A boot writes what is right over what was changed on the machine, and keeps the host key and what the user has.
func TestPrepare(t *testing.T) {
	t.Parallel()
	root, public := t.TempDir(), newPublic(t)
	prepared(t, root, public+" somebody@laptop")
	disk, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	first, err := HostKey(disk)
	if err != nil {
		t.Fatal(err)
	}
	keys, profile := filepath.Join(root, authorizedKeys, User), filepath.Join(root, Home, ".bash_profile")
	for path, content := range map[string]string{keys: newPublic(t), profile: "PS1=mine\n", filepath.Join(root, configPath): "PermitRootLogin yes\n"} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	prepared(t, root, public)
	again, err := HostKey(disk)
	if err != nil || again.String() != first.String() {
		t.Errorf("the host key is another one after a reboot: %v", err)
	}
	for path, want := range map[string]string{keys: public + "\n", profile: "PS1=mine\n", filepath.Join(root, configPath): Config(searched)} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", path, got, want, err)
		}
	}
	for path, mode := range map[string]fs.FileMode{hostKey: 0o600, hostKey + ".pub": 0o644, configPath: 0o644, authorizedKeys: 0o755, Home: 0o700} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

// A host key of which a half is missing was never trusted by anybody, and is made anew.
func TestHalfAHostKey(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{hostKey, hostKey + ".pub"} {
		root, public := t.TempDir(), newPublic(t)
		prepared(t, root, public)
		if err := os.Remove(filepath.Join(root, lost)); err != nil {
			t.Fatal(err)
		}
		prepared(t, root, public)
		for _, path := range []string{hostKey, hostKey + ".pub"} {
			if raw, err := os.ReadFile(filepath.Join(root, path)); err != nil || len(raw) == 0 {
				t.Errorf("without %s: %s: %v", lost, path, err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"", "ssh-ed25519", `command="id" ` + newPublic(t), newPublic(t) + "\n" + newPublic(t)} {
		if err := Prepare(t.TempDir(), public, searched, os.Chown); !errors.Is(err, sshkey.ErrFormat) {
			t.Errorf("%q: %v", public, err)
		}
	}
	root := t.TempDir()
	disk, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	if _, err := HostKey(disk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a machine that was never prepared: %v", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(root, dir), 0o755), os.Symlink("/etc/passwd", filepath.Join(root, hostKey+".pub"))); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKey(disk); err == nil {
		t.Error("a link on the disk led to a file of the host")
	}
	path := filepath.Join(root, hostKey+".pub")
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := HostKey(disk)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("a pipe: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a pipe on the disk is waited for")
	}
}

// OpenSSH itself takes the configuration, and says what it means by it.
func TestSSHDReadsIt(t *testing.T) {
	t.Parallel()
	if !Installed() {
		t.Skip("this host has no sshd, so nothing is tested: apt install " + Package)
	}
	root := t.TempDir()
	prepared(t, root, newPublic(t))
	config := filepath.Join(t.TempDir(), "sshd_config")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(Config(searched), dir, filepath.Join(root, dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("sshd wants a directory below /run, which this test makes in a namespace of its own: run it as root")
	}
	ask := "mount -t tmpfs none /run && mkdir -p " + privilegeDir + " && exec " + Program + ` -T -f "$0" -C user=` + User + ",host=h,addr=10.0.0.1"
	out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", ask, config).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := strings.Split(string(out), "\n")
	for _, line := range []string{
		"authenticationmethods publickey", "passwordauthentication no", "permitrootlogin no", "usepam no", "disableforwarding yes", "allowusers ec2-user",
		"allowagentforwarding no", "x11forwarding no", "allowtcpforwarding no", "allowstreamlocalforwarding no", "permittunnel no", "permituserenvironment no", "permituserrc no", "port 22", "authorizedkeysfile " + filepath.Join(root, authorizedKeys) + "/%u",
	} {
		if !slices.Contains(said, line) {
			t.Errorf("sshd does not say %q:\n%s", line, out)
		}
	}
}
