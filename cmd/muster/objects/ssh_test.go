// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/platform/statedir"
)

// openNetwork is the network namespace of the test, and groups that let SSH in or not.
type openNetwork struct{ closed bool }

func (n openNetwork) LetsInSSH(string, netip.Addr) (lets bool, groups []string, err error) {
	return !n.closed, []string{"sg-1", "sg-2"}, nil
}

func (openNetwork) Open() (*os.File, error) { return os.Open("/proc/self/ns/net") }

const keyPair = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// withKey gives the first machine a key pair, and a disk with a host key.
func withKey(t *testing.T, dir statedir.Dir) (hostKey string) {
	t.Helper()
	root := statedir.MachineRoot(dir, clitest.FirstMachine)
	if err := sshserver.Prepare(root, keyPair, "/bin", func(string, int, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "etc/ssh/ssh_host_ed25519_key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	record := `{"id":"` + clitest.FirstMachine + `","privateIP":"172.31.0.5","privateDNSName":"` + clitest.FirstNode + `","domain":"ec2.internal","zone":"us-east-1a","key":{"name":"mine","public":"` + keyPair + `"}}`
	if err := os.WriteFile(filepath.Join(dir.Machine(clitest.FirstMachine), machine.RecordFile), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// sshStandIn is a program that says what ssh was asked for, with the file of known hosts, and ends with status 7.
func sshStandIn(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ssh")
	script := "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; case $a in UserKnownHostsFile=*) eval cat ${a#*=};; esac; done\nexit 7\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSSH(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if os.Geteuid() != 0 {
		t.Skip("this test enters a network namespace, its own: run it as root")
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	dir := stateful(t, b)
	hostKey := withKey(t, dir)
	inits(t, dir, clitest.FirstMachine)
	program, identity := sshStandIn(t), filepath.Join(t.TempDir(), "mine.pem")
	if err := os.WriteFile(identity, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &sshCommand{
		Options: b.O, planes: b.Planes, look: func(string) (string, error) { return program, nil }, served: func() bool { return true },
		network: func(statedir.Dir, machine.Record) (sshNetwork, error) { return openNetwork{}, nil },
	}
	for name, test := range map[string]struct{ args, last []string }{
		"a shell":       {[]string{clitest.FirstNode}, []string{"<172.31.0.5>"}},
		"a line":        {[]string{"172.31.0.5", "--", "a | b"}, []string{"<172.31.0.5>", "<-->", "<a | b>"}},
		"words":         {[]string{"172.31.0.5", "--", "ls", "a b", "$HOME"}, []string{"<172.31.0.5>", "<-->", `<ls "a b" "\$HOME">`}},
		"with identity": {[]string{"-i", identity, clitest.FirstMachine}, []string{"<IdentitiesOnly=yes>", "<-i>", "<" + identity + ">", "<172.31.0.5>"}},
	} {
		err := b.Run(t.Context(), s.command(), test.args...)
		var status terminal.ExitStatus
		if !errors.As(err, &status) || status != 7 {
			t.Fatalf("%s: %v, want exit status 7", name, err)
		}
		lines := strings.Split(strings.TrimSpace(b.Out.String()), "\n")
		b.Out.Reset()
		if len(lines) < len(test.last) || !slices.Equal(lines[len(lines)-len(test.last):], test.last) {
			t.Errorf("%s: ssh was asked for %q, want %q at the end", name, lines, test.last)
		}
		for _, want := range []string{"<StrictHostKeyChecking=yes>", "<HostKeyAlias=" + clitest.FirstMachine + ">", "<ec2-user>", clitest.FirstMachine + " " + hostKey} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: ssh was not told %q: %q", name, want, lines)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "muster-known-hosts-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestSSHErrors(t *testing.T) {
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	t.Setenv("TMPDIR", t.TempDir())
	served, closed, euid, found := true, false, 0, error(nil)
	ssh := func(args ...string) error {
		s := &sshCommand{
			Options: b.O, planes: b.Planes, euid: euid, look: func(string) (string, error) { return "/nowhere", found }, served: func() bool { return served },
			network: func(statedir.Dir, machine.Record) (sshNetwork, error) { return openNetwork{closed}, nil },
		}
		return b.Run(t.Context(), s.command(), args...)
	}
	dir := stateful(t, b)
	clitest.WantErr(t, ssh(clitest.FirstMachine), "machine "+clitest.FirstMachine+" does not run", false)
	clitest.WantErr(t, ssh(clitest.SecondMachine), "is simulated and has no shell", false)
	clitest.WantErr(t, ssh("nobody"), `machine "nobody" not found`, false)
	clitest.WantErr(t, ssh(clitest.FirstMachine, "-z"), "put -- before the command to run", true)
	inits(t, dir, clitest.FirstMachine)
	clitest.WantErr(t, ssh(clitest.FirstMachine), "was launched without a key pair, so nobody can log in by SSH: muster exec", false)
	withKey(t, dir)
	served = false
	clitest.WantErr(t, ssh(clitest.FirstMachine), "this host has no sshd: apt install openssh-server", false)
	served, euid = true, 1000
	clitest.WantErr(t, ssh(clitest.FirstMachine), "needs root", false)
	euid = 0
	clitest.WantErr(t, ssh("-i", "/nowhere/mine.pem", clitest.FirstMachine), "-i: stat /nowhere/mine.pem", false)
	found = errors.New("none")
	clitest.WantErr(t, ssh(clitest.FirstMachine), "apt install openssh-client", false)
	found, closed = nil, true
	clitest.WantErr(t, ssh(clitest.FirstMachine), "sg-1 and sg-2, do not let in SSH from the router of its subnet: aws ec2 authorize-security-group-ingress --group-id sg-1", false)
	closed = false
	if err := os.RemoveAll(filepath.Join(statedir.MachineRoot(dir, clitest.FirstMachine), "etc/ssh")); err != nil {
		t.Fatal(err)
	}
	clitest.WantErr(t, ssh(clitest.FirstMachine), "has not started its SSH server yet", false)
}
