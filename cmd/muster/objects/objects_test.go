// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/machine/capacity"
)

func getOf(b *clitest.Bench) *cobra.Command {
	return (&getCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }}).command()
}

// unknownHost is a host of which nothing is known, so that nothing can be said of its nodes.
func unknownHost() capacity.Host { return capacity.Host{} }

func createOf(b *clitest.Bench) *cobra.Command {
	return (&createCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, host: unknownHost}).command()
}

func scaleOf(b *clitest.Bench) *cobra.Command {
	return (&scaleCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, host: unknownHost}).command()
}

func deleteOf(b *clitest.Bench, k kinds.Kind) *cobra.Command {
	d := &deleteCommand{Options: b.O, planes: b.Planes, kind: k, interval: time.Millisecond}
	if k.Singular == kinds.Machines().Singular {
		return d.machines()
	}
	return d.nodeGroups()
}

func TestGet(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"clusters.txt":          {"clusters"},
		"clusters-wide.txt":     {"cluster", "-o", "wide"},
		"nodegroups.txt":        {"ng"},
		"nodegroups-wide.txt":   {"nodegroups", "-o", "wide"},
		"machines.txt":          {"machines"},
		"machines-wide.txt":     {"ma", "-o", "wide"},
		"machines-selected.txt": {"machine", "-l", "muster.dev/nodegroup=default", "--no-headers"},
		"machine-by-node.json":  {"machine", clitest.FirstNode, "-o", "json"},
		"machine-by-ip.txt":     {"machine", "172.31.0.5"},
		"machines-named.yaml":   {"machines", clitest.SecondMachine, clitest.FirstMachine, "-o", "yaml"},
		"machines-names.txt":    {"machine/" + clitest.SecondMachine, "machine/" + clitest.FirstMachine, "-o", "name"},
		"nodes.txt":             {"nodes"},
		"nodes-wide.txt":        {"no", "-o", "wide"},
		"node-by-machine.yaml":  {"node", clitest.FirstMachine, "-o", "yaml"},
		"csr.txt":               {"csr"},
		"csr-names.txt":         {"certificatesigningrequests", "-o", "name"},
		"nodegroups.json":       {"nodegroups", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
			if err := b.Run(t.Context(), getOf(b), args...); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, "get-"+name, b.Out.String())
			if b.Err.Len() > 0 {
				t.Fatalf("standard error: %s", &b.Err)
			}
		})
	}
}

func TestNoManagedFields(t *testing.T) {
	t.Parallel()
	scheme, err := kinds.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	group := &v1alpha1.NodeGroup{ObjectMeta: clitest.MadeBefore("x", 0)}
	group.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "muster"}}
	content, err := kinds.ToMap(group, scheme)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := content["metadata"].(map[string]any)["managedFields"]; there || content["kind"] != "NodeGroup" {
		t.Fatalf("printed %v", content)
	}
}

func TestGetNothing(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	if err := b.Run(t.Context(), getOf(b), "machines"); err != nil {
		t.Fatal(err)
	}
	if b.Out.Len() > 0 || b.Err.String() != "No resources found.\n" {
		t.Fatalf("printed %q and %q", &b.Out, &b.Err)
	}
	if err := b.Run(t.Context(), getOf(b), "machines", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
	if b.Out.String() != want || b.Err.Len() > 0 {
		t.Fatalf("printed %q and %q", &b.Out, &b.Err)
	}
}

func TestGetErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"machine", "nobody"}, `machine "nobody" not found; muster get machines lists them`, false},
		{[]string{"machine", "i-0123456789abcdef1"}, `machine "i-0123456789abcdef1" not found; did you mean "i-0123456789abcdef0"?`, false},
		{[]string{"machine", "ip-172"}, `did you mean "` + clitest.FirstNode + `"?`, false},
		{[]string{"ng", "defualt"}, `nodegroup "defualt" not found; did you mean "default"?`, false},
		{[]string{"machines", "-o", "xml"}, `unknown output format "xml"; there are: table, wide, json, yaml, name`, true},
		{[]string{"machines", "-l", "a b"}, "reading --selector", true},
		{[]string{"machines", clitest.FirstMachine, "-l", "a=b"}, "not both", true},
		{[]string{"machine/" + clitest.FirstMachine, "node/x"}, "not of the form KIND/NAME", false}, // root makes these errors of usage
		{[]string{"foo"}, `unknown kind "foo"; there are:`, false},                                  // not "no"
		{[]string{"machnies"}, `unknown kind "machnies"; did you mean "machines"?; there are: clusters, nodegroups, fargateprofiles, addons, podidentityassociations, updates, machines, autoscalinggroups, filesystems, stacks, nodes, csr`, false},
		{nil, "name a kind: clusters, nodegroups, fargateprofiles, addons, podidentityassociations, updates, machines, autoscalinggroups, filesystems, stacks, nodes, csr", false},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
		if test.args == nil {
			test.args = []string{}
		}
		clitest.WantErr(t, b.Run(t.Context(), getOf(b), test.args...), test.want, test.usage)
		if b.Out.Len() > 0 {
			t.Fatalf("%v printed %s", test.args, &b.Out)
		}
	}
}

// Existing objects are printed although another one is missing, as kubectl does.
func TestGetSomeMissing(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "machine", clitest.FirstMachine, "nobody", "-o", "name"), `"nobody" not found`, false)
	if b.Out.String() != "machine.muster.dev/"+clitest.FirstMachine+"\n" {
		t.Fatalf("printed %s", &b.Out)
	}
}

func TestGetFromWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: syscall.ECONNREFUSED}
	b := clitest.NewBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused }})
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "machines"), "the management plane is not running (nothing answers at 127.0.0.1:1): `muster up` starts it", false)
	slow := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: context.DeadlineExceeded}
	b = clitest.NewBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return slow }})
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "machines"), "the management plane does not answer (at 127.0.0.1:1): `muster status` shows how it is", false)
	b.Planes = kinds.NewDialers()
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "machines"), "muster up", false)
}

func TestGetWatch(t *testing.T) {
	t.Parallel()
	watched := make(chan struct{}, 10)
	b := clitest.NewBench(t, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (w watch.Interface, err error) {
			w, err = c.Watch(ctx, list, opts...)
			watched <- struct{}{}
			return w, err
		},
	}, clitest.World()...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lines := make(lineWriter, 10)
	b.O.Out = lines
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, getOf(b), "nodegroups", "-w", "-o", "name") }()
	next := func() string {
		select {
		case text := <-lines:
			return text
		case <-ctx.Done():
			t.Fatal("nothing was printed")
		}
		return ""
	}
	if got := next(); got != "nodegroup.muster.dev/default\n" {
		t.Fatalf("printed %q", got)
	}
	<-watched
	another := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "another", UID: "1"}}
	if err := b.Client.Create(ctx, another); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "nodegroup.muster.dev/another\n" {
		t.Fatalf("printed %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("an interrupted watch is no error, but: %v", err)
	}
}

// lineWriter hands over what is written to it.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
