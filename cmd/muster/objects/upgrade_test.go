// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/cloud/eks/eksclient"
	"muster.dev/muster/internal/platform/release"
)

// fakeEKS is an EKS API that makes Updates as EKS's actions do, or refuses.
type fakeEKS struct {
	t       *testing.T
	api     client.Client
	refusal error
	asked   []string
}

func (f *fakeEKS) make(asked string, spec v1alpha1.UpdateSpec) (string, error) {
	f.asked = append(f.asked, asked)
	if f.refusal != nil {
		return "", f.refusal
	}
	u := newUpdate("u1", 0, spec, v1alpha1.UpdateStatus{})
	return u.Name, f.api.Create(f.t.Context(), u)
}

func (f *fakeEKS) UpdateClusterVersion(_ context.Context, cluster, version string, force bool) (string, error) {
	return f.make(fmt.Sprint(cluster, " ", version, " ", force), v1alpha1.UpdateSpec{Type: v1alpha1.UpdateVersion, Change: v1alpha1.UpdateChange{Version: version}})
}

func (f *fakeEKS) UpdateNodegroupVersion(_ context.Context, cluster, group, version string) (string, error) {
	return f.make(fmt.Sprint(cluster, " ", group, " ", version), v1alpha1.UpdateSpec{
		Type: v1alpha1.UpdateVersion, NodeGroup: group, Change: v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Version: version}},
	})
}

func (f *fakeEKS) UpdateAddon(_ context.Context, cluster, addon string, change eksclient.AddonChange) (string, error) {
	return f.make(fmt.Sprint(cluster, " ", addon, " ", change), v1alpha1.UpdateSpec{
		Type: v1alpha1.UpdateAddon, Addon: addon, Change: v1alpha1.UpdateChange{Addon: &v1alpha1.UpdateAddonSettings{Version: &change.Version}},
	})
}

// ends has the Update end after three looks at it.
func ends(status v1alpha1.UpdateStatus) interceptor.Funcs {
	looks := 0
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, object, opts...)
		if u, ok := object.(*v1alpha1.Update); ok && err == nil {
			u.Status.Message, u.Status.Steps = "the control plane takes the change", []v1alpha1.UpdateStep{{Name: v1alpha1.UpdateStepAPIServer}}
			if looks++; looks > 3 {
				u.Status = status
			}
		}
		return err
	}}
}

// upgradeWorld is a cluster of 1.36 with a machine and two add-ons.
func upgradeWorld() []client.Object {
	objects := clitest.World()
	cluster, group, machine := objects[0].(*v1alpha1.Cluster), objects[1].(*v1alpha1.NodeGroup), objects[2].(*v1alpha1.Machine)
	of, _ := release.All().OfMinor("1.36")
	cluster.Status.Version, group.Status.Version = of.Version, "1.36"
	machine.Spec.NodeGroupUID, machine.Spec.ImageID = group.UID, ami.OfRelease(of)
	proxy := newAddon("kube-proxy", v1alpha1.AddonActive, "")
	proxy.Status.Version, proxy.Spec.ServiceAccountRoleARN, proxy.Spec.ResolveConflicts = of.Version+"-eksbuild.1", "arn:r", v1alpha1.ConflictsOverwrite
	return append(objects, proxy)
}

