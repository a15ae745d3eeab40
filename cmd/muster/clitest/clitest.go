// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

// SaysBadUserData is the condition of a machine that reports user data that failed.
const SaysBadUserData = "user data failed; this machine does not become a node: the script user data, part 1 failed: exit status 4; its last lines: no disk; more: muster logs "

// Update is set by -update: golden files are rewritten instead of compared.
var Update = flag.Bool("update", false, "rewrite golden files")

// Noon is the time at which these tests take place.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Names in the objects of World.
const (
	FirstMachine  = "i-0123456789abcdef0"
	SecondMachine = "i-0fedcba9876543210"
	FirstNode     = "ip-172-31-0-5.ec2.internal"
)

// MadeBefore returns the metadata of an object that was created some time before Noon.
func MadeBefore(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(Noon.Add(-age)), Generation: 1,
	}
}

// Bench is a command line with fake planes behind it.
type Bench struct {
	O        *terminal.Options
	Planes   kinds.Dialers
	Client   client.WithWatch
	Out, Err bytes.Buffer

	Bindings []rbacv1.ClusterRoleBinding
	Unseen   error // the error of reading Bindings

	Asked terminal.Options // with which a plane was connected to last
}

// NewBench returns a command line in a new state directory, before API servers that hold objects. Requests go through
// funcs.
func NewBench(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Bench {
	t.Helper()
	scheme, err := kinds.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	// The fake client would add these to the scheme when they are first listed, while others read it.
	services := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	scheme.AddKnownTypeWithName(services, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(services.GroupVersion().WithKind("APIServiceList"), &unstructured.UnstructuredList{})
	b := &Bench{}
	b.Client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(kinds.NewMapper()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.NodeGroup{}).WithInterceptorFuncs(funcs).WithIndex(&corev1.Secret{}, "type", secretType).
		WithIndex(&corev1.Event{}, "involvedObject.name", aboutName).Build()
	b.O = &terminal.Options{Streams: terminal.Streams{In: strings.NewReader(""), Out: &b.Out, Err: &b.Err}, StateDir: t.TempDir()}
	if err := os.Chmod(b.O.StateDir, 0o700); err != nil { //nolint:gosec // it is a directory
		t.Fatal(err)
	}
	var connecting sync.Mutex // a console connects for several requests at once
	answer := func(o *terminal.Options) (*kinds.Client, error) {
		connecting.Lock()
		defer connecting.Unlock()
		b.Asked = *o
		return &kinds.Client{WithWatch: b.Client, Name: "the management plane", Address: "127.0.0.1:1"}, nil
	}
	b.Planes = kinds.Dialers{Management: answer, Cluster: answer}
	return b
}

// secretType is the field that API servers let Secrets be selected by.
func secretType(o client.Object) []string {
	if s, ok := o.(*corev1.Secret); ok {
		return []string{string(s.Type)}
	}
	return nil
}

// aboutName is the field that API servers let Events be selected by.
func aboutName(o client.Object) []string {
	if e, ok := o.(*corev1.Event); ok {
		return []string{e.InvolvedObject.Name}
	}
	return nil
}

// Run executes a command with arguments. Its output is in b.Out and b.Err, without that of the run before.
func (b *Bench) Run(ctx context.Context, cmd *cobra.Command, args ...string) error {
	b.Out.Reset()
	b.Err.Reset()
	cmd.SetArgs(args)
	cmd.SetOut(&b.Out)
	cmd.SetErr(&b.Err)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// WantErr checks an error's text, and that it is one of usage if it is to be.
func WantErr(t *testing.T, err error, want string, usage bool) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
	var u terminal.UsageError
	if errors.As(err, &u) != usage {
		t.Fatalf("error %v: usage error is %v, want %v", err, !usage, usage)
	}
}

// Golden compares got with the file of that name in testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
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
