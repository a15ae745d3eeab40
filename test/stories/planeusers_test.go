// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

// ownUsers are the components of a cluster that are not root.
var ownUsers = []string{
	component.APIServer, component.Authenticator, component.CertificateController, component.ControllerManager, component.Etcd, component.Front, component.PodWebhook, component.Scheduler, component.TokenSigner,
}

// TestPlanesAreNotRoot looks at the components of two clusters as the kernel sees them, and at the host from where the
// API server of one is: it reads no key but its own. All of them are killed, and an installation in which they were
// root goes on.
//
//story:about plane/supervise plane/planeid plane/component platform/seclude platform/socketdir platform/atomicfile
func TestPlanesAreNotRoot(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0", "--timeout", "3m")
	i.muster("create", "cluster", "blue", "--wait", "--timeout", "3m")
	before := i.usersOfPlanes()
	readsItsOwn(i)

	for name := range before {
		_, name := component.SplitProcess(name)
		i.kill(name)
	}
	i.kill("serve")
	i.muster("up", "--cluster", "muster", "--timeout", "3m") // waits
	i.eventually("all components run", func() error { return i.allOwn(len(before)) })
	i.ready()
	i.sameUsers(before)
	i.mustKubectl("create", "token", "default")

	i.muster("down")
	i.asBefore()
	i.muster("up", "--cluster", "muster", "--timeout", "3m")
	i.eventually("all components run", func() error { return i.allOwn(len(before)) })
	i.ready()
	i.sameUsers(before)
	i.mustKubectl("create", "token", "default")
	i.mustKubectl("get", "serviceaccount", "default", "--context", "muster")
	readsItsOwn(i)
}

// usersOfPlanes are the users of both clusters' components, by the names of their processes: each another one, and none
// with a right.
func (i *installation) usersOfPlanes() map[string]uint32 {
	i.t.Helper()
	users, of := map[string]uint32{}, map[uint32]string{}
	for _, cluster := range []string{"muster", "blue"} {
		for _, p := range (side{i, cluster}).processesOf() {
			_, name := component.SplitProcess(p.Name)
			if !slices.Contains(ownUsers, name) {
				continue
			}
			if other, taken := of[p.User]; taken || p.User == 0 {
				i.t.Errorf("%s is user %d, as %q is", p.Name, p.User, other)
			}
			users[p.Name], of[p.User] = p.User, p.Name
			i.noRights(p)
		}
	}
	if len(users) != 2*len(ownUsers) {
		i.t.Fatalf("%d components have users of their own: %v", len(users), users)
	}
	return users
}

// allOwn fails unless so many components run as users of their own.
func (i *installation) allOwn(want int) error {
	found, err := i.find()
	n := 0
	for _, p := range found {
		if _, name := component.SplitProcess(p.Name); p.User != 0 && slices.Contains(ownUsers, name) {
			n++
		}
	}
	if err == nil && n != want {
		err = fmt.Errorf("%d of %d do", n, want)
	}
	return err
}

// noRights looks at a process as the kernel sees it.
func (i *installation) noRights(p supervise.Process) {
	i.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		i.t.Fatal(err)
	}
	user := strings.TrimSpace(strings.Repeat(strconv.FormatUint(uint64(p.User), 10)+"\t", 4))
	for _, want := range []string{
		"Uid:\t" + user, "Gid:\t" + user, "Groups:\t", "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !slices.ContainsFunc(strings.Split(string(raw), "\n"), func(line string) bool { return strings.TrimSpace(line) == strings.TrimSpace(want) }) {
			i.t.Errorf("%s lacks %q", p.Name, want)
		}
	}
}

func (i *installation) sameUsers(before map[string]uint32) {
	i.t.Helper()
	after := i.usersOfPlanes()
	for name, user := range before {
		if after[name] != user {
			i.t.Errorf("%s was user %d and is %d", name, user, after[name])
		}
	}
	status, err := i.status()
	if err != nil || status.NoOwnUsers != "" {
		i.t.Fatalf("the status says %q: %v", status.NoOwnUsers, err)
	}
	for _, cluster := range status.Clusters {
		for _, c := range cluster.Components {
			if want := after[component.ProcessPrefix(cluster.Namespace)+c.Name]; c.User != want {
				i.t.Errorf("the status says that %s of %s is user %d, want %d", c.Name, cluster.Name, c.User, want)
			}
		}
	}
}

// readsItsOwn looks from where an API server is, as its user, at all files of the installation.
func readsItsOwn(i *installation) {
	i.t.Helper()
	server := i.processes()[component.APIServer]
	for _, p := range (side{i, "muster"}).processesOf() {
		if p.Name == "cluster/muster/"+component.APIServer {
			server = p
		}
	}
	var all []string // whether or not its directories can be listed
	err := filepath.WalkDir(string(i.dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case entry != nil && entry.IsDir() && slices.Contains([]string{"machines", "filesystems", "vpc", "images", "registry", "run"}, entry.Name()):
			return fs.SkipDir
		case err == nil && entry.Type().IsRegular():
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	user := strconv.FormatUint(uint64(server.User), 10)
	arguments := append([]string{"--target", strconv.Itoa(server.PID), "--mount", "--setuid", user, "--setgid", user, "--", "/bin/sh", "-c", `for file; do head -c 1 "$file" >/dev/null 2>&1 && echo "$file"; done; true`, "sh"}, all...)
	out, err := exec.CommandContext(i.t.Context(), "nsenter", append(arguments, "/etc/shadow")...).Output()
	if err != nil {
		i.t.Fatalf("looking: %v\n%s", err, out)
	}
	seen := strings.ReplaceAll(string(out), string(i.dir)+"/", "./")
	for _, path := range []string{"./clusters/muster/pki/issued/kube-apiserver.pem", "./clusters/muster/pki/cluster/ca.pem", "./clusters/muster/components/kube-apiserver/encryption.yaml"} {
		if !strings.Contains(seen, path+"\n") {
			i.t.Errorf("it does not read %s, which it needs", path)
		}
	}
	for line := range strings.Lines(seen) {
		line = strings.TrimSpace(line)
		own := strings.HasPrefix(line, "./clusters/muster/components/kube-apiserver/") || strings.HasPrefix(line, "./clusters/muster/audit/0/audit") || strings.HasSuffix(line, "ca.pem") ||
			slices.Contains([]string{"kube-apiserver.pem", "kubelet-client.pem", "front-proxy-client.pem", "etcd-client.pem", "authenticator-client.pem", "node-authorizer-client.pem", "pod-identity-webhook-client.pem"}, filepath.Base(line))
		if !own || !strings.HasPrefix(line, "./clusters/muster/") {
			i.t.Errorf("it reads %s", line)
		}
	}
	if !slices.ContainsFunc(all, func(path string) bool { return path == filepath.Join(i.dir.PKI(), "account", "ca-key.pem") }) {
		i.t.Error("the account's key was not looked at")
	}
}

// asBefore makes the files of an installation that is stopped as they were when all components were root.
func (i *installation) asBefore() {
	i.t.Helper()
	err := os.Remove(i.dir.IDs())
	for _, dir := range []string{i.dir.Clusters(), i.dir.PKI()} {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			mode := fs.FileMode(0o600)
			if entry.IsDir() {
				mode = 0o700
			}
			return errors.Join(os.Lchown(path, 0, 0), os.Chmod(path, mode))
		}))
	}
	if err != nil {
		i.t.Fatal(err)
	}
}
