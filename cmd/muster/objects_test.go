// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite golden files")

// noon is when these tests take place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	firstMachine  = "i-0123456789abcdef0"
	secondMachine = "i-0fedcba9876543210"
	firstNode     = "ip-192-168-64-11.muster.internal"
)

func madeBefore(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-age)), Generation: 1,
	}
}

// world is what there is in both planes before a test.
func world() []client.Object {
	cluster := &v1alpha1.Cluster{ObjectMeta: madeBefore("default", 2*time.Hour)}
	cluster.Spec.Network.VPCCIDR = "192.168.64.0/18"
	cluster.Status = v1alpha1.ClusterStatus{
		Version: "v1.36.3", Endpoint: "https://127.0.0.1:6443", PrivateEndpoint: "https://192.168.64.2",
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Up", LastTransitionTime: metav1.NewTime(noon)}},
	}

	group := &v1alpha1.NodeGroup{ObjectMeta: madeBefore("default", time.Hour)}
	group.Spec = v1alpha1.NodeGroupSpec{
		ClusterName: "default", Provider: v1alpha1.ProviderLocal, ScalingConfig: v1alpha1.ScalingConfig{MaxSize: 5, DesiredSize: 2},
	}
	group.Status = v1alpha1.NodeGroupStatus{Replicas: 2, ReadyReplicas: 1, ObservedGeneration: 1}

	ready := &v1alpha1.Machine{ObjectMeta: madeBefore(firstMachine, 59*time.Minute)}
	ready.Labels = map[string]string{v1alpha1.LabelNodeGroup: "default"}
	ready.Spec = v1alpha1.MachineSpec{ClusterName: "default", NodeGroup: "default", Provider: v1alpha1.ProviderLocal}
	ready.Status = v1alpha1.MachineStatus{
		Phase: v1alpha1.MachineReady, NodeName: firstNode, ProviderID: "muster:///" + firstMachine, PodCIDR: "10.244.0.0/24",
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.64.11"}, {Type: corev1.NodeInternalDNS, Address: firstNode}},
		Join: []v1alpha1.JoinRecord{
			{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(noon.Add(-time.Hour))},
			{Step: v1alpha1.StepReady, Time: metav1.NewMicroTime(noon.Add(-time.Hour + 1234*time.Millisecond))},
		},
	}
	joining := &v1alpha1.Machine{ObjectMeta: madeBefore(secondMachine, 3*time.Second)}
	joining.Spec = v1alpha1.MachineSpec{ClusterName: "default", NodeGroup: "default", Provider: v1alpha1.ProviderSimulated}
	joining.Status.Phase = v1alpha1.MachineJoining
	joining.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(noon)}}

	node := &corev1.Node{ObjectMeta: madeBefore(firstNode, 58*time.Minute)}
	node.Labels = map[string]string{v1alpha1.LabelNodeGroup: "default"}
	node.Spec.ProviderID = "muster:///" + firstMachine
	node.Spec.Unschedulable = true
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 12", KernelVersion: "6.1.0", ContainerRuntimeVersion: "containerd://2.4.2"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.64.11"}}

	week := int32(7 * 24 * 3600)
	approved := &certificatesv1.CertificateSigningRequest{ObjectMeta: madeBefore("csr-8x2vq", 58*time.Minute)}
	approved.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:abcdef", ExpirationSeconds: &week,
	}
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved"}}
	approved.Status.Certificate = []byte("-----BEGIN")
	pending := &certificatesv1.CertificateSigningRequest{ObjectMeta: madeBefore("csr-p9kzt", time.Second)}
	pending.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Username: "evil\x1b[31m\nnode"}
	return []client.Object{cluster, group, ready, joining, node, approved, pending}
}

// bench is a command line with fake planes behind it.
type bench struct {
	o        *options
	planes   planes
	client   client.WithWatch
	out, err bytes.Buffer

	bindings []rbacv1.ClusterRoleBinding
	unseen   error // what becomes of reading them
}

