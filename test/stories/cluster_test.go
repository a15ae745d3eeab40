// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

// installation is one state directory, driven by the command line as a person would.
type installation struct {
	t          *testing.T
	dir        statedir.Dir
	kubeconfig string
	bin        string
	as         *syscall.SysProcAttr // who the commands run as; nil for the caller
	egress     string               // the way out of the default VPC; None if empty
	named      bool                 // issuers have this host's name if it does, which one account has at a time; else the account's address
	host       *farHost             // where the commands run; nil for the host of the test
	mounted    []string             // the state directory, or one in it, that is a file system of its own
	attached   []loopdevice.Device  // devices that these are on
	cli        *awsCLI              // the AWS CLI, for all steps
}

// programs is the directory of everything that `make build` made.
func programs(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "muster")); err != nil {
		t.Fatalf("stories run the built programs: run `make build` first (%v)", err)
	}
	return dir
}

// newInstallation makes a state directory, and sees to it that nothing of it is left when the test ends, however it
// ends.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	path, err := os.MkdirTemp("", "ms-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t, dir: statedir.Dir(filepath.Join(path, "state")), kubeconfig: filepath.Join(path, "kubeconfig"), bin: programs(t), cli: &awsCLI{}}
	before := takeSnapshot(t, i.dir)
	t.Cleanup(func() {
		if t.Failed() {
			i.keepLogs()
		}
		i.cli.end()
		out, err := i.command(context.WithoutCancel(t.Context()), "down", "--delete").CombinedOutput()
		if err != nil {
			t.Errorf("muster down --delete: %v\n%s", err, out)
		}
		i.unmount()
		if err := os.RemoveAll(path); err != nil {
			t.Errorf("removing what muster left: %v", err)
		}
		before.expectSame(t, i.dir)
	})
	return i
}

// keepLogs copies the logs of a story that failed to where they can be read afterwards.
func (i *installation) keepLogs() {
	target := filepath.Join("..", "..", ".build", "story-logs", strings.ReplaceAll(i.t.Name(), "/", "_"))
	_ = os.RemoveAll(target)
	if err := os.MkdirAll(target, 0o700); err != nil {
		return
	}
	for _, pattern := range []string{"logs/*.log", "machines/*/root/var/log/*.log", "machines/*/*.log", "clusters/*/logs/*.log", "clusters/*/audit/*/*.log"} {
		paths, _ := filepath.Glob(filepath.Join(string(i.dir), pattern))
		for _, path := range paths {
			relative, _ := filepath.Rel(string(i.dir), path)
			if content, err := os.ReadFile(path); err == nil {
				_ = os.WriteFile(filepath.Join(target, strings.ReplaceAll(relative, "/", "_")), content, 0o600)
			}
		}
	}
	i.t.Logf("logs are kept in %s", target)
}

// cluster is the directory of the installation's one cluster.
func (i *installation) cluster() statedir.Cluster {
	return i.dir.Cluster(clusterconfig.DefaultClusterName)
}

func (i *installation) environment() []string {
	return append(os.Environ(), "MUSTER_EGRESS="+cmp.Or(i.egress, "None"), "KUBECONFIG="+i.kubeconfig, statedir.Env+"="+string(i.dir), "TERM=dumb", "HOME="+filepath.Dir(i.kubeconfig))
}

// program prepares a call of one of the built programs, on the host that the story is about.
func (i *installation) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	line := append([]string{filepath.Join(i.bin, name)}, args...)
	if i.host != nil {
		line = append(i.host.enter(), line...)
	}
	return exec.CommandContext(ctx, line[0], line[1:]...)
}

