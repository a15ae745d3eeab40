// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
)

// drilled runs "muster drill" and returns what the machine has afterwards, and what is said.
func drilled(t *testing.T, cluster string, before *v1alpha1.MachineDrill, args ...string) (spec *v1alpha1.MachineDrill, said string, err error) {
	t.Helper()
	objects := clitest.World()
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.Machine); ok && m.Name == clitest.FirstMachine {
			m.Spec.Drill = before
		}
	}
	leaving, lone := &v1alpha1.Machine{ObjectMeta: clitest.MadeBefore("i-0000000000000dead", time.Hour)}, &v1alpha1.Machine{ObjectMeta: clitest.MadeBefore("i-0000000000000a10e", time.Hour)}
	leaving.Spec = v1alpha1.MachineSpec{ClusterName: "home", NodeGroup: "default", Provider: v1alpha1.ProviderLocal}
	leaving.Finalizers, leaving.DeletionTimestamp = []string{v1alpha1.FinalizerMachine}, new(metav1.NewTime(clitest.Noon))
	lone.Spec = v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal}
	b := clitest.NewBench(t, interceptor.Funcs{}, append(objects, leaving, lone)...)
	b.O.Cluster = cluster
	err = b.Run(t.Context(), (&drillCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }}).command(), args...)
	m := &v1alpha1.Machine{}
	if failed := b.Client.Get(t.Context(), client.ObjectKey{Name: clitest.FirstMachine}, m); failed != nil {
		t.Fatal(failed)
	}
	return m.Spec.Drill, b.Out.String(), err
}

// Each drill has a time by itself, or the one that is asked for, and the command says until when.
func TestDrill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  string
		lasts time.Duration
	}{
		{"spot-interruption", 2 * time.Minute},
		{"maintenance", 2 * time.Minute},
		{"rebalance", 2 * time.Minute},
		{"stop", 5 * time.Minute},
		{"disk-full", 5 * time.Minute},
		{"no-network", 5 * time.Minute},
		{"kubelet", 5 * time.Minute},
		{"containerd --for 90s", 90 * time.Second},
		{"stop --for 24h", 24 * time.Hour},
		{"reboot", 0},
	} {
		args := strings.Fields(c.args)
		spec, said, err := drilled(t, "", nil, append([]string{clitest.FirstMachine}, args...)...)
		if err != nil || spec == nil || string(spec.Kind) != args[0] || !spec.Began.Time.Equal(clitest.Noon) || !spec.Ends.Time.Equal(clitest.Noon.Add(c.lasts)) {
			t.Errorf("%s: %+v, %v", c.args, spec, err)
			continue
		}
		if want := "drill " + args[0] + " until " + spec.Ends.UTC().Format(time.RFC3339); !strings.Contains(said, want) {
			t.Errorf("%s: it says %q, want %q", c.args, said, want)
		}
	}
	going := &v1alpha1.MachineDrill{Kind: v1alpha1.DrillStop, Began: metav1.NewMicroTime(clitest.Noon), Ends: metav1.NewTime(clitest.Noon.Add(time.Hour))}
	if spec, said, err := drilled(t, "home", going, clitest.FirstNode, "end"); err != nil || spec != nil || !strings.Contains(said, "has no drill any more") {
		t.Errorf("end: %+v, %q, %v", spec, said, err)
	}
	if spec, said, err := drilled(t, "", going, clitest.FirstMachine, "kubelet", "-o", "yaml"); err != nil || spec == nil || spec.Kind != v1alpha1.DrillKubelet || !strings.Contains(said, "kind: kubelet") {
		t.Errorf("another: %+v, %q, %v", spec, said, err)
	}
}

// A drill that cannot be is refused in one line, and changes nothing.
func TestDrillRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		clitest.FirstMachine + " clock":                    "a local machine has the host's clock",
		clitest.FirstMachine + " fire":                     `there is no drill "fire"`,
		clitest.FirstMachine + " stop --for 0s":            "a drill lasts from 1s to 24h",
		clitest.FirstMachine + " stop --for 25h":           "a drill lasts from 1s to 24h",
		clitest.FirstMachine + " reboot --for 1m":          "reboot happens at once",
		clitest.FirstMachine + " end --for 1m":             "end happens at once",
		"i-0123456789abcdeff stop":                         "i-0123456789abcdeff",
		clitest.SecondMachine + " stop":                    "machine " + clitest.SecondMachine + " has no drills: ",
		"i-0000000000000dead stop":                         "is being deleted, and has no drills",
		"i-0000000000000a10e stop":                         "is of no cluster, and has no drills",
		"--cluster blue " + clitest.FirstMachine + " stop": `machine ` + clitest.FirstMachine + ` is of cluster "home", and --cluster says "blue"`,
	} {
		cluster, rest := "", strings.Fields(args)
		if rest[0] == "--cluster" {
			cluster, rest = rest[1], rest[2:]
		}
		spec, said, err := drilled(t, cluster, nil, rest...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || spec != nil || said != "" {
			t.Errorf("%s: %v, want %q; it has %+v, and says %q", args, err, want, spec, said)
		}
		if usage := errors.As(err, new(terminal.UsageError)); usage != (strings.HasPrefix(rest[0], clitest.FirstMachine) && cluster == "") {
			t.Errorf("%s: an error of usage is %v", args, usage)
		}
	}
}
