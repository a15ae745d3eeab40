// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// sshGroup is a node group of one machine, with a key pair or without.
const sshGroup = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: %[1]s}
spec:
  name: %[1]s
  scalingConfig: {desiredSize: 1}
  launchTemplate: {instanceType: t3.small, keyName: %[2]q}
`

// TestSSH logs in to a machine by the real ssh, with the key pair that the machine was launched with, and looks there at what people of EKS
// look at. Nobody else gets in, and nobody gets out. Without sshd on this host it is skipped, and says so.
//
//story:about node/sshserver node/nodeshell machine/loginkey machine/machine/local network/securitygroup
func TestSSH(t *testing.T) {
	t.Parallel()
	if !sshserver.Installed() {
		t.Skip("this host has no sshd, so nothing is tested: apt install " + sshserver.Package)
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	s := &sshStory{iam: newIAM(t, i)}
	s.key, s.stranger = s.newKeyPair("mine"), s.newKeyPair("another")
	for name, key := range map[string]string{"shell": "mine", "closed": ""} {
		s.apply(fmt.Sprintf(sshGroup, name, key), "--context", "muster-management")
	}
	s.id, s.without = s.machineOf("shell"), s.machineOf("closed")
	for _, step := range []struct {
		name string
		run  func(*sshStory)
	}{
		{"a security group without port 22 refuses", (*sshStory).refusedByGroups},
		{"the key pair's owner logs in", (*sshStory).logsIn},
		{"what people look at", (*sshStory).looksAround},
		{"nobody else gets in", (*sshStory).strangers},
		{"nothing gets out", (*sshStory).getsNowhere},
		{"the machine is the same after a reboot", (*sshStory).reboots},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			of := *s
			of.iam = s.step(t)
			step.run(&of)
		}) {
			return
		}
	}
}

// sshStory is an account with two machines, one with a key pair.
type sshStory struct {
	*iam
	key, stranger string // files of private keys
	id, without   string
}

// newKeyPair makes a key pair by EC2's API, and returns the file of its private key.
func (s *sshStory) newKeyPair(name string) string {
	s.t.Helper()
	var made struct{ KeyMaterial string }
	s.mustAWS(&made, "ec2", "create-key-pair", "--key-name", name, "--key-type", "ed25519")
	path := filepath.Join(s.t.TempDir(), name+".pem")
	if err := os.WriteFile(path, []byte(made.KeyMaterial), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// machineOf is the machine of a node group, when its node is Ready.
func (s *sshStory) machineOf(group string) (id string) {
	s.t.Helper()
	s.eventually("the machine of "+group+" is Ready", func() error {
		said, err := s.kubectl("--context", "muster-management", "get", "machines", "-l", "muster.dev/nodegroup="+group, "-o", "jsonpath={.items[*].status.phase} {.items[*].metadata.name}")
		phase, name, _ := strings.Cut(said, " ")
		if id = name; err == nil && phase != "Ready" {
			err = fmt.Errorf("%q", said)
		}
		return err
	})
	return id
}

// ssh runs a command on the machine with a key.
func (s *sshStory) ssh(key string, command ...string) (string, error) {
	out, talk, err := s.try(append([]string{"ssh", "-i", key, s.id, "--"}, command...)...)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, talk)
	}
	return out, err
}

// inVPC runs something in the network namespace of the machine's VPC, as the host's ssh does.
func (s *sshStory) inVPC(id string, do func(record machine.Record) error) error {
	s.t.Helper()
	record, err := machine.ReadRecord(filepath.Join(s.dir.Machine(id), machine.RecordFile))
	if err != nil {
		s.t.Fatal(err)
	}
	network, err := vpc.Open(s.dir.VPCs(), record.VPC)
	if err != nil {
		s.t.Fatal(err)
	}
	namespace, err := network.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	return host.InNetwork(namespace, func() error { return do(record) })
}

// answers reports what a machine says at port 22.
func (s *sshStory) answers(id string) error {
	return s.inVPC(id, func(record machine.Record) error {
		connection, err := (&net.Dialer{Timeout: 2 * time.Second, FallbackDelay: -1}).Dial("tcp", net.JoinHostPort(record.PrivateIP.String(), "22"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (s *sshStory) refusedByGroups() {
	if _, err := s.ssh(s.key, "true"); err == nil || !strings.Contains(err.Error(), "do not let in SSH from the router of its subnet: aws ec2 authorize-security-group-ingress --group-id sg-") {
		s.t.Errorf("muster ssh: %v", err)
	}
	if err := s.answers(s.id); err == nil {
		s.t.Error("the firewall lets a connection to port 22 through")
	}
	group := s.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.clusterSecurityGroupID}")
	s.mustAWS(nil, "ec2", "authorize-security-group-ingress", "--group-id", group, "--protocol", "tcp", "--port", "22", "--cidr", "0.0.0.0/0")
	s.eventually("port 22 is open", func() error { return s.answers(s.id) })
	if err := s.answers(s.without); err == nil {
		s.t.Error("a machine without a key pair has something at port 22")
	}
}

func (s *sshStory) logsIn() {
	s.eventually("the owner of the key logs in", func() error {
		out, err := s.ssh(s.key, "id", "-un")
		if err == nil && out != "ec2-user\n" {
			err = fmt.Errorf("id says %q", out)
		}
		return err
	})
	if out, err := s.ssh(s.key, "exit 7"); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		s.t.Errorf("exit 7: %q, %v", out, err)
	}
	if out, _, err := s.try("exec", s.id, "--", "sh", "-c", `T=$(curl -sX PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60')
for p in public-keys/ public-keys/0/ public-keys/0/openssh-key; do curl -sH "X-aws-ec2-metadata-token: $T" http://169.254.169.254/latest/meta-data/$p; echo; done`); err != nil ||
		!strings.HasPrefix(out, "0=mine\nopenssh-key\nssh-ed25519 ") {
		s.t.Errorf("instance metadata: %q, %v", out, err)
	}
}

