// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster"
	"muster.dev/muster/internal/state"
)

const (
	badUserData = `time=2026-11-20T12:00:01.000Z level=ERROR msg="user data cannot be used; waiting for other" error="user data, part 1: spec.instance.nonsense: unknown field\nspec.x: \"y\" is none"` + "\n"
	booting     = `time=2026-11-20T12:00:00.000Z level=INFO msg="machine boots" id=i-0123456789abcdef0` + "\n"
)

func TestLoggedError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ line, want string }{
		"nothing":         {"", ""},
		"information":     {booting, ""},
		"an error":        {badUserData, `user data cannot be used; waiting for other: user data, part 1: spec.instance.nonsense: unknown field; spec.x: "y" is none`},
		"one word":        {"time=x level=ERROR msg=broken error=EOF", "broken: EOF"},
		"no error":        {`time=x level=ERROR msg="no more"`, "no more"},
		"other fields":    {`time=x level=ERROR msg="script failed" script="a level=INFO error=b" error="exit status 1" log=/x`, "script failed: exit status 1"},
		"a warning of it": {`time=x level=WARN msg="level=ERROR msg=no"`, ""},
		"endless":         {`level=ERROR msg=` + strings.Repeat("x", 1000), strings.Repeat("x", longestWord-1) + "…"},
	} {
		if got := loggedError(test.line); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// logOf gives a machine an agent's log.
func logOf(t *testing.T, dir state.Dir, id string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(dir.MachineLogs(id), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.MachineLogs(id), "node.log"), []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

const saysBadUserData = `its agent says: user data cannot be used; waiting for other: user data, part 1: spec.instance.nonsense: unknown field; spec.x: "y" is none; more: muster logs `

// Why a machine with unusable user data does not join is told where one looks first, and of others nothing is.
func TestStatusTellsWhatAgentsSay(t *testing.T) {
	t.Parallel()
	dir := state.Dir(t.TempDir())
	logOf(t, dir, firstMachine, booting, badUserData)
	logOf(t, dir, secondMachine, badUserData, booting) // that is over
	found := []cluster.MachineStatus{
		{Name: firstMachine, Phase: v1alpha1.MachineJoining, Message: "it is on its way in"},
		{Name: secondMachine, Phase: v1alpha1.MachineJoining, Message: "it is on its way in"},
		{Name: firstMachine, Phase: v1alpha1.MachineReady},
		{Name: "i-without-logs", Phase: v1alpha1.MachinePending, Message: "it is not launched"},
	}
	sayMore(t.Context(), dir, found)
	for i, want := range []string{"it is on its way in; " + saysBadUserData + firstMachine + " --component node", "it is on its way in", "", "it is not launched"} {
		if got := found[i].Message; got != want {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// A machine's root may make its log as large as he likes. What nobody asked for is not looked for in there.
func TestAgentWithALogWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := state.Dir(t.TempDir())
	logOf(t, dir, firstMachine, booting, badUserData)
	if agentSays(t.Context(), dir, firstMachine) == "" {
		t.Error("it says nothing")
	}
	if err := os.WriteFile(filepath.Join(dir.MachineLogs(firstMachine), "node.log.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir.MachineLogs(firstMachine), "node.log.1"), largestLog); err != nil {
		t.Fatal(err)
	}
	if says := agentSays(t.Context(), dir, firstMachine); says != "" {
		t.Errorf("it says %q", says)
	}
}

// What muster status prints is all of it, for people and for programs.
func TestStatusOfAMachineThatCannotBecomeANode(t *testing.T) {
	t.Parallel()
	dir := state.Dir(t.TempDir())
	for _, path := range []string{filepath.Dir(dir.Socket()), string(dir)} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir.Config(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	logOf(t, dir, firstMachine, booting, badUserData)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(cluster.Status{Machines: []cluster.MachineStatus{{Name: firstMachine, Phase: v1alpha1.MachineJoining, Message: "it is on its way in"}}})
	}))
	_ = service.Listener.Close()
	service.Listener = listener
	service.Start()
	defer service.Close()
	want := "it is on its way in; " + saysBadUserData + firstMachine + " --component node"
	for _, format := range []string{formatTable, formatJSON} {
		var out, talk bytes.Buffer
		code := run([]string{"status", "--state-dir", string(dir), "-o", format}, streams{out: &out, err: &talk})
		if text := strings.ReplaceAll(out.String(), `\"`, `"`); code != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d, printed\n%s%s", format, code, &out, &talk)
		}
	}
}

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
				o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Joining", Message: "the machine is on its way in"}}
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
	logOf(t, state.Dir(b.o.stateDir), secondMachine, badUserData)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"nodegroups", []string{"READY   AGE   MESSAGE\n", "60m   there is no role team\n"}},
		{"nodegroups -o wide", []string{"NODE-ROLE     MESSAGE\n", "muster-node   there is no role team\n"}},
		{"nodegroups -o json", []string{`"message": "there is no role team"`}},
		{"machines", []string{"AGE   MESSAGE\n", "59m   <none>\n", "3s    the machine is on its way in; " + saysBadUserData + secondMachine + " --component node\n"}},
		{"machine " + secondMachine + " --no-headers", []string{"3s   the machine is on its way in; its agent says: "}},
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
