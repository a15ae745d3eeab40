// SPDX-License-Identifier: Apache-2.0

package objects

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
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/bootreport"
)

// troubled is the world in which the group and one machine say what is wrong.
func troubled(t *testing.T) []client.Object {
	t.Helper()
	objects := clitest.World()
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeGroup:
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "IamNodeRoleNotFound", Message: "there is no role team"}}
		case *v1alpha1.Machine:
			if o.Name == clitest.SecondMachine {
				o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: bootreport.UserDataFailed, Message: clitest.SaysBadUserData + clitest.SecondMachine}}
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
	b := clitest.NewBench(t, interceptor.Funcs{}, troubled(t)...)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"nodegroups", []string{"READY   AGE   MESSAGE\n", "60m   there is no role team\n"}},
		{"nodegroups -o wide", []string{"NODE-ROLE          REPAIR   MESSAGE\n", "muster-node-home   off      there is no role team\n"}},
		{"nodegroups -o json", []string{`"message": "there is no role team"`}},
		{"machines", []string{"AGE   MESSAGE\n", "59m   <none>\n", "3s    " + clitest.SaysBadUserData + clitest.SecondMachine + "\n"}},
		{"machine " + clitest.SecondMachine + " --no-headers", []string{"3s   user data failed; "}},
	} {
		if err := b.Run(t.Context(), getOf(b), strings.Fields(test.args)...); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(b.Out.String(), want) {
				t.Errorf("muster get %s: no %q in\n%s", test.args, want, &b.Out)
			}
		}
	}
	if err := b.Run(t.Context(), getOf(b), "machine", clitest.FirstMachine); err != nil || strings.Contains(b.Out.String(), kinds.HeadingMessage) {
		t.Errorf("a machine that is well: %v\n%s", err, &b.Out)
	}
}

// A watch has the column from its beginning: what comes later may have something to say.
func TestWatchHasTheColumnWhy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := clitest.NewBench(t, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		cancel()
		return nil, ctx.Err()
	}}, clitest.World()...)
	if err := b.Run(ctx, getOf(b), "nodegroups", "--watch"); err != nil || !strings.Contains(b.Out.String(), "AGE   MESSAGE\n") || !strings.HasSuffix(b.Out.String(), "60m   <none>\n") {
		t.Errorf("%v, printed\n%s", err, &b.Out)
	}
	var out strings.Builder
	p := &kinds.Printer{Out: &out, Kind: kinds.NodeGroups(), Format: terminal.FormatTable, Follows: true, Now: func() time.Time { return clitest.Noon }}
	well, ill := &v1alpha1.NodeGroup{}, &v1alpha1.NodeGroup{}
	well.Name, ill.Name = "well", "ill"
	ill.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionIdentity, Status: metav1.ConditionFalse, Message: "not let in"}}
	for _, group := range []*v1alpha1.NodeGroup{well, ill} {
		if err := p.Object(group); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); !strings.HasSuffix(lines[0], kinds.HeadingMessage) || !strings.HasSuffix(lines[1], "<none>") || !strings.HasSuffix(lines[2], "not let in") {
		t.Errorf("printed\n%s", &out)
	}
}