// upgradeOf returns "muster upgrade" before planes with objects, and its EKS API.
func upgradeOf(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*clitest.Bench, *fakeEKS, func() *cobra.Command) {
	t.Helper()
	b := clitest.NewBench(t, funcs, objects...)
	eks := &fakeEKS{t: t, api: b.Client}
	return b, eks, func() *cobra.Command {
		command := func() *upgradeCommand {
			return &upgradeCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, api: func(context.Context, *terminal.Options) (eksAPI, error) { return eks, nil }}
		}
		root := &cobra.Command{Use: "upgrade"}
		root.AddCommand(command().ofCluster(), command().ofNodeGroup(), command().ofAddon())
		return root
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	successful := v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, FinishedAt: new(metav1.NewTime(clitest.Noon.Add(42 * time.Second)))}
	failed := v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateFailed, Errors: []v1alpha1.UpdateError{{ErrorCode: "OperationNotPermitted", ErrorMessage: "the API server did not serve"}}}
	plane := func(version string) func([]client.Object) {
		return func(all []client.Object) { all[0].(*v1alpha1.Cluster).Status.Version = version }
	}
	for _, c := range []struct {
		name              string
		change            func([]client.Object)
		line              string
		ends              v1alpha1.UpdateStatus
		refusal           error
		asked, says, talk string
		fails             string
	}{
		{name: "the next minor", line: "cluster", asked: "home 1.37 false", says: "cluster.muster.dev/home upgrade from 1.36 to 1.37 began: update u1\n"},
		{
			name: "waits", line: "cluster home --version 1.37 --force --wait", ends: successful, asked: "home 1.37 true",
			says: "cluster.muster.dev/home upgrade from 1.36 to 1.37 began: update u1\ncluster.muster.dev/home upgraded from 1.36 to 1.37 in 42s\n",
			talk: "cluster/home: APIServer: the control plane takes the change\n",
		},
		{
			name: "fails", line: "cluster --wait", ends: failed, asked: "home 1.37 false", says: "cluster.muster.dev/home upgrade from 1.36 to 1.37 began: update u1\n",
			fails: `cluster "home" is not upgraded to 1.37: update u1 failed: OperationNotPermitted: the API server did not serve`,
		},
		{
			name: "cancelled", line: "cluster --wait", ends: v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateCancelled}, asked: "home 1.37 false",
			says: "cluster.muster.dev/home upgrade from 1.36 to 1.37 began: update u1\n", fails: "update u1 was cancelled",
		},
		{
			name: "refused", line: "cluster --version 1.40", refusal: &eksclient.Error{Code: "InvalidParameterException", Message: "unsupported"}, asked: "home 1.40 false",
			fails: `cluster "home" is not upgraded to 1.40: InvalidParameterException: unsupported`,
		},
		{name: "the last minor", change: plane("v1.37.2"), line: "cluster", says: "cluster.muster.dev/home unchanged: it is at 1.37, and no later version is there\n"},
		{name: "there already", change: plane("v1.37.2"), line: "cluster --version 1.37 --wait", says: "cluster.muster.dev/home unchanged: it is at 1.37\n"},
		{name: "no such cluster", line: "cluster nowhere", fails: `cluster "nowhere" not found`},
		{name: "a cluster named twice", line: "cluster home --cluster home", fails: "unknown flag: --cluster"},
		{name: "has not run", change: plane(""), line: "cluster", fails: "has not run yet"},
		{
			name: "a node group", change: plane("v1.37.2"), line: "nodegroup default", asked: "home default 1.37",
			says: "nodegroup.muster.dev/default upgrade from 1.36 to 1.37 began: update u1\n",
		},
		{
			name: "a node group beside another update", change: plane("v1.37.2"), line: "nodegroup default", asked: "home default 1.37",
			refusal: &eksclient.Error{Code: "ResourceInUseException", Message: "update u0 is in progress"}, says: "nodegroup.muster.dev/default upgrade from 1.36 to 1.37 is queued: update upgrade-NAME\n",
		},
		{name: "a node group there already", line: "nodegroup default", says: "nodegroup.muster.dev/default unchanged: it is at 1.36\n"},
		{
			name: "a machine is behind", line: "ng default --version 1.36", asked: "home default 1.36", says: "nodegroup.muster.dev/default upgrade from 1.36 to 1.36 began: update u1\n",
			change: func(all []client.Object) {
				older, _ := release.All().OfMinor("1.35")
				all[2].(*v1alpha1.Machine).Spec.ImageID = ami.OfRelease(older)
			},
		},
		{name: "no such group", line: "nodegroup nowhere", fails: `nodegroup "nowhere" not found`},
		{
			name: "an add-on", change: plane("v1.37.2"), line: "addon kube-proxy", asked: "home kube-proxy {v1.37.2-eksbuild.1 arn:r OVERWRITE}",
			says: "addon.muster.dev/kube-proxy upgrade from v1.36.4-eksbuild.1 to v1.37.2-eksbuild.1 began: update u1\n",
		},
		{name: "an add-on there already", line: "addon kube-proxy --wait", says: "addon.muster.dev/kube-proxy unchanged: it is at v1.36.4-eksbuild.1\n"},
		{name: "no such add-on", line: "addon coredns", fails: `addon "coredns" not found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			objects := upgradeWorld()
			if c.change != nil {
				c.change(objects)
			}
			funcs := interceptor.Funcs{}
			if c.ends.Phase != "" {
				funcs = ends(c.ends)
			}
			b, eks, command := upgradeOf(t, funcs, objects...)
			eks.refusal = c.refusal
			err := b.Run(t.Context(), command(), strings.Fields(c.line)...)
			if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if got := strings.Join(eks.asked, "; "); got != c.asked {
				t.Errorf("asked %q, want %q", got, c.asked)
			}
			said := regexp.MustCompile(`update upgrade-[a-z0-9]+`).ReplaceAllString(b.Out.String(), "update upgrade-NAME")
			if diff := cmp.Diff(c.says, said); diff != "" {
				t.Error(diff)
			}
			if c.talk != "" && b.Err.String() != c.talk {
				t.Errorf("said %q, want %q", b.Err.String(), c.talk)
			}
		})
	}
}

// An upgrade in progress is waited for, and no other is asked for, unless it goes to another version or is no upgrade.
func TestUpgradeJoins(t *testing.T) {
	t.Parallel()
	version := func(to string) *v1alpha1.Update {
		return newUpdate("u0", time.Minute, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateVersion, Change: v1alpha1.UpdateChange{Version: to}}, v1alpha1.UpdateStatus{})
	}
	ended, other, earlier := version("1.37"), version("1.37"), version("1.37")
	ended.Status.Phase = v1alpha1.UpdateFailed
	other.Spec.NodeGroup = "default"
	earlier.Spec.TargetUID = "of-an-earlier-cluster"
	logging := newUpdate("u0", time.Minute, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateLogging}, v1alpha1.UpdateStatus{})
	for _, c := range []struct {
		name  string
		is    *v1alpha1.Update
		line  string
		joins bool
	}{
		{"the same version", version("1.37"), "cluster --version 1.37", true},
		{"whatever version", version("1.37"), "cluster", true},
		{"another version", version("1.37"), "cluster --version 1.38", false},
		{"an ended one", ended, "cluster", false},
		{"of a node group", other, "cluster", false},
		{"of an earlier cluster", earlier, "cluster", false},
		{"of another kind", logging, "cluster", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, eks, command := upgradeOf(t, interceptor.Funcs{}, append(upgradeWorld(), c.is)...)
			if err := b.Run(t.Context(), command(), strings.Fields(c.line)...); err != nil {
				t.Fatal(err)
			}
			goesOn := b.Out.String() == "cluster.muster.dev/home upgrade from 1.36 to 1.37 goes on: update u0\n"
			if goesOn != c.joins || (len(eks.asked) == 0) != c.joins {
				t.Errorf("asked %v, and said %s", eks.asked, &b.Out)
			}
		})
	}
}

// Of several updates that wait for each other the last one says what the node group becomes: an upgrade to another version is queued
// behind it, also one to the version that the group still has.
func TestUpgradeIsQueuedBehindTheLast(t *testing.T) {
	t.Parallel()
	rollout := func(name string, age time.Duration, asks v1alpha1.UpdateRollout) *v1alpha1.Update {
		return newUpdate(name, age, v1alpha1.UpdateSpec{Type: v1alpha1.UpdateVersion, NodeGroup: "default", Change: v1alpha1.UpdateChange{Rollout: &asks}}, v1alpha1.UpdateStatus{})
	}
	first, second := rollout("u9", time.Hour, v1alpha1.UpdateRollout{Version: "1.37"}), rollout("u2", time.Minute, v1alpha1.UpdateRollout{Version: "1.36"})
	back := rollout("u1", time.Second, v1alpha1.UpdateRollout{Undo: true})
	for _, c := range []struct {
		name, line, says string
		there            []client.Object
	}{
		{"nothing is in progress", "--version 1.36", "unchanged: it is at 1.36\n", nil},
		{"it is about to leave", "--version 1.36", "upgrade from 1.36 to 1.36 is queued: update ", []client.Object{first}},
		{"the last goes on", "--version 1.36", "upgrade from 1.36 to 1.36 goes on: update u2\n", []client.Object{first, second}},
		{"the first is not the last", "--version 1.37", "upgrade from 1.36 to 1.37 is queued: update ", []client.Object{first, second}},
		{"the last takes it back", "--version 1.36", "upgrade from 1.36 to 1.36 is queued: update ", []client.Object{first, second, back}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			objects := upgradeWorld()
			for _, o := range c.there {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			b, eks, command := upgradeOf(t, interceptor.Funcs{}, objects...)
			eks.refusal = &eksclient.Error{Code: inUse, Message: "another one"}
			if err := b.Run(t.Context(), command(), append([]string{"nodegroup", "default"}, strings.Fields(c.line)...)...); err != nil {
				t.Fatal(err)
			}
			if said := b.Out.String(); !strings.HasPrefix(said, "nodegroup.muster.dev/default "+c.says) {
				t.Errorf("it says %q, want %q", said, c.says)
			}
		})
	}
}

// Documents have the Update, or the object if there is nothing to do.
func TestUpgradePrintsDocuments(t *testing.T) {
	t.Parallel()
	b, _, command := upgradeOf(t, ends(v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful, FinishedAt: new(metav1.NewTime(clitest.Noon))}), upgradeWorld()...)
	for line, want := range map[string]string{
		"cluster --wait -o json":                "Update u1 Successful",
		"cluster --version 1.36 --wait -o json": "Cluster home ",
	} {
		if err := b.Run(t.Context(), command(), strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
		var document struct {
			Kind     string
			Metadata struct{ Name string }
			Status   struct{ Phase string }
		}
		if err := json.Unmarshal(b.Out.Bytes(), &document); err != nil {
			t.Fatalf("%v: %s", err, &b.Out)
		}
		if got := document.Kind + " " + document.Metadata.Name + " " + document.Status.Phase; got != want {
			t.Errorf("%s prints %s, want %s", line, got, want)
		}
	}
	clitest.WantErr(t, b.Run(t.Context(), command(), "cluster", "-o", "table"), `unknown output format "table"`, true)
}

func TestUpgradeTakesTooLong(t *testing.T) {
	t.Parallel()
	b, _, command := upgradeOf(t, ends(v1alpha1.UpdateStatus{Message: "etcd starts"}), upgradeWorld()...)
	err := b.Run(t.Context(), command(), "cluster", "--wait", "--timeout", "100ms")
	clitest.WantErr(t, err, "cluster/home: InProgress: etcd starts: gave up after 100ms; it goes on: muster get updates", false)
}

func TestUpgradeCompletesVersions(t *testing.T) {
	t.Parallel()
	_, _, command := upgradeOf(t, interceptor.Funcs{}, upgradeWorld()...)
	for line, want := range map[string]string{"cluster": "1.37", "nodegroup default": "1.34", "addon kube-proxy": "v1.35.8-eksbuild.1"} {
		words := strings.Fields(line)
		sub, _, err := command().Find(words[:1])
		if err != nil {
			t.Fatal(err)
		}
		complete, ok := sub.GetFlagCompletionFunc("version")
		if !ok {
			t.Fatalf("%s completes no versions", line)
		}
		if found, _ := complete(sub, words[1:], ""); !slices.Contains(found, want) {
			t.Errorf("%s: %v", line, found)
		}
	}
}

func TestUpgradeIsOfTheObject(t *testing.T) {
	t.Parallel()
	addon := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "coredns", UID: types.UID("a1")}}
	u := &upgrade{kind: kinds.Addons(), of: addon}
	for uid, want := range map[string]bool{"": true, "a1": true, "a0": false} {
		if got := u.isOf(&v1alpha1.Update{Spec: v1alpha1.UpdateSpec{Addon: "coredns", TargetUID: uid}}); got != want {
			t.Errorf("%q: %v", uid, got)
		}
	}
	if u.isOf(&v1alpha1.Update{}) {
		t.Error("an update of the cluster is taken for the add-on's")
	}
}
