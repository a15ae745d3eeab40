// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestServiceAddresses(t *testing.T) {
	service := func(addresses ...string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
		s.Spec.ClusterIPs = addresses
		if len(addresses) > 0 {
			s.Spec.ClusterIP = addresses[0]
		}
		return s
	}
	cidr := func(name string, ranges ...string) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
	}
	none := apierrors.NewNotFound(networkingv1.Resource("servicecidrs"), "")
	for _, tc := range []struct {
		name    string
		objects []runtime.Object
		fails   error // reading ServiceCIDRs
		want    string
	}{
		{"one range", []runtime.Object{service("10.96.0.1"), cidr("kubernetes", "10.96.0.0/12")}, nil, "[10.96.0.1/32 10.96.0.0/12]"},
		{
			"two families and a range more",
			[]runtime.Object{service("10.96.0.1", "fd00::1"), cidr("a", "10.96.0.1/12", "fd00::/112"), cidr("b", "10.8.0.0/16")},
			nil,
			"[10.96.0.1/32 fd00::1/128 10.96.0.0/12 fd00::/112 10.8.0.0/16]",
		},
		{"an older API server", []runtime.Object{service("10.96.0.1")}, none, "[10.96.0.1/32]"},
		{"a Service of one address only", []runtime.Object{func() *corev1.Service { s := service("10.96.0.1"); s.Spec.ClusterIPs = nil; return s }()}, none, "[10.96.0.1/32]"},
		{"no Service", []runtime.Object{cidr("a", "10.96.0.0/12")}, nil, "reading the Service default/kubernetes"},
		{"a Service without an address", []runtime.Object{service()}, nil, `has the address ""`},
		{"a range that is none", []runtime.Object{service("10.96.0.1"), cidr("a", "many")}, nil, `the ServiceCIDR a has the range "many"`},
		{"ranges that may not be read", []runtime.Object{service("10.96.0.1")}, errors.New("forbidden"), "reading ServiceCIDRs: forbidden"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			if tc.fails != nil {
				client.PrependReactor("list", "servicecidrs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fails })
			}
			got, err := ServiceAddresses(t.Context(), client)
			text := fmt.Sprint(got)
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tc.want) || (err != nil) == strings.HasPrefix(tc.want, "[") {
				t.Errorf("%s\nwant %s", text, tc.want)
			}
		})
	}
}
