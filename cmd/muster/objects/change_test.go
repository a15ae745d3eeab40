// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

// grow stands in for the controller: whenever somebody looks, every group has one more Ready machine, or one less.
func grow(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	groups, ok := list.(*v1alpha1.NodeGroupList)
	if err := c.List(ctx, list, opts...); err != nil || !ok {
		return err
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		switch want := g.Spec.ScalingConfig.DesiredSize; {
		case g.Status.ReadyReplicas < want:
			g.Status.ReadyReplicas++
		case g.Status.ReadyReplicas > want:
			g.Status.ReadyReplicas--
		}
		g.Status.Replicas, g.Status.ObservedGeneration = g.Status.ReadyReplicas, g.Generation
		if err := c.Status().Update(ctx, g.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

func groupOf(t *testing.T, b *clitest.Bench, name string) *v1alpha1.NodeGroup {
	t.Helper()
	var g v1alpha1.NodeGroup
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: name}, &g); err != nil {
		t.Fatal(err)
	}
	return &g
}

func TestCreateNodeGroup(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{List: grow}, clitest.World()...)
	args := []string{"web", "--nodes", "3", "--max", "9", "--labels", "a=b,c=", "--taints", "a=b:NoSchedule", "--taints", "x:NoExecute"}
	if err := b.Run(t.Context(), createOf(b), append(args, "--wait")...); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "nodegroup.muster.dev/web created\n" {
		t.Fatalf("printed %q", &b.Out)
	}
	want := "nodegroup web: 1 of 3 nodes are Ready\nnodegroup web: 2 of 3 nodes are Ready\nnodegroup web: 3 of 3 nodes are Ready\n"
	if b.Err.String() != want {
		t.Fatalf("progress %q, want %q", &b.Err, want)
	}
	g := groupOf(t, b, "web")
	if got := nodegroupspec.Labels(g.Spec.Labels) + " " + nodegroupspec.Taints(g.Spec.Taints); got != "a=b,c= a=b:NoSchedule,x:NoExecute" {
		t.Fatalf("made with %s", got)
	}
	if g.Spec.Name != "web" || g.Spec.Provider != v1alpha1.ProviderLocal || g.Spec.ScalingConfig != (v1alpha1.ScalingConfig{MaxSize: 9, DesiredSize: 3}) {
		t.Fatalf("made with %+v", g.Spec)
	}
	// Again: nothing happens. Otherwise: nothing happens either, and that is an error.
	if err := b.Run(t.Context(), createOf(b), args...); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "nodegroup.muster.dev/web unchanged\n" {
		t.Fatalf("printed %q", &b.Out)
	}
	clitest.WantErr(t, b.Run(t.Context(), createOf(b), "web", "--nodes", "4", "--max", "9", "--labels", "a=b,c=", "--taints", "a=b:NoSchedule"),
		`nodegroup "web" exists with desiredSize 3, not 4; taints a=b:NoSchedule,x:NoExecute, not a=b:NoSchedule: muster scale nodegroup web changes its size, kubectl apply anything else`, false)
}

// Of one node nobody speaks as of many.
func TestWaitForOneNode(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{List: grow}, clitest.World()...)
	if err := b.Run(t.Context(), createOf(b), "one", "--wait"); err != nil || b.Err.String() != "nodegroup one: 1 of 1 node is Ready\n" {
		t.Errorf("%v, said %q", err, &b.Err)
	}
}

func TestCreateDryRun(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	if err := b.Run(t.Context(), createOf(b), "web", "--min", "2", "--provider", "simulated", "--labels", "a=b", "--dry-run=client", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "create-dry-run.yaml", b.Out.String())
	if err := b.Run(t.Context(), createOf(b), "web", "--dry-run=server"); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "nodegroup.muster.dev/web created (server dry run)\n" {
		t.Fatalf("printed %q", &b.Out)
	}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "web"}, &v1alpha1.NodeGroup{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a dry run made a group (%v)", err)
	}
	// Without a cluster that runs, its name is enough.
	b.Planes = kinds.NewDialers()
	clitest.WantErr(t, b.Run(t.Context(), createOf(b), "web", "--dry-run=client"), "name it with --cluster", false)
	if err := b.Run(t.Context(), createOf(b), "web", "--dry-run", "--cluster", "c"); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "nodegroup.muster.dev/web created (dry run)\n" {
		t.Fatalf("printed %q", &b.Out)
	}
}

func TestCreateErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"x", "--labels", "a"}, `invalid label "a": must be key=value`, true},
		{[]string{"x", "--labels", "a=b,a=c"}, `label a is given twice, as "b" and "c"`, true},
		{[]string{"x", "--taints", "a=b"}, `invalid taint "a=b": must be key=value:Effect`, true},
		{[]string{"x", "--taints", "a=b:Never"}, `has the effect "Never"; there are: NoSchedule, PreferNoSchedule, NoExecute`, true},
		{[]string{"x", "--dry-run=maybe"}, `unknown --dry-run "maybe"`, true},
		{[]string{"x", "-o", "table"}, `unknown output format "table"; there are: name, json, yaml`, true},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
		clitest.WantErr(t, b.Run(t.Context(), createOf(b), test.args...), test.want, test.usage)
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	ordinary := &createCommand{Options: b.O, planes: b.Planes, euid: 1000}
	clitest.WantErr(t, b.Run(t.Context(), ordinary.command(), "x"), "local machines need root: start muster as root, or take --provider simulated", false)
	b = clitest.NewBench(t, interceptor.Funcs{})
	clitest.WantErr(t, b.Run(t.Context(), createOf(b), "x"), "there is no cluster yet: muster create cluster makes one", false)
}

