// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/platform/statedir"
)

func createClusterOf(b *clitest.Bench) *cobra.Command {
	return (&createClusterCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, host: unknownHost}).command()
}

// needsNamespace refuses, as the API server does, what is in a namespace that does not exist or is going.
func needsNamespace(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
	if namespace := object.GetNamespace(); namespace != "" && namespace != metav1.NamespaceDefault {
		var there corev1.Namespace
		if err := c.Get(ctx, client.ObjectKey{Name: namespace}, &there); err != nil {
			return err
		}
		if there.Status.Phase == corev1.NamespaceTerminating {
			err := apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, object.GetName(), fmt.Errorf("namespace %s is being terminated", namespace))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return err
		}
	}
	return c.Create(ctx, object, opts...)
}

func TestCreateCluster(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{Create: needsNamespace})
	slug := v1alpha1.ClusterSlug("Blue_2")
	run := func(out, talk string, args ...string) {
		t.Helper()
		if err := b.Run(t.Context(), createClusterOf(b), args...); err != nil {
			t.Fatal(err)
		}
		if b.Out.String() != out || b.Err.String() != talk {
			t.Errorf("%q printed %q and %q, want %q and %q", args, &b.Out, &b.Err, out, talk)
		}
	}
	const talk = "When it is Ready (muster get clusters), muster kubeconfig --cluster Blue_2 adds its context to your kubeconfig.\n"
	run("cluster.muster.dev/Blue_2 created (server dry run)\nnodegroup.muster.dev/default created (server dry run)\n", "", "Blue_2", "--nodes", "2", "--dry-run=server")
	var clusters v1alpha1.ClusterList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&clusters, &namespaces} {
		if err := b.Client.List(t.Context(), list); err != nil || meta.LenList(list) > 0 {
			t.Errorf("a dry run left %v (%v)", list, err)
		}
	}
	run("cluster.muster.dev/Blue_2 created\nnodegroup.muster.dev/default created\n", talk, "Blue_2", "--nodes", "2", "--deletion-protection")
	run("cluster.muster.dev/Blue_2 unchanged\nnodegroup.muster.dev/default unchanged\n", "", "Blue_2", "--nodes", "2", "--deletion-protection")
	run("cluster.muster.dev/Blue_2 unchanged\n", "", "Blue_2")

	var namespace corev1.Namespace
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: slug}, &namespace); err != nil || namespace.Labels[v1alpha1.LabelCluster] != slug {
		t.Errorf("the namespace has the labels %v (%v)", namespace.Labels, err)
	}
	var cluster v1alpha1.Cluster
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: slug}, &cluster); err != nil || cluster.Spec.Name != "Blue_2" || !cluster.Spec.DeletionProtection {
		t.Errorf("the cluster is %+v (%v)", cluster.Spec, err)
	}
	var group v1alpha1.NodeGroup
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: slug, Name: "default"}, &group); err != nil || group.Spec.ScalingConfig.DesiredSize != 2 {
		t.Errorf("the node group is %+v (%v)", group.Spec, err)
	}

	for want, args := range map[string][]string{
		`cluster "Blue_2" exists with version none, not v1.36.3: muster up -f or kubectl apply changes what can be changed`: {"Blue_2", "--version", "v1.36.3"},
		`nodegroup "default" exists with desiredSize 2, not 3: muster scale nodegroup`:                                      {"Blue_2", "--nodes", "3"},
	} {
		clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), args...), want, false)
	}
}

// Documents for kubectl have the namespace before what is in it.
func TestCreateClusterDryRun(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("something was sent")
		return nil
	}})
	if err := b.Run(t.Context(), createClusterOf(b), "Blue_2", "--nodes", "2", "--dry-run", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "create-cluster-dry-run.yaml", b.Out.String())
	if err := b.Run(t.Context(), createClusterOf(b), "Blue_2", "--dry-run=client"); err != nil || b.Out.String() != "cluster.muster.dev/Blue_2 created (dry run)\n" {
		t.Errorf("printed %q (%v)", &b.Out, err)
	}
}

