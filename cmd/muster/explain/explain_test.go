// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	refusedMachine = "i-0aaaaaaaaaaaaaaaa"
	strangeMachine = "i-0bbbbbbbbbbbbbbbb"
)

// world is what there is: a cluster with a machine that is Ready and one that is on its way, as all commands' tests have
// it, and what a test adds.
func world(t *testing.T, more ...client.Object) *clitest.Bench {
	t.Helper()
	objects := clitest.World()
	for _, object := range objects {
		switch object := object.(type) {
		case *v1alpha1.NodeGroup:
			object.Status.Conditions = []metav1.Condition{condition("True", "Ready", "")}
		case *v1alpha1.Machine:
			if object.Name == clitest.FirstMachine {
				object.Status.Conditions = []metav1.Condition{condition("True", "NodeReady", "")}
			}
		}
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, append(objects, more...)...)
	setUp(t, b)
	return b
}

// setUp makes the state directory one in which a cluster was set up.
func setUp(t *testing.T, b *clitest.Bench) {
	t.Helper()
	path := filepath.Join(b.O.StateDir, "clusters", "home", "cluster.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("kind: Cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.O.StateDir, "layout"), []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func condition(status, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(clitest.Noon.Add(-time.Minute)), ObservedGeneration: 1,
	}
}

// newMachine is one that was launched ten minutes ago, and is not Ready for a reason.
func newMachine(id, reason, message string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: clitest.MadeBefore(id, 10*time.Minute)}
	m.Spec = v1alpha1.MachineSpec{ClusterName: "home", NodeGroup: "default", Provider: v1alpha1.ProviderLocal, InstanceProfile: "muster-node-home"}
	m.Status = v1alpha1.MachineStatus{
		Phase: v1alpha1.MachineJoining, NodeName: "node-of-" + id, Conditions: []metav1.Condition{condition("False", reason, message)},
		Join: []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(clitest.Noon.Add(-10 * time.Minute))}},
	}
	return m
}

func newRefused() *v1alpha1.Machine {
	message := "the cluster does not let the machine in: refused by rule no-entry (M-IAM-01): arn:aws:iam::000000000000:role/r is in no access entry; make one"
	m := newMachine(refusedMachine, "Refused", message)
	identity := condition("False", "Refused", message)
	identity.Type = v1alpha1.ConditionIdentity
	m.Status.Conditions = append(m.Status.Conditions, identity)
	return m
}

func newStrange() *v1alpha1.Machine {
	return newMachine(strangeMachine, "BootFailed", "no \x1b[31msuch\nthing")
}

func statusOf(context.Context, statedir.Dir) (any, error) {
	return map[string]string{"note": "password=only-in-the-status"}, nil
}

// run runs "muster explain" and returns its exit code.
func run(t *testing.T, b *clitest.Bench, args ...string) int {
	t.Helper()
	cmd := &explainCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }, catalogue: cause.Default, status: statusOf}
	return runOf(t, b, cmd, args...)
}

func runOf(t *testing.T, b *clitest.Bench, cmd *explainCommand, args ...string) int {
	t.Helper()
	c := cmd.command()
	terminal.CheckUsage(c)
	err := b.Run(t.Context(), c, append([]string{}, args...)...) // cobra takes those of the test for nil
	if status, ok := errors.AsType[terminal.ExitStatus](err); ok {
		return int(status)
	}
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		b.Err.WriteString(err.Error())
		return 2
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestGolden(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"ready":    {[]string{"machine", clitest.FirstMachine}, 0},
		"joining":  {[]string{"machine", clitest.SecondMachine}, 0},
		"refused":  {[]string{"machine", refusedMachine}, 1},
		"strange":  {[]string{"ma", strangeMachine}, 3},
		"node":     {[]string{"node", clitest.FirstNode}, 0},
		"group":    {[]string{"nodegroup", "default"}, 1},
		"cluster":  {[]string{"clusters", "home"}, 0},
		"request":  {[]string{"csr", "csr-p9kzt"}, 0},
		"approved": {[]string{"csr", "csr-8x2vq"}, 0},
		"all":      {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := world(t, newRefused(), newStrange())
			if got := run(t, b, test.args...); got != test.code || b.Err.Len() > 0 {
				t.Errorf("exit code %d, want %d: %s", got, test.code, b.Err.String())
			}
			clitest.Golden(t, name+".golden", b.Out.String())
		})
	}
	b := world(t)
	if got := run(t, b); got != 0 || !strings.Contains(b.Out.String(), "Nothing is wrong") {
		t.Errorf("where nothing is wrong: %d, %s", got, b.Out.String())
	}
}

