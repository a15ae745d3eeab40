// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/nsenter"
	"muster.dev/muster/internal/platform/statedir"
)

// stateful gives a bench a state directory with a cluster, components' logs and the records of a machine.
func stateful(t *testing.T, b *clitest.Bench) statedir.Dir {
	t.Helper()
	dir, err := statedir.Open(b.O.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	cluster := dir.Cluster("muster")
	at := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	for path, content := range map[string]string{
		dir.Layout():                  "",
		cluster.Log("etcd"):           `{"level":"info","ts":"2026-11-20T10:00:00Z","msg":"new"}` + "\n",
		cluster.Log("etcd") + ".1":    `{"level":"info","ts":"2026-11-20T09:00:00Z","msg":"old"}` + "\n",
		cluster.Log("kube-apiserver"): "I1120 10:00:00.000000 1 x.go:1] up\n",
		cluster.Audit(0):              `{"kind":"Event","stageTimestamp":"2026-11-20T10:00:00Z"}` + "\n",
		dir.MachineLogs(clitest.FirstMachine) + "/kubelet.log":    "I1120 10:00:01.000000 1 x.go:1] kubelet\n",
		dir.MachineLogs(clitest.FirstMachine) + "/containerd.log": `time="2026-11-20T10:00:00Z" level=info msg=containerd` + "\n",
		dir.Machine(clitest.FirstMachine) + "/instance.json":      `{"id":"` + clitest.FirstMachine + `","privateIP":"172.31.0.5","privateDNSName":"` + clitest.FirstNode + `","domain":"ec2.internal","zone":"us-east-1a"}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runLogs(ctx context.Context, b *clitest.Bench, args ...string) error {
	if args == nil {
		args = []string{}
	}
	return b.Run(ctx, (&logsCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }}).command(), args...)
}

func TestLogs(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	stateful(t, b)
	const (
		old        = `{"level":"info","ts":"2026-11-20T09:00:00Z","msg":"old"}` + "\n"
		recent     = `{"level":"info","ts":"2026-11-20T10:00:00Z","msg":"new"}` + "\n"
		containerd = `containerd | time="2026-11-20T10:00:00Z" level=info msg=containerd` + "\n"
		kubelet    = `I1120 10:00:01.000000 1 x.go:1] kubelet` + "\n"
	)
	for _, test := range []struct {
		want string
		args []string
	}{
		{old + recent, []string{"etcd"}},
		{recent, []string{"etcd", "--tail", "1"}},
		{recent, []string{"etcd", "--since", "2h30m"}},
		{recent, []string{"etcd", "--since-time", "2026-11-20T10:00:00+00:00"}},
		{"", []string{"etcd", "--since", "1s"}},
		{containerd + "kubelet    | " + kubelet, []string{clitest.FirstMachine}},
		{containerd + "kubelet    | " + kubelet, []string{"machine/" + clitest.FirstMachine}},
		{kubelet, []string{clitest.FirstNode, "--component", "kubelet"}},
		{kubelet, []string{"172.31.0.5", "-c", "kubelet"}},
	} {
		if err := runLogs(t.Context(), b, test.args...); err != nil {
			t.Fatalf("%v: %v", test.args, err)
		}
		if diff := cmp.Diff(test.want, b.Out.String()); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", test.args, diff)
		}
	}
	if err := runLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "logs.txt", b.Out.String())
}

func TestLogsErrors(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	clitest.WantErr(t, runLogs(t.Context(), b), "muster up", false)
	stateful(t, b)
	for _, test := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"kubelet"}, "each machine has a kubelet of its own: muster logs MACHINE --component kubelet", false},
		{[]string{"kube-apisever"}, `no component or machine is named "kube-apisever"; did you mean "kube-apiserver"?; muster logs lists what has logs`, false},
		{[]string{clitest.SecondMachine}, "machine " + clitest.SecondMachine + " is simulated and keeps no logs of its own", false},
		{[]string{clitest.FirstMachine, "-c", "docker"}, "has no log of \"docker\"; it has those of: containerd, kubelet", false},
		{[]string{"etcd", "-c", "kubelet"}, "--component goes with a machine", true},
		{[]string{"etcd", "--tail", "-2"}, "invalid --tail -2: must be at least -1", true},
		{[]string{"etcd", "--since", "1m", "--since-time", "2026-11-20T10:00:00Z"}, "not both", true},
		{[]string{"etcd", "--since-time", "yesterday"}, `invalid --since-time "yesterday": must be of the form`, true},
		{[]string{"--follow"}, "--follow goes with the name", true},
	} {
		clitest.WantErr(t, runLogs(t.Context(), b, test.args...), test.want, test.usage)
	}
}

func TestFollowedLogsEndWithoutError(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	stateful(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(lineWriter, 10)
	b.O.Out = lines
	done := make(chan error, 1)
	go func() { done <- runLogs(ctx, b, "etcd", "-f") }()
	<-lines
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// inits starts a process that is the first one of a namespace and marked as a machine. Needs root.
func inits(t *testing.T, dir statedir.Dir, id string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	cmd.Env = supervise.Marks(dir, "machine/"+id, "spec")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		t.Fatalf("making a process namespace, which needs root: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestExec(t *testing.T) {
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	dir := stateful(t, b)
	pid := inits(t, dir, clitest.FirstMachine)
	t.Setenv("KUBECONFIG", "/nowhere")
	t.Setenv("TERM", "vt100")
	var asked nsenter.Config
	code, failure := 0, error(nil)
	run := func(args ...string) error {
		e := &ExecCommand{Options: b.O, Planes: b.Planes, Run: func(_ context.Context, cfg nsenter.Config) (int, error) {
			asked = cfg
			if !cfg.Still() {
				t.Error("the machine is not the one that was found")
			}
			return code, failure
		}}
		return b.Run(t.Context(), e.command(), args...)
	}
	if err := run(clitest.FirstNode, "--", "ls", "-l"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ls", "-l"}, asked.Args); diff != "" || asked.PID != pid || asked.TTY {
		t.Fatalf("asked for %+v", asked)
	}
	env := map[string]bool{}
	for _, variable := range asked.Env {
		env[variable] = true
	}
	if !env["TERM=vt100"] || env["KUBECONFIG=/nowhere"] {
		t.Fatalf("environment %v", asked.Env)
	}
	if err := run("-it", "172.31.0.5"); err != nil || !asked.TTY || len(asked.Args) != 0 {
		t.Fatalf("asked for %+v (%v)", asked, err)
	}
	code = 42
	var status terminal.ExitStatus
	if err := run(clitest.FirstMachine, "true"); !errors.As(err, &status) || status != 42 {
		t.Fatalf("exit code 42 became %v", err)
	}
	code, failure = 0, nsenter.ErrNoCommand
	if err := run(clitest.FirstMachine, "nothing"); !errors.As(err, &status) || status != 127 {
		t.Fatalf("a missing program became %v", err)
	}
}

func TestExecErrors(t *testing.T) {
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	exec := func(euid int, args ...string) error {
		return b.Run(t.Context(), (&ExecCommand{Options: b.O, Planes: b.Planes, EUID: euid}).command(), args...)
	}
	clitest.WantErr(t, exec(0, clitest.FirstMachine), "muster up", false)
	dir := stateful(t, b)
	clitest.WantErr(t, exec(0, clitest.FirstMachine), "machine "+clitest.FirstMachine+" does not run", false)
	clitest.WantErr(t, exec(1000, clitest.SecondMachine), "machine "+clitest.SecondMachine+" is simulated and has no shell", false)
	clitest.WantErr(t, exec(0, "nobody"), `machine "nobody" not found`, false)
	clitest.WantErr(t, exec(0, "i-0123456789abcdef1"), `did you mean "`+clitest.FirstMachine+`"?`, false)
	inits(t, dir, clitest.FirstMachine)
	clitest.WantErr(t, exec(1000, clitest.FirstMachine), "entering machine "+clitest.FirstMachine+" needs root", false)
	clitest.WantErr(t, exec(0, clitest.FirstMachine, "-z"), "put -- before the command to run", true)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	complete := kinds.CompleteNames(b.O, b.Planes, kinds.Machines(), 1)
	cmd := getOf(b)
	cmd.SetContext(t.Context())
	names, _ := complete(cmd, nil, "")
	want := []string{clitest.FirstMachine + "\t" + clitest.FirstNode, clitest.FirstNode + "\t" + clitest.FirstMachine, clitest.SecondMachine}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	if names, _ := complete(cmd, []string{clitest.FirstMachine}, ""); len(names) != 0 {
		t.Fatalf("a second name is offered: %v", names)
	}
	names, _ = (&getCommand{Options: b.O, planes: b.Planes}).complete(cmd, []string{"ng"}, "")
	if diff := cmp.Diff([]string{"default"}, names); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	// Nothing runs: nothing is offered, nothing is said.
	b.Planes = kinds.NewDialers()
	if names, _ := kinds.CompleteNames(b.O, b.Planes, kinds.Machines(), 1)(cmd, nil, ""); len(names) != 0 || b.Err.Len() > 0 {
		t.Fatalf("offered %v, said %q", names, &b.Err)
	}
	stateful(t, b)
	names, _ = (&logsCommand{Options: b.O}).complete(cmd, nil, "")
	want = []string{"audit\tcomponent", "etcd\tcomponent", "kube-apiserver\tcomponent", clitest.FirstMachine + "\t" + clitest.FirstNode, clitest.FirstNode + "\t" + clitest.FirstMachine}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
}

func TestMachineRecordsAreReadAsProvidersWriteThem(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	records := kinds.MachineRecords(stateful(t, b))
	if len(records) != 1 || records[0].PrivateIP != netip.MustParseAddr("172.31.0.5") {
		t.Fatalf("read %+v", records)
	}
}