// command prepares a call of muster.
func (i *installation) command(ctx context.Context, args ...string) *exec.Cmd {
	if args[0] == "up" && !i.named && !slices.Contains(args, "--issuer-host") {
		args = append(slices.Clone(args), "--issuer-host=")
	}
	cmd := i.program(ctx, "muster", args...)
	cmd.Env, cmd.SysProcAttr = i.environment(), i.as
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// muster runs a command line and returns what it printed: data and talk apart. It must succeed.
func (i *installation) muster(args ...string) (stdout, stderr string) {
	i.t.Helper()
	out, talk, err := i.try(args...)
	if err != nil {
		i.t.Fatalf("muster %s: %v\n%s%s", strings.Join(args, " "), err, out, talk)
	}
	return out, talk
}

func (i *installation) try(args ...string) (stdout, stderr string, err error) {
	cmd := i.command(i.t.Context(), args...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err = cmd.Run()
	return out.String(), talk.String(), err
}

// kubectl runs upstream's kubectl with the kubeconfig that muster wrote.
func (i *installation) kubectl(args ...string) (string, error) {
	cmd := i.program(i.t.Context(), "kubectl", args...)
	cmd.Env, cmd.SysProcAttr = i.environment(), i.as
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return strings.TrimSpace(string(out)), nil
}

func (i *installation) mustKubectl(args ...string) string {
	i.t.Helper()
	out, err := i.kubectl(args...)
	if err != nil {
		i.t.Fatal(err)
	}
	return out
}

// apply gives manifests to kubectl.
func (i *installation) apply(manifest string, args ...string) {
	i.t.Helper()
	i.mustKubectl(append([]string{"apply", "-f", i.manifest(manifest)}, args...)...)
}

// manifest writes documents into a file, whose path it returns.
func (i *installation) manifest(documents string) string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(documents), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}

// status asks the service itself.
func (i *installation) status() (servicestatus.Status, error) {
	return controlsocket.NewClient(i.dir).Status(i.t.Context())
}

// processes lists what runs, by the name of the component: there is one cluster.
func (i *installation) processes() map[string]supervise.Process {
	i.t.Helper()
	byName, err := i.running()
	if err != nil {
		i.t.Fatal(err)
	}
	return byName
}

func (i *installation) running() (map[string]supervise.Process, error) {
	found, err := i.find()
	if err != nil {
		return nil, err
	}
	byName := map[string]supervise.Process{}
	for _, p := range found {
		_, name := component.SplitProcess(p.Name)
		if _, ok := byName[name]; !ok { // the oldest of a name is the one that was started
			byName[name] = p
		}
	}
	return byName, nil
}

// vpcProcess is the name of the process of the default VPC, which is the VPC's id.
func (i *installation) vpcProcess() string {
	i.t.Helper()
	network, err := vpc.OpenDefault(i.dir.VPCs())
	if err != nil {
		i.t.Fatal(err)
	}
	return network.ID()
}

// find lists the processes of the cluster. Processes of another user are only known to the service.
func (i *installation) find() ([]supervise.Process, error) {
	if i.as == nil {
		return guard.Running(i.dir)
	}
	status, err := i.status()
	if err != nil {
		return nil, err
	}
	var found []supervise.Process
	components := status.Components
	for _, cluster := range status.Clusters {
		components = append(components, cluster.Components...)
	}
	for _, c := range components {
		if c.PID != 0 {
			found = append(found, supervise.Process{Name: c.Name, PID: c.PID})
		}
	}
	return found, nil
}

// in is the same installation for a step of a story.
func (i *installation) in(t *testing.T) *installation {
	t.Helper()
	step := *i
	step.t = t
	return &step
}

// kill ends a process of the cluster in the hardest way. It must be one of this installation.
func (i *installation) kill(name string) supervise.Process {
	i.t.Helper()
	var p supervise.Process
	i.eventually("process "+name+" is killed", func() error { // a process that was killed or ended a moment ago may just be starting again
		all, err := i.running()
		if err != nil {
			return err
		}
		var ok bool
		if p, ok = all[name]; !ok {
			return errors.New("it does not run")
		}
		return syscall.Kill(p.PID, syscall.SIGKILL)
	})
	return p
}