func TestOutputForPrograms(t *testing.T) {
	b := world(t, newRefused())
	if got := run(t, b, "machine", refusedMachine, "-o", "json"); got != 1 {
		t.Errorf("exit code %d", got)
	}
	var report diagnosis.Report
	if err := json.Unmarshal(b.Out.Bytes(), &report); err != nil || report.Verdict != diagnosis.Found || len(report.Causes) != 1 || report.Causes[0].Cause != "M-IAM-01" {
		t.Errorf("%v: %+v", err, report)
	}
	if got := run(t, b, "-o", "yaml"); got != 1 || !strings.Contains(b.Out.String(), "cause: M-IAM-01") {
		t.Errorf("%d: %s", got, b.Out.String())
	}
	b = world(t)
	if got := run(t, b, "-o", "json"); got != 0 || !strings.Contains(b.Out.String(), `"reports": []`) {
		t.Errorf("%d: %s", got, b.Out.String())
	}
}

func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"machin i-1":        `did you mean "machine"`,
		"machine":           "the name of the machine is missing",
		"machine a b":       "one argument too many",
		"machine i-1":       `machine "i-1" not found`,
		"nodegroup nobody":  `nodegroup "nobody" not found`,
		"csr csr-00000":     "there is no certificate signing request",
		"-o wide":           "wide",
		"update nobody":     "not found",
		"cluster elsewhere": "not found",
	} {
		b := world(t)
		if got := run(t, b, strings.Fields(args)...); got != 2 || !strings.Contains(b.Err.String(), want) || b.Out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, want %q", args, got, b.Err.String(), want)
		}
	}
	b := world(t)
	b.O.Cluster = "blue"
	if got := run(t, b, "machine", clitest.FirstMachine); got != 2 || !strings.Contains(b.Err.String(), `no cluster "blue"`) {
		t.Errorf("another cluster: %d, %q", got, b.Err.String())
	}
}

// Without the management plane nothing can be explained; without a cluster's API server the rest is.
func TestCouldNotAsk(t *testing.T) {
	b := world(t, newRefused())
	answers := b.Planes.Management
	b.Planes.Management = func(*terminal.Options) (*kinds.Client, error) { return nil, errors.New("it is down") }
	if got := run(t, b); got != 4 || !strings.Contains(b.Err.String(), "it is down") {
		t.Errorf("exit code %d, %s", got, b.Err.String())
	}
	b.Planes.Management = answers
	b.Planes.Cluster = func(*terminal.Options) (*kinds.Client, error) { return nil, errors.New("it is away") }
	if got := run(t, b, "machine", refusedMachine); got != 1 || !strings.Contains(b.Out.String(), "it is away") || !strings.Contains(b.Out.String(), "M-IAM-01") {
		t.Errorf("exit code %d, %s", got, b.Out.String())
	}
	b = clitest.NewBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("not now")
	}})
	setUp(t, b)
	if got := run(t, b); got != 4 || !strings.Contains(b.Err.String(), "not now") {
		t.Errorf("exit code %d, %s", got, b.Err.String())
	}
}

