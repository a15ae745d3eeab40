// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/platform/statedir"
)

func deleteClusterOf(b *clitest.Bench) *cobra.Command {
	return (&deleteClusterCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond}).command()
}

// lone is a cluster without node groups, in its namespace, which its finalizer keeps until somebody lets it go.
func lone(name string) []client.Object {
	slug := v1alpha1.ClusterSlug(name)
	cluster := &v1alpha1.Cluster{ObjectMeta: clitest.MadeBefore(slug, 0), Spec: v1alpha1.ClusterSpec{Name: name}}
	cluster.Namespace, cluster.Finalizers = slug, []string{v1alpha1.FinalizerCluster}
	return []client.Object{cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: slug}}}
}

// remover is a service that lets a deleted cluster go, and then its namespace, a step for each look at the cluster.
func remover(t *testing.T) interceptor.Funcs {
	t.Helper()
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, object, opts...)
		if err != nil {
			return err
		}
		switch there := object.DeepCopyObject().(type) {
		case *v1alpha1.Cluster:
			switch {
			case there.DeletionTimestamp == nil:
			case len(there.Status.Conditions) == 0:
				there.Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, "Deleting", "etcd stops")}
				err = c.Update(ctx, there)
			default:
				there.Finalizers = nil
				err = c.Update(ctx, there)
			}
		case *corev1.Namespace:
			err = c.Delete(ctx, there)
		}
		if err != nil {
			t.Error(err)
		}
		return nil
	}}
}

func (w leftovers) want(t *testing.T, b *clitest.Bench) {
	t.Helper()
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	for _, list := range []client.ObjectList{&clusters, &groups} {
		if err := b.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var got leftovers
	for _, c := range clusters.Items {
		got = append(got, c.Spec.Name)
	}
	for _, g := range groups.Items {
		got = append(got, g.Namespace+"/"+g.Spec.Name)
	}
	if !slices.Equal(got, w) {
		t.Errorf("left are %q, want %q", got, w)
	}
}

// leftovers are the clusters and node groups that are there afterwards.
type leftovers []string

func TestDeleteCluster(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, remover(t), slices.Concat(clitest.World(), lone("Blue_2"))...)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, name := range []string{"home", "Blue_2"} {
		writeClusterKubeconfig(t, b, name)
	}
	dir := statedir.Dir(b.O.StateDir)
	if err := tools.MergeKubeconfig(b.O, dir, file, "", true); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context(), deleteClusterOf(b), "Blue_2"); err != nil {
		t.Fatal(err)
	}
	want := "cluster Blue_2: Deleting\ncluster Blue_2: Deleting: etcd stops\ncluster Blue_2: its namespace blue-2--708cd2d69c is being removed\nRemoved contexts from " + file + "\n"
	if b.Out.String() != "cluster.muster.dev \"Blue_2\" deleted\n" || b.Err.String() != want {
		t.Errorf("printed %q and %q, want %q", &b.Out, &b.Err, want)
	}
	leftovers{"home", "home/default"}.want(t, b)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts["Blue_2"] != nil || config.Contexts["home"] == nil || config.Contexts["muster-management"] == nil {
		t.Errorf("the kubeconfig has %v (%v)", config, err)
	}
}

