// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/policyconfig"
)

// ruled is what rules makes of a policy file in a cluster, and what it asked the API server.
func ruled(t *testing.T, file string, answer clienttesting.ReactionFunc, objects ...runtime.Object) (reserved, asked []string, err error) {
	t.Helper()
	parsed, err := policyconfig.Read([]byte("apiVersion: " + policyconfig.APIVersion + "\nkind: " + policyconfig.Kind + "\nmode: approve-only\n" + file))
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(objects...)
	if answer != nil {
		client.PrependReactor("*", "*", answer)
	}
	a := &assembled{config: Config{Policy: parsed, Logger: slog.New(slog.DiscardHandler)}, client: client}
	p, err := a.rules(t.Context())
	for _, prefix := range p.ReservedAddresses {
		reserved = append(reserved, prefix.String())
	}
	for _, action := range client.Actions() {
		asked = append(asked, action.GetVerb()+" "+action.GetResource().Resource)
	}
	return reserved, asked, err
}

// Nobody gets a certificate for the address of a Service or of the API server because a line was forgotten.
func TestAddressesOfServicesAreReserved(t *testing.T) {
	t.Parallel()
	service := func(addresses ...string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
			Spec:       corev1.ServiceSpec{ClusterIP: addresses[0], ClusterIPs: addresses},
		}
	}
	ranges := func(name string, cidrs ...string) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	}
	failing := func(resource string, err error) clienttesting.ReactionFunc {
		return func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetResource().Resource == resource, nil, err
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "kubernetes", errors.New("no"))
	const (
		serving = "signers: [{name: kubernetes.io/kubelet-serving}]\n"
		client  = "signers: [{name: kubernetes.io/kube-apiserver-client-kubelet}]\n"
		both    = "signers: [{name: kubernetes.io/kube-apiserver-client-kubelet}, {name: kubernetes.io/kubelet-serving}]\n"
		sources = "inventory: {sources: [{static: {file: /machines.yaml}}]}\n"
	)
	for _, tc := range []struct {
		name    string
		file    string
		answer  clienttesting.ReactionFunc
		objects []runtime.Object
		want    []string
		asks    bool
		wantErr string
	}{
		{
			name: "the file says it", file: serving + "policy: {reserved: {addresses: [10.0.0.0/16, 192.0.2.10]}}\n",
			answer: failing("services", forbidden), want: []string{"10.0.0.0/16", "192.0.2.10/32"},
		},
		{name: "no signer has names", file: client, answer: failing("services", forbidden)},
		{
			name: "the cluster says it", file: serving, objects: []runtime.Object{service("10.96.0.1"), ranges("kubernetes", "10.96.0.0/12")},
			want: []string{"10.96.0.0/12", "10.96.0.1/32"}, asks: true,
		},
		{
			name: "one signer of two has names", file: both, objects: []runtime.Object{service("10.96.0.1"), ranges("kubernetes", "10.96.0.0/12")},
			want: []string{"10.96.0.0/12", "10.96.0.1/32"}, asks: true,
		},
		{
			name: "two families and two ranges", file: serving,
			objects: []runtime.Object{service("10.96.0.1", "fd00::1"), ranges("kubernetes", "10.96.0.0/12", "fd00::/108"), ranges("more", "10.200.7.9/16")},
			want:    []string{"10.200.0.0/16", "10.96.0.0/12", "10.96.0.1/32", "fd00::/108", "fd00::1/128"}, asks: true,
		},
		{
			name: "an API server without ServiceCIDRs", file: serving, objects: []runtime.Object{service("10.96.0.1")},
			answer: failing("servicecidrs", apierrors.NewNotFound(schema.GroupResource{Resource: "servicecidrs"}, "")), want: []string{"10.96.0.1/32"}, asks: true,
		},
		{name: "the Service may not be read", file: serving, answer: failing("services", forbidden), asks: true, wantErr: "forbidden"},
		{
			name: "the ranges may not be read", file: serving, objects: []runtime.Object{service("10.96.0.1")},
			answer: failing("servicecidrs", forbidden), asks: true, wantErr: "reading ServiceCIDRs",
		},
		{name: "the Service has no address", file: serving, objects: []runtime.Object{service("None")}, asks: true, wantErr: `"None"`},
		{
			name: "a range is none", file: serving, objects: []runtime.Object{service("10.96.0.1"), ranges("odd", "10.96.0.0")},
			asks: true, wantErr: `the ServiceCIDR odd has the range "10.96.0.0"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			reserved, asked, err := ruled(t, tc.file+sources, tc.answer, tc.objects...)
			if tc.asks != (len(asked) > 0) {
				t.Errorf("it asked %q", asked)
			}
			if tc.wantErr != "" {
				// It says which field is empty, what to write there, and why it cannot do without.
				for _, part := range []string{"policy.reserved.addresses is empty", "such as 10.96.0.0/12", tc.wantErr} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%v does not say %q", err, part)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(reserved)
			if reserved = slices.Compact(reserved); !slices.Equal(reserved, tc.want) {
				t.Errorf("reserved are %q, not %q", reserved, tc.want)
			}
		})
	}
}
