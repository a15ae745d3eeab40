// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
)

// secondCluster is a cluster whose name is not a DNS label, with a node group of the same name as that of the first,
// and a machine.
func secondCluster() []client.Object {
	slug := v1alpha1.ClusterSlug("Home_2")
	cluster := &v1alpha1.Cluster{ObjectMeta: clitest.MadeBefore(slug, 0), Spec: v1alpha1.ClusterSpec{Name: "Home_2"}}
	cluster.Namespace = slug
	group := &v1alpha1.NodeGroup{ObjectMeta: clitest.MadeBefore("default", 0), Spec: v1alpha1.NodeGroupSpec{Name: "default", Provider: v1alpha1.ProviderLocal}}
	group.Namespace, group.UID = slug, "uid-of-another"
	group.Spec.ScalingConfig = v1alpha1.ScalingConfig{DesiredSize: 1, MaxSize: 5}
	machine := &v1alpha1.Machine{ObjectMeta: clitest.MadeBefore("i-22222222222222222", 0)}
	machine.Spec = v1alpha1.MachineSpec{ClusterName: "Home_2", NodeGroup: "default", Provider: v1alpha1.ProviderLocal}
	return []client.Object{cluster, group, machine}
}

// Where there are several clusters, one has to be named before a node group is made, changed or deleted.
func TestSeveralClusters(t *testing.T) {
	t.Parallel()
	const choose = "there are several clusters: choose one with --cluster: Home_2, home"
	for name, test := range map[string]struct {
		command func(*clitest.Bench) *cobra.Command
		args    []string
		in, of  string // namespace and name of the group that is there afterwards
		out     string
	}{
		"create": {createOf, []string{"Web_1", "--nodes", "2"}, v1alpha1.ClusterSlug("Home_2"), v1alpha1.NodeGroupSlug("Web_1"), "nodegroup.muster.dev/Web_1 created\n"},
		"scale":  {scaleOf, []string{"default", "2"}, v1alpha1.ClusterSlug("Home_2"), "default", "nodegroup.muster.dev/default scaled\n"},
		"delete": {func(b *clitest.Bench) *cobra.Command { return deleteOf(b, kinds.NodeGroups()) }, []string{"default", "--wait=false"}, "home", "default", "nodegroup.muster.dev \"default\" deleted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), secondCluster()...)...)
			clitest.WantErr(t, b.Run(t.Context(), test.command(b), test.args...), choose, false)
			clitest.WantErr(t, b.Run(t.Context(), test.command(b), append(test.args, "--cluster", "hone")...), `--cluster: cluster "hone" not found; did you mean "home"?`, false)
			if err := b.Run(t.Context(), test.command(b), append(test.args, "--cluster", "Home_2")...); err != nil || b.Out.String() != test.out {
				t.Fatalf("%v, printed %q, want %q", err, &b.Out, test.out)
			}
			var list v1alpha1.NodeGroupList
			if err := b.Client.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			desired := map[string]int32{}
			for _, g := range list.Items {
				desired[g.Namespace+"/"+g.Name] = g.Spec.ScalingConfig.DesiredSize
			}
			if got := desired[test.in+"/"+test.of]; got != 2 || desired["home/default"] != 2 {
				t.Errorf("the groups are then %v", desired)
			}
			if name == "delete" && len(desired) != 1 {
				t.Errorf("the groups are then %v", desired)
			}
		})
	}
}

func TestGetOfOneCluster(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), secondCluster()...)...)
	slug := v1alpha1.ClusterSlug("Home_2")
	for _, test := range []struct{ args, want string }{
		{"clusters -o name", "cluster.muster.dev/" + slug + "\ncluster.muster.dev/home\n"},
		{"clusters --cluster home -o name", "cluster.muster.dev/home\n"},
		{"cluster Home_2 -o name", "cluster.muster.dev/" + slug + "\n"},
		{"cluster " + slug + " -o name", "cluster.muster.dev/" + slug + "\n"},
		{"nodegroups -o name", strings.Repeat("nodegroup.muster.dev/default\n", 2)},
		{"nodegroups --cluster Home_2 -o name", "nodegroup.muster.dev/default\n"},
		{"nodegroup default --cluster Home_2 -o name", "nodegroup.muster.dev/default\n"},
		{"machines --cluster Home_2 -o name", "machine.muster.dev/i-22222222222222222\n"},
		{"machines --cluster home -o name", "machine.muster.dev/" + clitest.FirstMachine + "\nmachine.muster.dev/" + clitest.SecondMachine + "\n"},
	} {
		if err := b.Run(t.Context(), getOf(b), strings.Fields(test.args)...); err != nil || b.Out.String() != test.want {
			t.Errorf("get %s: %v, printed %q, want %q", test.args, err, &b.Out, test.want)
		}
	}
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "nodegroup", "default"), `several clusters have a nodegroup "default": choose one with --cluster`, false)
	if err := b.Run(t.Context(), getOf(b), "nodes", "--cluster", "home"); err != nil || b.Asked.Cluster != "home" {
		t.Errorf("nodes of one cluster: %v, asked for %q", err, b.Asked.Cluster)
	}
	clitest.WantErr(t, b.Run(t.Context(), getOf(b), "machines", "--cluster", "nobody"), `--cluster: cluster "nobody" not found`, false)
	if err := b.Run(t.Context(), getOf(b), "clusters", "--no-headers"); err != nil || !strings.HasPrefix(b.Out.String(), "Home_2 ") {
		t.Errorf("%v, printed %q", err, &b.Out)
	}
}

// Objects of several clusters have a column that says which.
func TestGetOfSeveralClusters(t *testing.T) {
	t.Parallel()
	objects := append(clitest.World(), secondCluster()...)
	for name, args := range map[string][]string{
		"nodegroups-of-several.txt":    {"nodegroups"},
		"machines-of-several.txt":      {"machines"},
		"machines-of-several-wide.txt": {"machines", "-o", "wide"},
		"clusters-several.txt":         {"clusters"},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
		if err := b.Run(t.Context(), getOf(b), args...); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, "get-"+name, b.Out.String())
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	if err := b.Run(t.Context(), getOf(b), "nodegroups", "--cluster", "home"); err != nil || strings.Contains(b.Out.String(), "CLUSTER") {
		t.Errorf("printed %q (%v)", &b.Out, err)
	}
}

// The deletion of a machine says which group replaces it, also if another cluster has a group of that name.
func TestDeleteMachineOfOneOfTwoClusters(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), secondCluster()...)...)
	if err := b.Run(t.Context(), deleteOf(b, kinds.Machines()), "i-22222222222222222"); err != nil {
		t.Fatal(err)
	}
	if want := "nodegroup default replaces what is deleted; to have fewer machines: muster scale nodegroup default 0\n"; b.Err.String() != want {
		t.Errorf("said %q, want %q", &b.Err, want)
	}
}
