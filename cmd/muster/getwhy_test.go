// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/bootreport"
	"muster.dev/muster/internal/cluster"
)

// saysBadUserData is the condition of a machine that reports user data that failed.
const saysBadUserData = "user data failed; this machine does not become a node: the script user data, part 1 failed: exit status 4; its last lines: no disk; more: muster logs "

// troubled is the world in which the group and one machine say what is wrong.
func troubled(t *testing.T) []client.Object {
	t.Helper()
	objects := world()
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeGroup:
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "IamNodeRoleNotFound", Message: "there is no role team"}}
		case *v1alpha1.Machine:
			if o.Name == secondMachine {
				o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: bootreport.UserDataFailed, Message: saysBadUserData + secondMachine}}
				continue
			}
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Message: "the node is Ready"}}
		}
	}
	return objects
}

// Where something is not as it was asked for a column says why; kubectl's names stay where they are.
func TestGetSaysWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, troubled(t)...)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"nodegroups", []string{"READY   AGE   MESSAGE\n", "60m   there is no role team\n"}},
		{"nodegroups -o wide", []string{"NODE-ROLE     MESSAGE\n", "muster-node   there is no role team\n"}},
		{"nodegroups -o json", []string{`"message": "there is no role team"`}},
		{"machines", []string{"AGE   MESSAGE\n", "59m   <none>\n", "3s    " + saysBadUserData + secondMachine + "\n"}},
		{"machine " + secondMachine + " --no-headers", []string{"3s   user data failed; "}},
	} {
		if err := b.run(t.Context(), b.get(), strings.Fields(test.args)...); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(b.out.String(), want) {
				t.Errorf("muster get %s: no %q in\n%s", test.args, want, &b.out)
			}
		}
	}
	if err := b.run(t.Context(), b.get(), "machine", firstMachine); err != nil || strings.Contains(b.out.String(), headingMessage) {
		t.Errorf("a machine that is well: %v\n%s", err, &b.out)
	}
}

// muster up says what keeps a machine from becoming a node, while it waits.
func TestUpSaysWhatAMachineReports(t *testing.T) {
	t.Parallel()
	status := cluster.Status{
		NodeGroups: []cluster.NodeGroupStatus{{Name: "workers", Desired: 1, Machines: 1}},
		Machines:   []cluster.MachineStatus{{Name: secondMachine, NodeGroup: "workers", Phase: v1alpha1.MachineJoining, Reason: bootreport.UserDataFailed, Message: saysBadUserData + secondMachine}},
	}
	text := func() string { return progressRows(status)[1].text }
	if got := text(); !strings.Contains(got, secondMachine+": "+saysBadUserData) {
		t.Errorf("it says %q", got)
	}
	status.Machines[0].Reason, status.Machines[0].Message = "Joining", "the machine is on its way in"
	if got := text(); strings.Contains(got, "on its way in") {
		t.Errorf("of a machine that joins it says %q", got)
	}
}

// A watch has the column from its beginning: what comes later may have something to say.
func TestWatchHasTheColumnWhy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		cancel()
		return nil, ctx.Err()
	}}, world()...)
	if err := b.run(ctx, b.get(), "nodegroups", "--watch"); err != nil || !strings.Contains(b.out.String(), "AGE   MESSAGE\n") || !strings.HasSuffix(b.out.String(), "60m   <none>\n") {
		t.Errorf("%v, printed\n%s", err, &b.out)
	}
	var out strings.Builder
	p := &printer{out: &out, kind: nodeGroups(), format: formatTable, follows: true, now: func() time.Time { return noon }}
	well, ill := &v1alpha1.NodeGroup{}, &v1alpha1.NodeGroup{}
	well.Name, ill.Name = "well", "ill"
	ill.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionIdentity, Status: metav1.ConditionFalse, Message: "not let in"}}
	for _, group := range []*v1alpha1.NodeGroup{well, ill} {
		if err := p.object(group); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); !strings.HasSuffix(lines[0], headingMessage) || !strings.HasSuffix(lines[1], "<none>") || !strings.HasSuffix(lines[2], "not let in") {
		t.Errorf("printed\n%s", &out)
	}
}
