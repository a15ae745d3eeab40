// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/statedir"
)

// powerLossBack is how long clusters, addresses and nodes may take to be back after a power loss.
const powerLossBack = 60 * time.Second

const powerLossPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  containers: [{name: c, image: "muster.dev/workload:v1", args: [serve]}]
`

// TestPowerLoss takes from an installation what a power loss takes, all at once: processes, namespaces, mounts, loop
// devices, control groups and files in /run. The command of the unit of systemd then brings every cluster, address and node
// back, and nothing is lost.
//
//story:about cluster/guard cluster/session platform/serviceunit machine/machine/local cluster/serve
func TestPowerLoss(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--timeout", "4m")
	i.muster("create", "cluster", "blue", "--nodes", "1", "--provider", "simulated", "--wait", "--timeout", "4m")
	i.apply(fmt.Sprintf(powerLossPod, "survivor"), "--context=muster")
	i.mustKubectl("--context", "muster", "wait", "--for=condition=Ready", "pod/survivor", "--timeout=120s")
	i.ready()
	before := i.whatIsKept()
	for _, cluster := range []string{"muster", "blue"} { // the last write before
		i.mustKubectl("--context", cluster, "create", "configmap", "last", "--from-literal=of="+cluster)
	}

	i.losePower()
	begun := time.Now()
	i.startAsSystemd()
	t.Logf("what the unit starts took %s", time.Since(begun).Round(time.Millisecond))
	i.eventually("clusters, addresses and nodes are back", func() error { return i.isBack(begun) })
	took := time.Since(begun)
	t.Logf("clusters, addresses and nodes are back after %s", took.Round(100*time.Millisecond))
	if took > powerLossBack {
		t.Errorf("clusters, addresses and nodes are back after %s, want %s at most", took, powerLossBack)
	}
	i.eventually("pods run", func() error { return i.podRuns(begun) })
	t.Logf("pods run after %s", time.Since(begun).Round(100*time.Millisecond))
	i.ready()
	if after := i.whatIsKept(); after != before {
		t.Errorf("there was\n%s\nand there is\n%s", before, after)
	}
	for _, cluster := range []string{"muster", "blue"} {
		if of := i.mustKubectl("--context", cluster, "get", "configmap", "last", "-o", "jsonpath={.data.of}"); of != cluster {
			t.Errorf("the last write to %s is %q", cluster, of)
		}
	}
}

// whatIsKept lists what a power loss may not change: nodes, pods, addresses, machines.
func (i *installation) whatIsKept() string {
	i.t.Helper()
	var all strings.Builder
	for _, cluster := range []string{"muster", "blue"} {
		fmt.Fprintln(&all, i.mustKubectl("--context", cluster, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.addresses[*].address}{"\n"}{end}`))
		fmt.Fprintln(&all, i.mustKubectl("--context", cluster, "config", "view", "-o", "jsonpath={.clusters[*].cluster.server}"))
	}
	fmt.Fprintln(&all, i.mustKubectl("--context", "muster", "get", "pod", "survivor", "-o", "jsonpath={.metadata.uid} {.spec.nodeName}"))
	fmt.Fprintln(&all, i.mustKubectl("--context", "muster-management", "get", "machines", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.addresses[*].address}{"\n"}{end}`))
	return all.String()
}

// isBack says what is not back of clusters, addresses and nodes. The memory of etcd does not count: a node is
// there when it has renewed its lease since.
func (i *installation) isBack(begun time.Time) error {
	for _, cluster := range []string{"muster", "blue"} {
		if _, err := i.kubectl("--context", cluster, "get", "--raw", "/readyz"); err != nil {
			return err
		}
		names, err := i.kubectl("--context", cluster, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		for name := range strings.FieldsSeq(names) {
			renewed, err := i.kubectl("--context", cluster, "-n", "kube-node-lease", "get", "lease", name, "-o", "jsonpath={.spec.renewTime}")
			if err != nil {
				return err
			}
			if at, err := time.Parse(time.RFC3339, renewed); err != nil || !at.After(begun) {
				return fmt.Errorf("node %s of %s was last heard of at %s (%w)", name, cluster, renewed, errors.Join(err, errors.New("that is before")))
			}
			ready, err := i.kubectl("--context", cluster, "get", "node", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			if err != nil || ready != "True" {
				return fmt.Errorf("node %s of %s is Ready: %q (%w)", name, cluster, ready, errors.Join(err, errors.New("it is not")))
			}
		}
	}
	clusters, err := i.kubectl("--context", "muster-management", "get", "clusters", "-A", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	if err == nil && strings.Count(clusters, "True") != 2 {
		err = fmt.Errorf("clusters are Ready: %s", clusters)
	}
	return err
}

// podRuns says why the pod does not run since a moment, or does not answer.
func (i *installation) podRuns(since time.Time) error {
	started, err := i.kubectl("--context", "muster", "get", "pod", "survivor", "-o", `jsonpath={.status.containerStatuses[*].state.running.startedAt}`)
	if err != nil {
		return err
	}
	if at, err := time.Parse(time.RFC3339, started); err != nil || at.Before(since.Truncate(time.Second)) {
		return fmt.Errorf("the pod runs since %q", started)
	}
	_, err = i.kubectl("--context", "muster", "wait", "--for=condition=Ready", "pod/survivor", "--timeout=1s")
	return err
}

// startAsSystemd starts what the installation's unit has systemd start, with what systemd gives it.
func (i *installation) startAsSystemd() {
	i.t.Helper()
	unit, _ := i.muster("service", "install", "--dry-run")
	var line string
	for text := range strings.Lines(unit) {
		if after, ok := strings.CutPrefix(text, "ExecStart="); ok {
			line = strings.TrimSpace(after)
		}
	}
	words, err := shellquote.Split(strings.ReplaceAll(line, "%%", "%"))
	if err != nil || len(words) < 2 {
		i.t.Fatalf("ExecStart is %q: %v", line, err)
	}
	cmd := exec.CommandContext(i.t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// losePower takes from the host what a power loss takes of the installation, and nothing of anybody else.
func (i *installation) losePower() {
	i.t.Helper()
	took := i.eventually("no process is left", func() error {
		running, err := guard.Running(i.dir)
		for _, p := range running {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("there are %d", len(running))
		}
		return err
	})
	i.t.Logf("all processes ended within %s", took.Round(time.Millisecond))
	i.eventually("no mount is left", i.unmountAll)
	i.eventually("no loop device is left", i.detachAll)
	for _, kind := range []string{groupsOfMachines, groupsOfPlanes} {
		i.removeGroups(kind)
	}
	i.removeLocks()
}

// unmountAll unmounts what is mounted below the installation.
func (i *installation) unmountAll() error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var left []string
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	for scanner.Scan() {
		if at := strings.Fields(scanner.Text())[4]; strings.HasPrefix(at, string(i.dir)+"/") {
			left = append(left, at)
		}
	}
	for _, at := range left {
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("there was %s", strings.Join(left, " "))
	}
	return nil
}

// detachAll detaches the loop devices of files of the installation.
func (i *installation) detachAll() error {
	all, err := loopdevice.List()
	if err != nil {
		return err
	}
	left := 0
	for _, device := range all {
		if strings.HasPrefix(device.Path, string(i.dir)+"/") {
			left++
			if err := loopdevice.Detach(device); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		return fmt.Errorf("there were %d", left)
	}
	return nil
}

// removeGroups removes the control groups of a kind that are the installation's.
func (i *installation) removeGroups(kind string) {
	i.t.Helper()
	hash := statedir.Hash(i.dir)
	i.eventually("no control group is left in "+kind, func() error {
		var groups []string
		err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it went away while we looked
			}
			if entry.IsDir() && strings.Contains(path+"/", "/"+kind+"/"+hash+"/") {
				groups = append(groups, path)
			}
			return nil
		})
		for _, group := range slices.Backward(groups) { // the deepest first
			err = errors.Join(err, os.Remove(group))
		}
		return err
	})
}

// removeLocks removes the installation's files in /run, of all that are there.
func (i *installation) removeLocks() {
	i.t.Helper()
	paths, err := filepath.Glob(filepath.Join(filelock.Dir, "*"))
	if err != nil {
		i.t.Fatal(err)
	}
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), string(i.dir)) {
			if err := os.Remove(path); err != nil {
				i.t.Fatal(err)
			}
		}
	}
}
