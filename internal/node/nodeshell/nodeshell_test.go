// SPDX-License-Identifier: Apache-2.0

package nodeshell

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSystemctl(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, unitDir+"/kubelet.service", "[Unit]\nDescription=Kubernetes Kubelet\n")
	write(t, root, unitDir+"/kubelet.service.d/10-args.conf", "[Service]\nEnvironment=A=1\n")
	write(t, root, unitDir+"/sshd.service", "[Unit]\n")
	write(t, root, "/proc/17/comm", "kubelet\n")
	for line, want := range map[string]struct {
		status    int
		out, said string
	}{
		"cat kubelet": {0, "# /etc/systemd/system/kubelet.service\n[Unit]\nDescription=Kubernetes Kubelet\n\n" +
			"# /etc/systemd/system/kubelet.service.d/10-args.conf\n[Service]\nEnvironment=A=1\n", ""},
		"--no-pager cat sshd.service": {0, "# /etc/systemd/system/sshd.service\n[Unit]\n", ""},
		"is-active kubelet":           {0, "active\n", ""},
		"is-active kubelet sshd":      {3, "active\ninactive\n", ""},
		"cat containerd":              {1, "", "is not there yet"},
		"cat ../../passwd":            {1, "", "not found: a machine has containerd, kubelet, kube-proxy, sshd"},
		"cat":                         {1, "", "a unit is missing"},
		"restart kubelet":             {1, "", "this machine has no systemd, and its agent starts the programs again"},
		"":                            {1, "", "this machine has no systemd"},
	} {
		var out bytes.Buffer
		status, err := System{Root: root, Out: &out}.RunSystemctl(strings.Fields(line))
		if status != want.status || out.String() != want.out || (err == nil) != (want.said == "") || err != nil && !strings.Contains(err.Error(), want.said) {
			t.Errorf("systemctl %s: %d, %v, want %d, %q\n%s", line, status, err, want.status, want.said, out.String())
		}
	}
}

func TestJournalctl(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, logDir+"/kubelet.log", "I0919 09:47:00.509710    3347 csr.go:262] certificate signing request csr-kdkll is approved, waiting to be issued\n"+
		"\ta line without a time\nE0919 09:47:14.707915    3347 csr.go:258] certificate signing request csr-kdkll is issued\n")
	write(t, root, logDir+"/containerd.log", `time="2026-09-19T09:46:00Z" level=info msg=serving`+"\n")
	const approved = "Sep 19 09:47:00 ip-1 kubelet[3347]: I0919 09:47:00.509710    3347 csr.go:262] certificate signing request csr-kdkll is approved, waiting to be issued\n"
	const between = "Sep 19 09:47:00 ip-1 kubelet: \ta line without a time\n"
	const issued = "Sep 19 09:47:14 ip-1 kubelet[3347]: E0919 09:47:14.707915    3347 csr.go:258] certificate signing request csr-kdkll is issued\n"
	for line, want := range map[string]struct{ out, said string }{
		"-u kubelet":                    {approved + between + issued, ""},
		"-xeu kubelet.service":          {approved + between + issued, ""},
		"--unit=kubelet -n1 --no-pager": {issued, ""},
		"-u kubelet --lines 1":          {issued, ""},
		"-ukubelet -n 1 -o cat":         {strings.SplitAfter(issued, "]: ")[1], ""},
		"-u containerd":                 {`Sep 19 09:46:00 ip-1 containerd: time="2026-09-19T09:46:00Z" level=info msg=serving` + "\n", ""},
		"":                              {"", "a unit is missing: journalctl -u UNIT"},
		"-u sshd":                       {"", "sshd has no log"},
		"-u ../../etc/passwd":           {"", "not found"},
		"-u kubelet -n x":               {"", "invalid number of lines"},
		"-u kubelet -u containerd":      {"", "one unit at a time"},
		"-u kubelet -o json":            {"", "invalid output"},
		"-u":                            {"", "-u needs a value"},
		"--vacuum-size=1 -u kubelet":    {"", "cannot be had"},
		"-k":                            {"", "-k cannot be had"},
	} {
		var out bytes.Buffer
		err := System{Root: root, Out: &out}.RunJournalctl(t.Context(), strings.Fields(line), "ip-1")
		if out.String() != want.out || (err == nil) != (want.said == "") || err != nil && !strings.Contains(err.Error(), want.said) {
			t.Errorf("journalctl %s: %v, want %q\n%s", line, err, want.said, out.String())
		}
	}
}

func TestSudo(t *testing.T) {
	t.Parallel()
	raised := []string{"sudo", "--reuid=0", "--regid=0", "--clear-groups", "--"}
	for line, want := range map[string]struct {
		command    string
		said, more string
	}{
		"ls -al /var/lib/kubelet/pki/": {"ls -al /var/lib/kubelet/pki/", "", ""},
		"-n -u root id -u":             {"id -u", "", ""},
		"A=1 env":                      {"env", "", "A=1"},
		"-- -odd":                      {"-odd", "", ""},
		"-i":                           {"/bin/bash -l", "", ""},
		"-s id":                        {"id", "", ""},
		"-u nobody id":                 {"", `option "-u" cannot be had`, ""},
		"-E id":                        {"", `option "-E" cannot be had`, ""},
		"":                             {"", "a command is missing", ""},
	} {
		argv, env, err := SudoCommand(strings.Fields(line), []string{"USER=ec2-user", "TERM=xterm", "LD_PRELOAD=/tmp/x.so", "PATH=/tmp"})
		if want.said != "" {
			if err == nil || !strings.Contains(err.Error(), want.said) {
				t.Errorf("sudo %s: %v, want %q", line, err, want.said)
			}
			continue
		}
		if err != nil || !slices.Equal(argv, append(slices.Clone(raised), strings.Fields(want.command)...)) {
			t.Errorf("sudo %s: %q, %v", line, argv, err)
		}
		for _, variable := range []string{"SUDO_USER=ec2-user", "TERM=xterm", "USER=root", "HOME=/root", want.more} {
			if variable != "" && !slices.Contains(env, variable) {
				t.Errorf("sudo %s: the environment lacks %s: %q", line, variable, env)
			}
		}
		if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") || v == "PATH=/tmp" }) {
			t.Errorf("sudo %s: the environment is the caller's: %q", line, env)
		}
	}
}