// looksAround runs the commands of people who want to know how a node of EKS joins.
func (s *sshStory) looksAround() {
	for command, want := range map[string][]string{
		"systemctl cat kubelet":                                         {"# /etc/systemd/system/kubelet.service\n", "ExecStart=/opt/muster/bin/1.", "/kubelet $NODEADM_KUBELET_ARGS"},
		"cat /etc/eks/kubelet/environment":                              {"NODEADM_KUBELET_ARGS=", "--kubeconfig=/var/lib/kubelet/kubeconfig"},
		"cat /var/lib/kubelet/kubeconfig":                               {"aws-iam-authenticator", "token", "/etc/kubernetes/pki/ca.crt"},
		"cat /etc/kubernetes/kubelet/kubelet-config.json":               {`"serverTLSBootstrap": true`},
		`journalctl -u kubelet | grep -i "certificate signing request"`: {" kubelet[", "is issued"},
		"sudo ls -al /var/lib/kubelet/pki/":                             {"kubelet-server-current.pem -> "},
		"sudo id -u":                                                    {"0\n"},
		"sudo cat /proc/self/status | grep CapEff":                      {"CapEff:"},
		"systemctl is-active kubelet sshd | uniq -c":                    {" 2 active\n"},
		"bash -lc 'echo \"$HOME $USER\"'":                               {"/home/ec2-user ec2-user\n"},
		"test -t 0 || echo no terminal":                                 {"no terminal\n"},
		"cat /etc/os-release >/dev/null && hostname":                    {"ip-172-31-"},
		"cat /proc/1/comm; id -Gn | tr ' ' '\\n' | sort | tr '\\n' ' '": {"muster\n", "ec2-user systemd-journal wheel "},
	} {
		out, err := s.ssh(s.key, command)
		for _, text := range want {
			if err != nil || !strings.Contains(out, text) {
				s.t.Errorf("%s: %v, want %q:\n%s", command, err, text, out)
			}
		}
	}
	if out, err := s.ssh(s.key, "cat /var/lib/kubelet/pki/kubelet-server-current.pem"); err == nil {
		s.t.Errorf("ec2-user reads the node's private key: %s", out)
	}
}

