// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUpInterruptedLeavesNothingAfterDelete kills everything at a random moment of the start.
//
//story:about ./cmd/muster/service cluster/serve cluster/controlsocket plane/supervise
func TestUpInterruptedLeavesNothingAfterDelete(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		moment := time.Duration(random.IntN(9000)) * time.Millisecond
		t.Run(moment.String(), func(t *testing.T) {
			i := newInstallation(t)
			up := i.command(t.Context(), "up", "--nodes", "2")
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			<-time.After(moment)
			for _, name := range []string{"guard", "serve", "etcd", "management-etcd"} {
				if _, ok := i.processes()[name]; ok {
					i.kill(name)
				}
			}
			_ = up.Process.Kill()
			_ = up.Wait()
			// The clean-up of the installation removes everything, and compares the host with what it was.
		})
	}
}

// TestUpAfterInterruptedUp continues where a killed start left off.
//
//story:about ./cmd/muster/service cluster/serve cluster/controlsocket plane/supervise
func TestUpAfterInterruptedUp(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	up := i.command(t.Context(), "up", "--nodes", "1")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	i.eventually("the API server starts", func() error {
		if _, ok := i.processes()["kube-apiserver"]; !ok {
			return errors.New("not yet")
		}
		return nil
	})
	for _, name := range []string{"guard", "serve", "kube-apiserver"} {
		i.kill(name)
	}
	_ = up.Process.Kill()
	_ = up.Wait()
	i.muster("up")
	i.ready()
}

// TestBadInputChangesNothing gives muster what it cannot use: one clear line each, exit code 1, or 2 for usage.
//
//story:about ./cmd/muster
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "apiVersion: muster.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c}\n"
	const group = "---\napiVersion: muster.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: g}\nspec: {scalingConfig: {desiredSize: %s}}\n"
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown field", []string{"up", "-f", file("a.yaml", head+"spec: {netwrok: {}}\n")}, 1, "netwrok"},
		{"negative size", []string{"up", "-f", file("b.yaml", head+strings.Replace(group, "%s", "-1", 1))}, 1, "spec.scalingConfig.desiredSize"},
		{"negative nodes", []string{"up", "--nodes", "-1"}, 1, "desiredSize"},
		{"overlapping networks", []string{"up", "-f", file("c.yaml", head+"spec: {network: {podCIDR: 10.100.0.0/16}}\n")}, 1, "overlap"},
		{"pods in the VPC", []string{"up", "-f", file("e.yaml", head+"spec: {network: {podCIDR: 172.31.0.0/18}}\n")}, 1, "overlap"},
		{"subnets of nobody", []string{"up", "-f", file("f.yaml", head+"spec: {network: {subnetIDs: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}}\n")}, 1, "subnetIDs"},
		{"a version of nobody", []string{"up", "-f", file("g.yaml", head+"spec: {version: v1.99.0}\n")}, 1, "spec.version"},
		{"port in use", []string{"up", "-f", file("d.yaml", head+"spec: {apiServer: {port: "+listen(t)+"}}\n")}, 1, "in use"},
		{"no such file", []string{"up", "-f", filepath.Join(dir, "none.yaml")}, 1, "none.yaml"},
		{"unknown flag", []string{"up", "--nods", "3"}, 2, "--nods"},
		{"unknown provider", []string{"up", "--provider", "ec3"}, 1, "ec3"},
		{"too many arguments", []string{"down", "now"}, 2, "usage"},
		{"status of nothing", []string{"status"}, 1, "muster up"},
		{"exec without a cluster", []string{"exec", "i-00000000000000000", "--", "true"}, 1, "muster up"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := i.in(t)
			out, talk, err := i.try(tc.args...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tc.code {
				t.Errorf("exit: %v, not %d\n%s%s", err, tc.code, out, talk)
			}
			if !strings.Contains(talk, tc.want) {
				t.Errorf("%q is not in what it says: %s", tc.want, talk)
			}
			if lines := strings.Count(talk, "\n"); lines != 1 || out != "" {
				t.Errorf("it says more than one line:\n%s%s", out, talk)
			}
			if _, err := os.Stat(string(i.dir)); !os.IsNotExist(err) {
				t.Errorf("it made a state directory (%v)", err)
			}
		})
	}
}
