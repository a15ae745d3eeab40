// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var made = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// service is one as the API server makes it, with a port of nodes for each port.
func service(kind corev1.ServiceType, ports ...int32) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1a0f60-6e4b-4a3f-9c3e-0d1d1a0e1b2c", CreationTimestamp: metav1.NewTime(made)},
		Spec:       corev1.ServiceSpec{Type: kind},
	}
	for _, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: port})
	}
	return s
}

func TestDecide(t *testing.T) {
	foreign := func(ports ...int32) *corev1.Service {
		s := service(corev1.ServiceTypeLoadBalancer, ports...)
		s.Spec.LoadBalancerClass = new("example.com/other")
		return s
	}
	given, going, many := foreign(30080), service(corev1.ServiceTypeNodePort, 30080), service(corev1.ServiceTypeNodePort)
	given.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "a.example.com"}}
	going.DeletionTimestamp = new(metav1.NewTime(made))
	for n := range int32(100) {
		many.Spec.Ports = append(many.Spec.Ports, corev1.ServicePort{Port: n + 1, Protocol: corev1.ProtocolUDP, NodePort: 30000 + n})
	}
	const (
		reached = "a Service of type LoadBalancer is reached from the host, too; "
		pending = "Warning NoLoadBalancer it has no address from a load balancer: its class example.com/other is not one of Muster's, which are none, service.k8s.aws/nlb and eks.amazonaws.com/nlb, and nothing else has taken it"
	)
	const forward = "from the host use `kubectl -n shop port-forward service/web LOCAL:PORT`"
	for name, c := range map[string]struct {
		service *corev1.Service
		age     time.Duration
		want    string
		again   time.Duration
	}{
		"of the cluster":   {service(corev1.ServiceTypeClusterIP, 0), time.Hour, "", 0},
		"another name":     {service(corev1.ServiceTypeExternalName), time.Hour, "", 0},
		"port":             {service(corev1.ServiceTypeNodePort, 30080), 0, "Normal OnlyInVPC it answers at every node's address, on port 30080/TCP, which only pods and machines of the VPC reach; " + reached + forward, repeat},
		"two ports":        {service(corev1.ServiceTypeNodePort, 30080, 30443), 0, "Normal OnlyInVPC it answers at every node's address, on ports 30080/TCP, 30443/TCP, which only pods and machines of the VPC reach; " + reached + forward, repeat},
		"many ports":       {many, 0, "Normal OnlyInVPC it answers at every node's address, on ports 30000/UDP, 30001/UDP, 30002/UDP, 30003/UDP, 30004/UDP, 30005/UDP, 30006/UDP, 30007/UDP, and 92 more, which only pods and machines of the VPC reach; " + reached + forward, repeat},
		"no ports yet":     {service(corev1.ServiceTypeNodePort, 0), 0, "", 0},
		"deleted":          {going, time.Hour, "", 0},
		"balanced":         {given, time.Hour, "", 0},
		"ours":             {service(corev1.ServiceTypeLoadBalancer, 30080), time.Hour, "", 0},
		"just made":        {foreign(30080), 4 * time.Second, "", 6 * time.Second},
		"made in future":   {foreign(30080), -time.Hour, "", patience},
		"pending":          {foreign(30080), patience, pending + "; inside the VPC it answers at every node's address, on port 30080/TCP; " + forward, repeat},
		"without the port": {foreign(0), time.Hour, pending + "; " + forward, repeat},
	} {
		said, again := decide(c.service, "", made.Add(c.age))
		got := ""
		if said != nil {
			got = said.kind + " " + said.reason + " " + said.message
		}
		if got != c.want || again != c.again {
			t.Errorf("%s: %q, again in %s; want %q in %s", name, got, again, c.want, c.again)
		}
		if len(got) > 1024 { // validation of events.k8s.io, by which they are shown
			t.Errorf("%s: a message of %d bytes", name, len(got))
		}
	}
}

// Where there are no load balancers at all, a Service that would have one says why.
func TestDecideWithoutLoadBalancers(t *testing.T) {
	s := service(corev1.ServiceTypeLoadBalancer, 30080)
	if said, again := decide(s, "machines are simulated", made); said != nil || again != patience {
		t.Errorf("at once: %v, again in %s", said, again)
	}
	want := &notice{corev1.EventTypeWarning, reasonNoLoadBalancer, "it has no address from a load balancer: machines are simulated"}
	if said, again := decide(s, "machines are simulated", made.Add(patience)); said == nil || *said != *want || again != repeat {
		t.Errorf("later: %v, again in %s", said, again)
	}
}

// An Event is written once, however often the Service is looked at and whoever does it, and again when the API server
// has dropped it.
func TestReconcile(t *testing.T) {
	now := made
	var failure error
	plane := fake.NewClientBuilder().WithObjects(service(corev1.ServiceTypeNodePort, 30080)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if failure != nil {
				return failure
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	look := func() error {
		t.Helper()
		r := &reconciler{cluster: plane, now: func() time.Time { return now }} // as after a restart, which remembers nothing
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		return err
	}
	events := func() []corev1.Event {
		t.Helper()
		list := &corev1.EventList{}
		if err := plane.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	for range 3 {
		if err := look(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	all := events()
	if len(all) != 1 {
		t.Fatalf("%d Events: %v", len(all), all)
	}
	e := all[0]
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web", UID: "6d1a0f60-6e4b-4a3f-9c3e-0d1d1a0e1b2c", ResourceVersion: "999"}
	if diff := cmp.Diff(want, e.InvolvedObject); diff != "" || e.Namespace != "shop" || !strings.HasPrefix(e.Name, "web.") || !e.FirstTimestamp.Equal(new(metav1.NewTime(made))) || e.Count != 1 {
		t.Errorf("Event %+v\n%s", e, diff)
	}
	if err := plane.Delete(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	failure = errors.New("etcd is slow")
	if err := look(); err == nil {
		t.Error("a failure is not tried again")
	}
	failure = &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
	}}
	if err := look(); err != nil {
		t.Errorf("in a namespace that is on its way out: %v", err)
	}
	failure = nil
	if err := look(); err != nil || len(events()) != 1 || events()[0].Name != e.Name {
		t.Errorf("after the Event was dropped: %v, %v", err, events())
	}
	key.Name = "gone"
	if err := look(); err != nil {
		t.Errorf("a Service that is gone: %v", err)
	}
}