func (s *sshStory) strangers() {
	if _, err := s.ssh(s.stranger, "true"); err == nil || !strings.Contains(err.Error(), "exit status 255") || !strings.Contains(err.Error(), "Permission denied (publickey)") {
		s.t.Errorf("another key: %v", err)
	}
	for name, args := range map[string][]string{
		"root":       {"-l", "root", "true"},
		"nobody":     {"-l", "nobody", "true"},
		"a password": {"-l", "ec2-user", "-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive", "true"},
		"forwarding": {"-l", "ec2-user", "-W", "169.254.169.254:80"},
	} {
		var said bytes.Buffer
		var cmd *exec.Cmd
		err := s.inVPC(s.id, func(record machine.Record) error {
			options := []string{"-F", "none", "-i", s.key, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", record.PrivateIP.String()}
			if name == "forwarding" {
				options = append(options[:len(options)-1], append(args, options[len(options)-1])...)
			} else {
				command := args[len(args)-1]
				options = append(options[:len(options)-1], append(args[:len(args)-1:len(args)-1], options[len(options)-1], command)...)
			}
			cmd = exec.CommandContext(s.t.Context(), "ssh", options...)
			cmd.Stdout, cmd.Stderr = &said, &said
			return cmd.Start()
		})
		if err == nil {
			err = cmd.Wait()
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 255 {
			s.t.Errorf("%s gets in: %v\n%s", name, err, &said)
		}
	}
	if _, talk, err := s.try("ssh", "-i", s.key, s.without); err == nil || !strings.Contains(talk, "was launched without a key pair, so nobody can log in by SSH: muster exec") {
		s.t.Errorf("a machine without a key pair: %v, %s", err, talk)
	}
	if out, _, err := s.try("exec", s.without, "--", "sh", "-c", "cat /proc/[0-9]*/comm | grep -c sshd; ls /etc/ssh 2>&1; ls /run/wheel 2>&1"); !strings.HasPrefix(out, "0\n") || strings.Contains(out, "sshd_config") || strings.Contains(out, "setpriv") {
		s.t.Errorf("a machine without a key pair: %v, %s", err, out)
	}
}

// getsNowhere tries as the machine's root by sudo what changes the host.
func (s *sshStory) getsNowhere() {
	for _, attempt := range []string{
		"echo x >/proc/sys/kernel/core_pattern",
		"mount -o remount,bind,rw /usr",
		"umount -l /usr",
		"mknod /tmp/disk b 254 0",
		"date -s 2000-01-01",
	} {
		if out, err := s.ssh(s.key, "sudo", "sh", "-c", "echo tried; "+attempt); err == nil || !strings.HasPrefix(out, "tried\n") {
			s.t.Errorf("sudo may do %q, or it was not tried: %v\n%s", attempt, err, out)
		}
	}
	nothingGetsOutBy(s.t, s.installation, "ssh", "-i", s.key, s.id, "--", "sudo")
}

// reboots asks for the host key that was known before.
func (s *sshStory) reboots() {
	path := filepath.Join(statedir.MachineRoot(s.dir, s.id), "etc/ssh/ssh_host_ed25519_key.pub")
	before, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	boot := func() string { out, _ := s.ssh(s.key, "sudo stat -c %Y /run/wheel/setpriv"); return out }
	was := boot()
	s.mustAWS(nil, "ec2", "reboot-instances", "--instance-ids", s.id)
	s.eventually("the machine has been rebooted, and lets its owner in", func() error {
		if now := boot(); now == "" || now == was {
			return fmt.Errorf("%q", now)
		}
		return nil
	})
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		s.t.Errorf("the host key is another one: %v", err)
	}
}
