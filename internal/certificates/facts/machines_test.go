// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
)

func TestMachinesAreListedFromTheManagementPlane(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/muster.dev/v1alpha1/machines" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"muster.dev/v1alpha1","kind":"MachineList","metadata":{"resourceVersion":"7"},
			"items":[{"metadata":{"name":"i-a"},"status":{"nodeName":"a"}}]}`))
	}))
	defer server.Close()
	source, err := Machines(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := source.List(metav1.ListOptions{}) //nolint:staticcheck // the informer uses the one with a context
	if err != nil {
		t.Fatal(err)
	}
	list, ok := got.(*v1alpha1.MachineList)
	if !ok || len(list.Items) != 1 || list.Items[0].Status.NodeName != "a" {
		t.Errorf("got %+v", got)
	}
}

func TestAddressesOfMachines(t *testing.T) {
	m := &v1alpha1.Machine{}
	m.Status.NodeName = "a.b"
	m.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.1"},
		{Type: corev1.NodeExternalIP, Address: "2001:DB8::1"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.300"},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"},
		{Type: corev1.NodeInternalIP, Address: ""},
		{Type: corev1.NodeInternalDNS, Address: "A.B."},
		{Type: corev1.NodeHostName, Address: "h"},
		{Type: "Other", Address: "o"},
	}
	want := []string{"10.0.0.1", "2001:db8::1", "a.b", "h"}
	if diff := cmp.Diff(want, namesOf(machineOf(m))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