func newBench(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(newMapper()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.NodeGroup{}).WithInterceptorFuncs(funcs).WithIndex(&corev1.Secret{}, "type", secretType).Build()
	b.o = &options{streams: streams{in: strings.NewReader(""), out: &b.out, err: &b.err}, stateDir: t.TempDir()}
	if err := os.Chmod(b.o.stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	answer := func(*options) (*plane, error) {
		return &plane{WithWatch: b.client, name: "the management plane", address: "127.0.0.1:1"}, nil
	}
	b.planes = planes{management: answer, cluster: answer}
	return b
}

// secretType is the field that API servers let Secrets be selected by.
func secretType(o client.Object) []string {
	if s, ok := o.(*corev1.Secret); ok {
		return []string{string(s.Type)}
	}
	return nil
}

func (b *bench) run(ctx context.Context, cmd *cobra.Command, args ...string) error {
	b.out.Reset()
	b.err.Reset()
	cmd.SetArgs(args)
	cmd.SetOut(&b.out)
	cmd.SetErr(&b.err)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

func (b *bench) get() *cobra.Command {
	return (&getCommand{options: b.o, planes: b.planes, now: func() time.Time { return noon }}).command()
}

func (b *bench) create() *cobra.Command {
	return (&createCommand{options: b.o, planes: b.planes, interval: time.Millisecond}).command()
}

func (b *bench) scale() *cobra.Command {
	return (&scaleCommand{options: b.o, planes: b.planes, interval: time.Millisecond}).command()
}

func (b *bench) delete(k kind) *cobra.Command {
	d := &deleteCommand{options: b.o, planes: b.planes, kind: k, interval: time.Millisecond}
	if k.singular == machines().singular {
		return d.machines()
	}
	return d.nodeGroups()
}

// wantErr checks an error's text, and that it is one of usage if it is to be.
func wantErr(t *testing.T, err error, want string, usage bool) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
	var u usageError
	if errors.As(err, &u) != usage {
		t.Fatalf("error %v: usage error is %v, want %v", err, !usage, usage)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatalf("%s (-want +got; -update accepts):\n%s", path, diff)
	}
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
		"machine-by-node.json":  {"machine", firstNode, "-o", "json"},
		"machine-by-ip.txt":     {"machine", "192.168.64.11"},
		"machines-named.yaml":   {"machines", secondMachine, firstMachine, "-o", "yaml"},
		"machines-names.txt":    {"machine/" + secondMachine, "machine/" + firstMachine, "-o", "name"},
		"nodes.txt":             {"nodes"},
		"nodes-wide.txt":        {"no", "-o", "wide"},
		"node-by-machine.yaml":  {"node", firstMachine, "-o", "yaml"},
		"csr.txt":               {"csr"},
		"csr-names.txt":         {"certificatesigningrequests", "-o", "name"},
		"nodegroups.json":       {"nodegroups", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, interceptor.Funcs{}, world()...)
			if err := b.run(t.Context(), b.get(), args...); err != nil {
				t.Fatal(err)
			}
			golden(t, "get-"+name, b.out.String())
			if b.err.Len() > 0 {
				t.Fatalf("standard error: %s", &b.err)
			}
		})
	}
}

func TestNoManagedFields(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	group := &v1alpha1.NodeGroup{ObjectMeta: madeBefore("x", 0)}
	group.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "muster"}}
	content, err := toMap(group, scheme)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := content["metadata"].(map[string]any)["managedFields"]; there || content["kind"] != "NodeGroup" {
		t.Fatalf("printed %v", content)
	}
}

func TestGetNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{})
	if err := b.run(t.Context(), b.get(), "machines"); err != nil {
		t.Fatal(err)
	}
	if b.out.Len() > 0 || b.err.String() != "No resources found.\n" {
		t.Fatalf("printed %q and %q", &b.out, &b.err)
	}
	if err := b.run(t.Context(), b.get(), "machines", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
	if b.out.String() != want || b.err.Len() > 0 {
		t.Fatalf("printed %q and %q", &b.out, &b.err)
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
		{[]string{"machine", "ip-192"}, `did you mean "` + firstNode + `"?`, false},
		{[]string{"ng", "defualt"}, `nodegroup "defualt" not found; did you mean "default"?`, false},
		{[]string{"machines", "-o", "xml"}, `unknown output format "xml"; there are: table, wide, json, yaml, name`, true},
		{[]string{"machines", "-l", "a b"}, "reading --selector", true},
		{[]string{"machines", firstMachine, "-l", "a=b"}, "not both", true},
		{[]string{"machine/" + firstMachine, "node/x"}, "not of the form KIND/NAME", false}, // root makes these errors of usage
		{[]string{"foo"}, `unknown kind "foo"; there are:`, false},                          // not "no"
		{[]string{"machnies"}, `unknown kind "machnies"; did you mean "machines"?; there are: clusters, nodegroups, machines, nodes, csr`, false},
		{nil, "name a kind: clusters, nodegroups, machines, nodes, csr", false},
	} {
		b := newBench(t, interceptor.Funcs{}, world()...)
		if test.args == nil {
			test.args = []string{}
		}
		wantErr(t, b.run(t.Context(), b.get(), test.args...), test.want, test.usage)
		if b.out.Len() > 0 {
			t.Fatalf("%v printed %s", test.args, &b.out)
		}
	}
}

// What is there is printed although something else is missing, as kubectl does.
func TestGetSomeMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, world()...)
	wantErr(t, b.run(t.Context(), b.get(), "machine", firstMachine, "nobody", "-o", "name"), `"nobody" not found`, false)
	if b.out.String() != "machine.muster.dev/"+firstMachine+"\n" {
		t.Fatalf("printed %s", &b.out)
	}
}

func TestGetFromWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: syscall.ECONNREFUSED}
	b := newBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused }})
	wantErr(t, b.run(t.Context(), b.get(), "machines"), "the management plane is not running (nothing answers at 127.0.0.1:1): `muster up` starts it", false)
	slow := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: context.DeadlineExceeded}
	b = newBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return slow }})
	wantErr(t, b.run(t.Context(), b.get(), "machines"), "the management plane does not answer (at 127.0.0.1:1): `muster status` shows how it is", false)
	b.planes = realPlanes()
	wantErr(t, b.run(t.Context(), b.get(), "machines"), "muster up", false)
}

func TestGetWatch(t *testing.T) {
	t.Parallel()
	watched := make(chan struct{}, 10)
	b := newBench(t, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (w watch.Interface, err error) {
			w, err = c.Watch(ctx, list, opts...)
			watched <- struct{}{}
			return w, err
		},
	}, world()...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lines := make(lineWriter, 10)
	b.o.out = lines
	done := make(chan error, 1)
	go func() { done <- b.run(ctx, b.get(), "nodegroups", "-w", "-o", "name") }()
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
	if err := b.client.Create(ctx, another); err != nil {
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