// A refusal is one of all, before anything is deleted.
func TestDeleteClusterRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args      []string
		protected bool
		want      string
	}{
		"node groups":       {[]string{"Blue_2", "home"}, false, `cluster "home" has 1 node group (default): delete them first, or all together with --cascade`},
		"a protected one":   {[]string{"home", "Blue_2", "--cascade"}, true, `cluster "Blue_2" has deletion protection enabled: switch it off first: kubectl --context muster-management -n blue-2--708cd2d69c patch cluster blue-2--708cd2d69c --type merge`},
		"both":              {[]string{"home", "Blue_2"}, true, "cluster \"home\" has 1 node group (default): delete them first, or all together with --cascade\ncluster \"Blue_2\" has deletion"},
		"one that is not":   {[]string{"hone"}, false, `cluster "hone" not found; did you mean "home"?`},
		"not even together": {[]string{"home", "hone"}, false, "cluster \"hone\" not found; did you mean \"home\"?\ncluster \"home\" has 1 node group"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blue := lone("Blue_2")
			blue[0].(*v1alpha1.Cluster).Spec.DeletionProtection = test.protected
			b := clitest.NewBench(t, interceptor.Funcs{}, slices.Concat(clitest.World(), blue)...)
			clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), test.args...), test.want, false)
			if b.Out.Len() > 0 {
				t.Errorf("printed %q", &b.Out)
			}
			leftovers{"Blue_2", "home", "home/default"}.want(t, b)
		})
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	if err := b.Run(t.Context(), deleteClusterOf(b), "blue", "--ignore-not-found"); err != nil || b.Out.Len() > 0 {
		t.Errorf("%v, printed %q", err, &b.Out)
	}
	b.O.Cluster = "home"
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "blue"), "--cluster: give the clusters to delete as arguments", true)
}

func TestDeleteClusterCascade(t *testing.T) {
	t.Parallel()
	// Machines go when their group does, one look later.
	looks := 0
	funcs := remover(t)
	funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.MachineList); ok {
			home := &v1alpha1.Cluster{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "home", Name: "home"}, home); err == nil && home.DeletionTimestamp == nil {
				t.Error("machines are waited for, and the cluster is not being deleted")
			}
			if looks++; looks > 1 {
				for _, machine := range []string{clitest.FirstMachine, clitest.SecondMachine} {
					if err := c.Delete(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: machine}}); client.IgnoreNotFound(err) != nil {
						t.Error(err)
					}
				}
			}
		}
		return c.List(ctx, list, opts...)
	}
	b := clitest.NewBench(t, funcs, slices.Concat(clitest.World(), secondCluster())...)
	if err := b.Run(t.Context(), deleteClusterOf(b), "home", "--cascade"); err != nil {
		t.Fatal(err)
	}
	want := "cluster.muster.dev \"home\" deleted\nnodegroup.muster.dev \"default\" deleted\n"
	if talk := "2 machines not gone yet\n"; b.Out.String() != want || !strings.HasPrefix(b.Err.String(), talk) {
		t.Errorf("printed %q and %q, want %q and %q", &b.Out, &b.Err, want, talk)
	}
	leftovers{"Home_2", v1alpha1.ClusterSlug("Home_2") + "/default"}.want(t, b)

	// Without a wait the service does the rest.
	b = clitest.NewBench(t, interceptor.Funcs{}, slices.Concat(clitest.World(), secondCluster())...)
	if err := b.Run(t.Context(), deleteClusterOf(b), "home", "--cascade", "--wait=false"); err != nil || b.Out.String() != want || b.Err.Len() > 0 {
		t.Errorf("%v, printed %q and %q", err, &b.Out, &b.Err)
	}
}

// The management plane may refuse what the command did not: deletion protection that somebody has set meanwhile. Then
// node groups stay.
func TestDeleteClusterRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	funcs := interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
		if _, ok := object.(*v1alpha1.Cluster); ok {
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "clusters"}, object.GetName(), errors.New(`ValidatingAdmissionPolicy 'clusters.muster.dev' denied request: cluster "home" has deletion protection enabled`))
		}
		return c.Delete(ctx, object, opts...)
	}}
	b := clitest.NewBench(t, funcs, clitest.World()...)
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "home", "--cascade"), `cluster "home" has deletion protection enabled`, false)
	leftovers{"home", "home/default"}.want(t, b)
}

func TestDeleteClusterTimeout(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, lone("blue")...)
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "blue", "--timeout", "10ms"), "cluster blue: Deleting: gave up after 1s; the deletion goes on: muster get clusters", false)
	// Again, it waits for the same one.
	clitest.WantErr(t, b.Run(t.Context(), deleteClusterOf(b), "blue", "--timeout", "10ms"), "cluster blue: Deleting: gave up after 1s", false)
}