const twoGroups = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: web}
spec: {provider: simulated, scalingConfig: {desiredSize: 2}}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: batch}
spec: {scalingConfig: {desiredSize: 0}}
`

func TestCreateClusterFromFile(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{Create: needsNamespace})
	file := filepath.Join(t.TempDir(), "blue.yaml")
	if err := os.WriteFile(file, []byte(twoGroups+"---\n{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		in  string
		did string
		of  []string
	}{
		{"", "created", []string{"-f", file}},
		{"", "unchanged", []string{"blue", "--filename", file}},
		{twoGroups, "unchanged", []string{"blue", "-f", "-"}},
	} {
		b.O.In = strings.NewReader(test.in)
		want := strings.ReplaceAll("cluster.muster.dev/blue did\nnodegroup.muster.dev/web did\nnodegroup.muster.dev/batch did\n", "did", test.did)
		if err := b.Run(t.Context(), createClusterOf(b), test.of...); err != nil || b.Out.String() != want {
			t.Errorf("%q printed %q (%v), want %q", test.of, &b.Out, err, want)
		}
	}
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "red", "-f", file), `document 3 (Cluster blue): line 11: spec.name: Invalid value: "blue": must be "red", the name that was given beside the file`, false)
	b.O.In = strings.NewReader(twoGroups)
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "-f", "-"), "standard input: holds no Cluster that could be read", false)
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "-f", file+"x"), "reading the configuration: open ", false)
	ordinary := &createClusterCommand{Options: b.O, planes: b.Planes, euid: 1000}
	clitest.WantErr(t, b.Run(t.Context(), ordinary.command(), "-f", file), "local machines need root", false)
}

// Everything that is wrong is said at once, a line each, and nothing is made.
func TestCreateClusterErrors(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("something was sent")
		return nil
	}})
	for _, test := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"a b", "--nodes", "-1", "--version", "latest"}, `Cluster a b: spec.name: Invalid value: "a b": must begin with a letter or digit and be of at most 100 letters, digits, - and _
