// SPDX-License-Identifier: Apache-2.0

package sshserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/aws/sshkey"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// Program is OpenSSH's server. It starts itself anew for each connection, so it is called by its path.
	Program = "/usr/sbin/sshd"
	// Package is Debian's package with the program.
	Package = "openssh-server"
	// Port is where it listens.
	Port = 22

	// User is who logs in, as on EC2's machines of Amazon Linux.
	User = "ec2-user"
	// UserID is the user's number and that of its group.
	UserID = 1000
	// PrivilegeUser is who sshd is before somebody has logged in.
	PrivilegeUser = "sshd"
	// PrivilegeUserID is that user's number, Fedora's.
	PrivilegeUserID = 74
	// Home is the user's directory.
	Home = "/home/" + User

	dir            = "/etc/ssh"
	configPath     = dir + "/sshd_config"
	authorizedKeys = dir + "/authorized_keys"
	hostKey        = dir + "/ssh_host_ed25519_key"
	// privilegeDir is an empty directory that sshd is confined to before somebody has logged in.
	privilegeDir = "/run/sshd"
)

// Installed reports whether a machine of this host can run sshd.
func Installed() bool {
	info, err := os.Stat(Program)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// Missing says what to do where it cannot.
const Missing = "this host has no sshd: apt install " + Package + ", and reboot the machine"

// Args are the arguments of the program: in the foreground, with its log on standard error.
func Args() []string { return []string{"-D", "-e", "-f", configPath} }

// Config is the content of sshd_config. Searched are the directories in which programs are found, in their order.
func Config(searched string) string {
	return `# Written by muster at every boot of the machine.
Port ` + fmt.Sprint(Port) + `
AddressFamily inet
HostKey ` + hostKey + `

AllowUsers ` + User + `
AuthenticationMethods publickey
AuthorizedKeysFile ` + authorizedKeys + `/%u
PasswordAuthentication no
PermitEmptyPasswords no
PermitRootLogin no
PermitUserEnvironment no
PermitUserRC no
UsePAM no
DisableForwarding yes
# Before OpenSSH 10.0, DisableForwarding leaves X11 and agents (CVE-2025-32728).
AllowAgentForwarding no
X11Forwarding no
AllowTcpForwarding no
AllowStreamLocalForwarding no
PermitTunnel no

LoginGraceTime 30
MaxAuthTries 3
MaxStartups 10:30:60
ClientAliveInterval 60
PrintLastLog no
PrintMotd no
SetEnv PATH=` + searched + ` AWS_CONFIG_FILE=/etc/aws/config
Subsystem sftp internal-sftp
`
}

// profile gives the prompt of Amazon Linux.
const profile = `PS1='[\u@\h \W]\$ '` + "\n"

// Prepare writes what sshd reads below a root directory, which is "/" on a machine: who may log in is the owner of the public key alone.
// Chown gives a file an owner.
func Prepare(root, public, searched string, chown func(path string, user, group int) error) error {
	key, err := sshkey.Parse(public)
	if err != nil {
		return fmt.Errorf("the public key of the machine's key pair: %w", err)
	}
	in := func(path string) string { return filepath.Join(root, path) }
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{dir, 0o755}, {authorizedKeys, 0o755}, {privilegeDir, 0o755}, {Home, 0o700}} {
		if err := os.MkdirAll(in(d.path), d.mode); err != nil {
			return fmt.Errorf("preparing sshd: %w", err)
		}
		if err := os.Chmod(in(d.path), d.mode); err != nil {
			return fmt.Errorf("preparing sshd: %w", err)
		}
	}
	if err := ensureHostKey(in(hostKey)); err != nil {
		return err
	}
	if err := atomicfile.Write(in(authorizedKeys+"/"+User), []byte(key.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("preparing sshd: %w", err)
	}
	if err := atomicfile.Write(in(configPath), []byte(Config(searched)), 0o644); err != nil {
		return fmt.Errorf("preparing sshd: %w", err)
	}
	return prepareHome(in(Home), chown)
}

// prepareHome makes the user's directory its own. Files that the user wrote there stay.
func prepareHome(home string, chown func(path string, user, group int) error) error {
	if err := chown(home, UserID, UserID); err != nil {
		return fmt.Errorf("preparing %s: %w", home, err)
	}
	path := filepath.Join(home, ".bash_profile")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // G302: as useradd copies it
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("preparing %s: %w", home, err)
	}
	_, err = file.WriteString(profile)
	if err := errors.Join(err, file.Close(), chown(path, UserID, UserID)); err != nil {
		return fmt.Errorf("preparing %s: %w", home, err)
	}
	return nil
}

// ensureHostKey makes the machine's host key if it is not there whole. The public half is written last: only then somebody trusts the key.
func ensureHostKey(path string) error {
	private, err := os.ReadFile(path)
	if err == nil && len(private) > 0 {
		if raw, err := os.ReadFile(path + ".pub"); err == nil {
			if _, err := sshkey.Parse(string(raw)); err == nil {
				return os.Chmod(path, 0o600)
			}
		}
	}
	public, secret, _, err := sshkey.New(sshkey.ED25519)
	if err != nil {
		return fmt.Errorf("making the host key: %w", err)
	}
	if err := os.Remove(path + ".pub"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making the host key: %w", err)
	}
	if err := atomicfile.Write(path, []byte(secret), 0o600); err != nil {
		return fmt.Errorf("making the host key: %w", err)
	}
	if err := atomicfile.Write(path+".pub", []byte(public.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("making the host key: %w", err)
	}
	return nil
}

// maxHostKey is more than the line of a public key has.
const maxHostKey = 4 << 10

// HostKey reads the public half of a machine's host key from its disk, wherever the links there point to; fs.ErrNotExist if sshd has not
// been prepared there.
func HostKey(disk *os.Root) (sshkey.Public, error) {
	// The machine's root may have put a pipe there, which nobody would ever write to.
	file, err := disk.OpenFile(strings.TrimPrefix(hostKey, "/")+".pub", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return sshkey.Public{}, fmt.Errorf("reading the machine's host key: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return sshkey.Public{}, errors.Join(errors.New("reading the machine's host key: it is not a file"), err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxHostKey))
	if err != nil {
		return sshkey.Public{}, fmt.Errorf("reading the machine's host key: %w", err)
	}
	public, err := sshkey.Parse(string(raw))
	if err != nil {
		return sshkey.Public{}, fmt.Errorf("reading the machine's host key: %w", err)
	}
	return public, nil
}
