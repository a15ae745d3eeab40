// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
)

func newAddon(name string, phase v1alpha1.AddonPhase, message string) *v1alpha1.Addon {
	a := &v1alpha1.Addon{ObjectMeta: clitest.MadeBefore(name, 5*time.Minute)}
	a.Namespace, a.Spec.AddonName = "home", name
	a.Status = v1alpha1.AddonStatus{Phase: phase, Version: "v1.15.0-eksbuild.1", Applied: "x", ObservedGeneration: 1}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Active", LastTransitionTime: metav1.NewTime(clitest.Noon)}
	if message != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "InsufficientNumberOfReplicas", message
	}
	a.Status.Conditions = []metav1.Condition{ready}
	return a
}

func createAddonOf(b *clitest.Bench) *cobra.Command {
	return (&createAddonCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond}).command()
}

func deleteAddonOf(b *clitest.Bench) *cobra.Command {
	return (&deleteCommand{Options: b.O, planes: b.Planes, kind: kinds.Addons(), interval: time.Millisecond}).addons()
}

func TestGetAddons(t *testing.T) {
	t.Parallel()
	objects := append(clitest.World(), newAddon("coredns", v1alpha1.AddonActive, ""), newAddon("metrics-server", v1alpha1.AddonDegraded, "it is not part of this release"))
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	for file, args := range map[string][]string{"get-addons.txt": {"addons"}, "get-addons-wide.txt": {"addon", "-o", "wide", "--cluster", "home"}} {
		if err := b.Run(t.Context(), getOf(b), args...); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, file, b.Out.String())
	}
}

func TestCreateAddon(t *testing.T) {
	t.Parallel()
	looks := 0
	settle := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, object, opts...)
		if a, ok := object.(*v1alpha1.Addon); ok && err == nil {
			if looks++; looks > 2 {
				a.Status.Phase, a.Status.ObservedGeneration = v1alpha1.AddonActive, a.Generation
			}
		}
		return err
	}
	b := clitest.NewBench(t, interceptor.Funcs{Get: settle}, clitest.World()...)
	args := []string{"coredns", "--values", `{"replicaCount":3}`, "--conflicts", "overwrite"}
	if err := b.Run(t.Context(), createAddonOf(b), append(args, "--wait", "--timeout", "5s")...); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "addon.muster.dev/coredns created\n" || b.Err.String() != "addon coredns: CREATING\naddon coredns: ACTIVE\n" {
		t.Errorf("printed %q and %q", &b.Out, &b.Err)
	}
	var a v1alpha1.Addon
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "coredns"}, &a); err != nil || a.Spec.ConfigurationValues != `{"replicaCount":3}` || a.Spec.ResolveConflicts != v1alpha1.ConflictsOverwrite {
		t.Errorf("%+v, %v", a.Spec, err)
	}
	if err := b.Run(t.Context(), createAddonOf(b), args...); err != nil || b.Out.String() != "addon.muster.dev/coredns unchanged\n" {
		t.Errorf("printed %q, %v", &b.Out, err)
	}
	clitest.WantErr(t, b.Run(t.Context(), createAddonOf(b), "coredns", "--conflicts", "overwrite"), `add-on "coredns" exists with another configurationValues`, false)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("replicaCount: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context(), createAddonOf(b), "coredns", "--values-file", file, "--dry-run=client", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "create-addon-dry-run.yaml", b.Out.String())
	if err := b.Run(t.Context(), createAddonOf(b), "traefik", "--dry-run=client"); err != nil { // it needs no program
		t.Error(err)
	}
}

func TestCreateAddonRefused(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), newAddon("vpc-cni", v1alpha1.AddonDegraded, "no network"))...)
	for _, c := range []struct{ args, says string }{
		{"cordens", `unknown add-on "cordens"; did you mean "coredns"?`},
		{"coredns --version v1.0.0-eksbuild.1", "add-on coredns has the version"},
		{"coredns --conflicts force", "there are: none, overwrite"},
		{"coredns --values {} --values-file x", "not both"},
		{"coredns --values-file none", "reading --values-file"},
		{"coredns --values replicas:1", "do not follow the schema of coredns"},
		{"traefik", "is not built here: run `make addons` where Muster was built, once"},
		{"metrics-server", "is not built here: run `make build` where Muster was built, or wait if `make up` still builds there"},
		{"vpc-cni --wait --timeout 5s", `add-on "vpc-cni" is DEGRADED: no network`},
	} {
		if err := b.Run(t.Context(), createAddonOf(b), strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.args, err, c.says)
		}
	}
}

// A cluster has one Karpenter: the add-on is refused where the control plane runs it, before its programs are built, and
// nothing is made.
func TestCreateKarpenterBesideCompute(t *testing.T) {
	t.Parallel()
	const beside = "Karpenter runs in the control plane of cluster home (spec.compute), and a cluster has one Karpenter: set spec.compute.enabled to false first"
	for name, test := range map[string]struct {
		compute *v1alpha1.ClusterCompute
		args    string
		says    string
	}{
		"it runs":                  {&v1alpha1.ClusterCompute{Enabled: true}, "karpenter --cluster home", beside},
		"a dry run of the server":  {&v1alpha1.ClusterCompute{Enabled: true}, "karpenter --cluster home --dry-run=server", beside},
		"with --yes":               {&v1alpha1.ClusterCompute{Enabled: true}, "karpenter --cluster home --yes", beside},
		"it does not":              {&v1alpha1.ClusterCompute{}, "karpenter --cluster home", "is not built here"},
		"nothing is said about it": {nil, "karpenter --cluster home", "is not built here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := clitest.World()
			for _, object := range objects {
				if c, ok := object.(*v1alpha1.Cluster); ok && c.Spec.Name == "home" {
					c.Spec.Compute = test.compute
				}
			}
			b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
			clitest.WantErr(t, b.Run(t.Context(), createAddonOf(b), strings.Fields(test.args)...), test.says, false)
			var all v1alpha1.AddonList
			if err := b.Client.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
				t.Errorf("made are %v, %v", all.Items, err)
			}
		})
	}
}

func TestDeleteAddon(t *testing.T) {
	t.Parallel()
	kept := false
	funcs := interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
		if a, ok := object.(*v1alpha1.Addon); ok {
			kept = a.Spec.Preserve
		}
		return c.Delete(ctx, object, opts...)
	}}
	b := clitest.NewBench(t, funcs, append(clitest.World(), newAddon("coredns", v1alpha1.AddonActive, ""))...)
	clitest.WantErr(t, b.Run(t.Context(), deleteAddonOf(b), "cordens"), `addon "cordens" not found; did you mean "coredns"?`, false)
	if err := b.Run(t.Context(), deleteAddonOf(b), "coredns", "--preserve"); err != nil {
		t.Fatal(err)
	}
	if b.Out.String() != "addon.muster.dev \"coredns\" deleted\n" || !kept {
		t.Errorf("printed %q, kept %v", &b.Out, kept)
	}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "coredns"}, &v1alpha1.Addon{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}