// A refusal of the API server is printed as one line for each field, without the words that only programs need.
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("NodeGroup").GroupKind(), "x", field.ErrorList{
		field.Invalid(field.NewPath("spec", "scalingConfig", "desiredSize"), -1, "spec.scalingConfig.desiredSize in body should be greater than or equal to 0"),
		field.Invalid(field.NewPath("spec", "scalingConfig"), "object", "minSize <= desiredSize <= maxSize must hold"),
		field.Invalid(field.NewPath("spec", "scalingConfig"), "object", "minSize <= desiredSize <= maxSize must hold"),
		field.Invalid(nil, "null", "some validation rules were not checked because the object was invalid"),
	})
	b := clitest.NewBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
	}, clitest.World()...)
	err := b.Run(t.Context(), createOf(b), "x", "--nodes", "-1")
	clitest.WantErr(t, err, "nodegroup \"x\" is not valid:\n"+
		"  spec.scalingConfig.desiredSize: Invalid value: -1: should be greater than or equal to 0\n"+
		"  spec.scalingConfig: minSize <= desiredSize <= maxSize must hold", false)
	if strings.Count(err.Error(), "\n") != 2 {
		t.Fatalf("too many lines: %v", err)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{List: grow}, clitest.World()...)
	for _, test := range []struct {
		args       []string
		out        string
		size, most int32
	}{
		{[]string{"default", "4", "--wait"}, "scaled", 4, 5},
		{[]string{"default", "--nodes", "4"}, "unchanged", 4, 5},
		{[]string{"default", "--replicas=0", "--wait"}, "scaled", 0, 5},
		{[]string{"default", "7", "--max", "8"}, "scaled", 7, 8},
	} {
		if err := b.Run(t.Context(), scaleOf(b), test.args...); err != nil {
			t.Fatal(err)
		}
		if want := "nodegroup.muster.dev/default " + test.out + "\n"; b.Out.String() != want {
			t.Fatalf("%v printed %q, want %q", test.args, &b.Out, want)
		}
		if s := groupOf(t, b, "default").Spec.ScalingConfig; s.DesiredSize != test.size || s.MaxSize != test.most {
			t.Fatalf("%v made %+v", test.args, s)
		}
	}
}

func TestScaleErrors(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	for _, test := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"default", "6"}, `nodegroup "default" has at most 5 machines (spec.scalingConfig.maxSize): take --nodes 5, or --max 6 as well`, false},
		{[]string{"default", "0", "--min", "1"}, `nodegroup "default" has at least 1 machine (spec.scalingConfig.minSize): take --nodes 1, or --min 0 as well`, false},
		{[]string{"defualt", "1"}, `nodegroup "defualt" not found; did you mean "default"?`, false},
		{[]string{"default"}, "give the number of machines: muster scale nodegroup default N", true},
		{[]string{"default", "two"}, `invalid number of machines "two"`, true},
		{[]string{"default", "--nodes=-1"}, `invalid number of machines "-1"`, true},
		{[]string{"default", "1", "--nodes", "1"}, "once", true},
	} {
		clitest.WantErr(t, b.Run(t.Context(), scaleOf(b), test.args...), test.want, test.usage)
	}
	// Nothing grows here.
	clitest.WantErr(t, b.Run(t.Context(), scaleOf(b), "default", "3", "--wait", "--timeout", "20ms"),
		"nodegroup default: 1 of 3 nodes are Ready: gave up after 20ms\n  "+clitest.SecondMachine+" is Joining; last step: Launched; more: muster logs "+clitest.SecondMachine, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clitest.WantErr(t, b.Run(ctx, scaleOf(b), "default", "3", "--wait"), "interrupted", false)
}

// The reason that keeps a group from getting on is printed while somebody waits for the group.
func TestWaitSaysWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	objects := clitest.World()
	group := objects[1].(*v1alpha1.NodeGroup)
	group.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "IamNodeRoleNotFound", Message: "there is no IAM role x", ObservedGeneration: 1,
	}}
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	clitest.WantErr(t, b.Run(t.Context(), scaleOf(b), "default", "2", "--wait", "--timeout", "20ms"), "1 of 2 nodes are Ready: there is no IAM role x: gave up", false)
}