Cluster a b: spec.version: Invalid value: "latest": must be a minor version such as 1.36, or left out
NodeGroup default: spec.scalingConfig.desiredSize: Invalid value: -1: must`, false},
		{[]string{strings.Repeat("x", 101)}, "at most 100 letters", false},
		{nil, "NAME is missing: give it, or a file with a Cluster (-f)", true},
		{[]string{"x", "--provider", "simulated"}, "--provider is that of the node group that --nodes makes: give both", true},
		{[]string{"x", "--kubeconfig", "k"}, "--kubeconfig needs --wait", true},
		{[]string{"x", "--dry-run=maybe"}, `unknown --dry-run "maybe"; there are: client, server, none`, true},
		{[]string{"x", "-o", "table"}, `unknown output format "table"`, true},
		{[]string{"-f", "x", "--nodes", "1"}, "--nodes says what a file says: give either it or --file", true},
		{[]string{"-f", "x", "--subnets", "subnet-0123456789abcdef0"}, "--subnets says what a file says", true},
		{[]string{"x", "--subnets", "a,subnet-0123456789abcdef0"}, `spec.network.subnetIDs[0]: Invalid value: "a": must be the id of a subnet`, false},
		{[]string{"-f", "x", "--deletion-protection"}, "--deletion-protection says what a file says", true},
	} {
		if test.args == nil {
			test.args = []string{}
		}
		clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), test.args...), test.want, test.usage)
	}
	b.O.Cluster = "blue"
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "red"), "--cluster names a cluster that there is", true)
}

func TestCreateClusterThatIsGoing(t *testing.T) {
	t.Parallel()
	const want = `cluster "home" is being deleted: try again when it is gone`
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	b := clitest.NewBench(t, interceptor.Funcs{Create: needsNamespace}, namespace)
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "home"), want, false)

	now := metav1.NewTime(clitest.Noon)
	going := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "home", DeletionTimestamp: &now, Finalizers: []string{v1alpha1.FinalizerCluster}}}
	b = clitest.NewBench(t, interceptor.Funcs{}, going)
	clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "home"), want, false)
}

// writeClusterKubeconfig does what the service does before a cluster is Ready.
func writeClusterKubeconfig(t *testing.T, b *clitest.Bench, name string) {
	t.Helper()
	dir := statedir.Dir(b.O.StateDir)
	for path, context := range map[string]string{dir.Cluster(v1alpha1.ClusterSlug(name)).Kubeconfig(): name, dir.ManagementKubeconfig(): "muster-management"} {
		config := clientcmdapi.NewConfig()
		config.Clusters[context] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1/" + context}
		config.AuthInfos[context] = &clientcmdapi.AuthInfo{}
		config.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: context}
		config.CurrentContext = context
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir.Layout(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// service is a service that answers each look at a cluster with the next condition.
func service(conditions ...metav1.Condition) interceptor.Funcs {
	looks := 0
	return interceptor.Funcs{Create: needsNamespace, Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if err := c.Get(ctx, key, object, opts...); err != nil {
			return err
		}
		if cluster, ok := object.(*v1alpha1.Cluster); ok && looks < len(conditions) {
			cluster.Status.Endpoint = "https://127.0.0.1:6443"
			cluster.Status.Conditions = []metav1.Condition{conditions[looks]}
			looks = min(looks+1, len(conditions)-1)
		}
		return nil
	}}
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
}

func TestCreateClusterWait(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, service(condition(metav1.ConditionFalse, "Creating", "etcd starts\nkube-apiserver waits"), condition(metav1.ConditionTrue, "Healthy", "it answers")))
	writeClusterKubeconfig(t, b, "Blue_2")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := b.Run(t.Context(), createClusterOf(b), "Blue_2", "--wait", "--kubeconfig", file); err != nil {
		t.Fatal(err)
	}
	want := "cluster Blue_2: Creating: etcd starts\ncluster Blue_2: Ready\nWrote contexts to " + file + "\nThe current context is now \"Blue_2\"\n" +
		"Cluster Blue_2 is ready at https://127.0.0.1:6443\nTry: kubectl --context Blue_2 get nodes\n"
	if b.Err.String() != want || b.Out.String() != "cluster.muster.dev/Blue_2 created\n" {
		t.Errorf("printed %q and %q, want %q", &b.Out, &b.Err, want)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts["Blue_2"] == nil || config.CurrentContext != "Blue_2" {
		t.Errorf("the kubeconfig is %+v (%v)", config, err)
	}

	// With nodes that do not come, the context is there nevertheless.
	b = clitest.NewBench(t, service(condition(metav1.ConditionTrue, "Healthy", "it answers")))
	writeClusterKubeconfig(t, b, "blue")
	err = b.Run(t.Context(), createClusterOf(b), "blue", "--nodes", "1", "--wait", "--timeout", "100ms", "--kubeconfig", file+"2")
	clitest.WantErr(t, err, "nodegroup default: 0 of 1 node is Ready: gave up after 1s", false)
	if _, err := os.Stat(file + "2"); err != nil {
		t.Error(err)
	}
}

func TestCreateClusterRefused(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]metav1.Condition{
		`cluster "blue" is not started: 5 GiB are free; muster delete cluster blue removes it`:           condition(metav1.ConditionFalse, "InsufficientMemory", "5 GiB are free"),
		`cluster blue: Creating: etcd starts: gave up after 50ms; it goes on: muster get clusters`:       condition(metav1.ConditionFalse, "Creating", "etcd starts"),
		`cluster blue: NetworkFailed: no veth: gave up after 50ms; it goes on: muster get clusters`:      condition(metav1.ConditionFalse, "NetworkFailed", "no veth"),
		`cluster "blue" is not started: InvalidSpec; muster delete cluster blue removes it`:              condition(metav1.ConditionFalse, "InvalidSpec", ""),
		`cluster blue: Pending: gave up after 50ms; it goes on: muster get clusters`:                     {Type: "Other", Status: metav1.ConditionTrue},
		`cluster blue: InsufficientMemory: of before: gave up after 50ms; it goes on: muster get cluste`: {Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "InsufficientMemory", Message: "of before", ObservedGeneration: 7},
	} {
		b := clitest.NewBench(t, service(test))
		clitest.WantErr(t, b.Run(t.Context(), createClusterOf(b), "blue", "--wait", "--timeout", "50ms"), want, false)
	}
}