// withAnother is a world of two clusters; the API server of the second is away, if it is to be.
func withAnother(t *testing.T, away bool) *clitest.Bench {
	t.Helper()
	other := &v1alpha1.Cluster{ObjectMeta: clitest.MadeBefore("other", time.Hour)}
	other.Namespace, other.Spec.Name = "other", "other"
	other.Status.Conditions = []metav1.Condition{condition("True", "Up", "")}
	b := world(t, newRefused(), other)
	path := filepath.Join(b.O.StateDir, "clusters", "other", "cluster.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("kind: Cluster\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	answers := b.Planes.Cluster
	b.Planes.Cluster = func(o *terminal.Options) (*kinds.Client, error) {
		if away && o.Cluster == "other" {
			return nil, errors.New("it is away")
		}
		return answers(o)
	}
	return b
}

// A name is not said to be absent where a cluster that may have it could not be asked.
func TestNameInClusterThatIsAway(t *testing.T) {
	for args, want := range map[string]int{"csr csr-00000": 4, "node nobody": 4, "csr csr-8x2vq": 0, "machine i-1": 2} {
		b := withAnother(t, true)
		if got := run(t, b, strings.Fields(args)...); got != want || want == 4 && !strings.Contains(b.Err.String(), "it is away") {
			t.Errorf("%s: exit code %d, want %d: %s", args, got, want, b.Err.String())
		}
	}
}

// A name that two clusters have is not that of either.
func TestNameInTwoClusters(t *testing.T) {
	b := withAnother(t, false)
	if got := run(t, b, "csr", "csr-8x2vq"); got != 2 || !strings.Contains(b.Err.String(), "choose one with --cluster") {
		t.Errorf("exit code %d, %q", got, b.Err.String())
	}
	b.O.Cluster = "home"
	if got := run(t, b, "csr", "csr-8x2vq"); got != 0 {
		t.Errorf("exit code %d, %q", got, b.Err.String())
	}
}

// A cluster that could not be looked at is told, though there is a report about another one.
func TestClusterThatIsAwayIsTold(t *testing.T) {
	b := withAnother(t, true)
	if got := run(t, b); got != 1 || strings.Count(b.Out.String(), "it is away") != 1 {
		t.Errorf("exit code %d:\n%s", got, b.Out.String())
	}
}

// Machines that stand still do not keep those in trouble from having their logs read.
func TestStoppedMachinesHaveNoTurn(t *testing.T) {
	more := []client.Object{newMachine(strangeMachine, "Late", "it is late")}
	for i := range mostWithLogs {
		m := newMachine("i-00000000000000aa"+string(rune('0'+i)), "InstanceStopped", "the instance does not run")
		m.Spec.PowerState = v1alpha1.PowerStopped
		more = append(more, m)
	}
	b := world(t, more...)
	if got := run(t, b); got != 3 || strings.Contains(b.Out.String(), "the logs about") {
		t.Errorf("exit code %d:\n%s", got, b.Out.String())
	}
}

// A trouble of a node group itself is told, whatever is wrong with machines of others.
func TestGroupBesideMachinesOfOthers(t *testing.T) {
	group := func(name, reason string) *v1alpha1.NodeGroup {
		g := &v1alpha1.NodeGroup{ObjectMeta: clitest.MadeBefore(name, time.Hour)}
		g.Namespace, g.Spec.Name = "home", name
		g.Status.Conditions = []metav1.Condition{condition("False", reason, "because")}
		g.Generation = g.Status.Conditions[0].ObservedGeneration
		return g
	}
	b := world(t, newRefused(), group("strange", "SomethingNew"), group("roleless", "IamNodeRoleNotFound"))
	if got := run(t, b); got != 1 {
		t.Errorf("exit code %d", got)
	}
	for _, want := range []string{"nodegroup strange: something is wrong", "nodegroup roleless: the cause is known"} {
		if !strings.Contains(b.Out.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.Out.String())
		}
	}
	if strings.Contains(b.Out.String(), "nodegroup default") {
		t.Errorf("what its machine says is told twice:\n%s", b.Out.String())
	}
}

// 500 machines that are in trouble with one and the same are explained at once.
func TestManyMachines(t *testing.T) {
	var more []client.Object
	for i := range 500 {
		m := newRefused()
		m.Name = "i-0" + strings.Repeat("0", 12) + string([]byte{'a' + byte(i/100), '0' + byte(i/10%10), '0' + byte(i%10), 'f'})
		m.UID = ""
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
		more = append(more, m, node)
	}
	b := world(t, more...)
	if got := run(t, b); got != 1 || strings.Count(b.Out.String(), "M-IAM-01") < 500 {
		t.Errorf("exit code %d, %d causes", got, strings.Count(b.Out.String(), "M-IAM-01"))
	}
}

func TestComplete(t *testing.T) {
	b := world(t, newRefused())
	cmd := &explainCommand{Options: b.O, planes: b.Planes, now: time.Now, catalogue: cause.Default}
	c := cmd.command()
	c.SetContext(t.Context())
	for words, want := range map[string]string{"": "nodegroup", "machine": refusedMachine, "csr": "csr-8x2vq", "update": "", "nobody": "", "machine x": ""} {
		got, _ := cmd.complete(c, strings.Fields(words), "")
		if all := strings.Join(got, " "); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("after %q: %q", words, all)
		}
	}
}