func TestDeleteMachine(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	err := b.Run(t.Context(), deleteOf(b, kinds.Machines()), clitest.FirstNode, "172.31.0.5", "machine.muster.dev/"+clitest.FirstMachine, "nobody")
	clitest.WantErr(t, err, `machine "nobody" not found`, false)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("another is missing, too: %v", err)
	}
	if want := `machine.muster.dev "` + clitest.FirstMachine + `" deleted` + "\n"; b.Out.String() != want {
		t.Fatalf("printed %q, want %q", &b.Out, want)
	}
	if want := "nodegroup default replaces what is deleted; to have fewer machines: muster scale nodegroup default 1\n"; b.Err.String() != want {
		t.Fatalf("said %q, want %q", &b.Err, want)
	}
	if err := b.Run(t.Context(), deleteOf(b, kinds.Machines()), "nobody", "--ignore-not-found"); err != nil {
		t.Fatal(err)
	}
}

func TestDeleteWaits(t *testing.T) {
	t.Parallel()
	held := clitest.World()
	for _, object := range held {
		if _, ok := object.(*v1alpha1.Machine); ok {
			object.SetFinalizers([]string{v1alpha1.FinalizerMachine})
		}
	}
	// The controller lets go of a machine each time somebody looks.
	release := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if err := c.List(ctx, list, opts...); err != nil {
			return err
		}
		all, ok := list.(*v1alpha1.MachineList)
		if !ok || len(all.Items) == 0 {
			return nil
		}
		m := all.Items[0].DeepCopy()
		if m.DeletionTimestamp == nil {
			if err := c.Delete(ctx, m); err != nil {
				return err
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
				return err
			}
		}
		m.Finalizers = nil
		return c.Update(ctx, m)
	}
	b := clitest.NewBench(t, interceptor.Funcs{List: release}, held...)
	if err := b.Run(t.Context(), deleteOf(b, kinds.NodeGroups()), "default"); err != nil {
		t.Fatal(err)
	}
	if want := "nodegroup.muster.dev \"default\" deleted\n"; b.Out.String() != want {
		t.Fatalf("printed %q, want %q", &b.Out, want)
	}
	if want := "2 machines not gone yet\n1 machine not gone yet\n"; b.Err.String() != want {
		t.Fatalf("said %q, want %q", &b.Err, want)
	}
}

func TestDeleteGivesUp(t *testing.T) {
	t.Parallel()
	held := clitest.World()
	for _, object := range held {
		object.SetFinalizers([]string{"test.muster.dev/held"})
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, held...)
	clitest.WantErr(t, b.Run(t.Context(), deleteOf(b, kinds.NodeGroups()), "default", "--timeout", "20ms"),
		"1 nodegroup not gone yet: gave up after 20ms; the deletion goes on: muster get nodegroups", false)
	clitest.WantErr(t, b.Run(t.Context(), createOf(b), "default"), `nodegroup "default" is being deleted: try again when it is gone`, false)
	if err := b.Run(t.Context(), deleteOf(b, kinds.NodeGroups()), "default", "--wait=false"); err != nil {
		t.Fatal(err)
	}
}

// An API server that is down for a moment does not end the waiting.
func TestWaitSurvivesSilence(t *testing.T) {
	t.Parallel()
	calls := 0
	b := clitest.NewBench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if calls++; calls > 2 && calls < 6 {
				return apierrors.NewServiceUnavailable("starting")
			}
			return grow(ctx, c, list, opts...)
		},
	}, clitest.World()...)
	if err := b.Run(t.Context(), scaleOf(b), "default", "3", "--wait"); err != nil {
		t.Fatal(err)
	}
}

func TestWaitForAGroupThatGoes(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return c.Delete(ctx, &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}})
		},
	}, clitest.World()...)
	clitest.WantErr(t, b.Run(t.Context(), scaleOf(b), "default", "3", "--wait"), `nodegroup "default" is gone`, false)
}

// The minor of machines is checked against the cluster's before a group is made.
func TestCreateNodeGroupOfAVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct {
		says  string
		usage bool
	}{
		"1.36": {}, "1.34": {},
		"1.37": {"--version: machines of 1.37 would be newer than their cluster, which runs 1.36", false},
		"1.98": {`--version: unsupported Kubernetes version "1.98": there is 1.34, 1.35, 1.36 or 1.37`, true},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
			err := b.Run(t.Context(), createOf(b), "web", "--provider", "simulated", "--version", version)
			group := &v1alpha1.NodeGroup{}
			found := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "web"}, group)
			if want.says != "" {
				clitest.WantErr(t, err, want.says, want.usage)
				if found == nil {
					t.Error("it was made all the same")
				}
				return
			}
			if err != nil || found != nil || group.Spec.Version != version {
				t.Errorf("%v, %v, made with %q", err, found, group.Spec.Version)
			}
		})
	}
}

// A cluster that has not run yet does not say what fits.
func TestCreateNodeGroupOfACluster(t *testing.T) {
	t.Parallel()
	objects := clitest.World()
	objects[0].(*v1alpha1.Cluster).Status.Version = ""
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	if err := b.Run(t.Context(), createOf(b), "web", "--provider", "simulated", "--version", "1.37"); err != nil {
		t.Error(err)
	}
}
