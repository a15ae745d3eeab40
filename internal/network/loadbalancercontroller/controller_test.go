// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/internal/network/balancer"
	"muster.dev/muster/internal/network/loadbalancer"
)

// memory keeps load balancers, and the process that serves them is as the test says.
type memory struct {
	all     []loadbalancer.Balancer
	full    error
	address string // on the host
	err     error
	away    bool
	behind  bool                                              // the process has not read the file yet
	place   func(port uint16, host bool) balancer.PlaceStatus // of each port; open if nil
	ill     string
}

func (m *memory) List() ([]loadbalancer.Balancer, error) { return slices.Clone(m.all), m.err }

func (m *memory) Ensure(of loadbalancer.Service, spec loadbalancer.Spec) (loadbalancer.Balancer, error) {
	if m.err != nil {
		return loadbalancer.Balancer{}, m.err
	}
	for i := range m.all {
		if m.all[i].UID == of.UID {
			m.all[i].Spec = spec
			return m.all[i], nil
		}
	}
	if m.full != nil {
		return loadbalancer.Balancer{}, m.full
	}
	m.all = append(m.all, loadbalancer.Balancer{
		Cluster: "muster", Namespace: of.Namespace, Service: of.Name, UID: of.UID, DNSName: of.Name + ".elb", Address: netip.MustParseAddr("172.31.0.9"),
		HostAddress: m.hostAddress(), Spec: spec,
	})
	return m.all[len(m.all)-1], nil
}

func (m *memory) hostAddress() netip.Addr {
	if m.address == "" {
		return netip.MustParseAddr("127.130.1.2")
	}
	return netip.MustParseAddr(m.address)
}

func (m *memory) Release(_ context.Context, match func(loadbalancer.Balancer) bool) error {
	m.all = slices.DeleteFunc(m.all, match)
	return m.err
}

func (m *memory) Status(context.Context) (balancer.Status, error) {
	if m.away {
		return balancer.Status{}, errors.New("connection refused")
	}
	var status balancer.Status
	for _, b := range m.all {
		one := balancer.ServiceStatus{Cluster: b.Cluster, Namespace: b.Namespace, Service: b.Service, UID: b.UID}
		for _, l := range b.Listeners {
			if m.behind {
				break
			}
			s := balancer.ListenerStatus{Protocol: l.Protocol, Port: l.Port, VPC: m.at(l.Port, false)}
			if !b.Internal {
				s.Host = m.at(l.Port, true)
			}
			for _, t := range l.Targets {
				ts := balancer.TargetStatus{Address: t.Address, State: balancer.Healthy}
				if m.ill != "" {
					ts.State, ts.Reason = balancer.Unhealthy, m.ill
				}
				s.Targets = append(s.Targets, ts)
			}
			one.Listeners = append(one.Listeners, s)
		}
		status.Balancers = append(status.Balancers, one)
	}
	return status, nil
}

func (m *memory) at(port uint16, host bool) balancer.PlaceStatus {
	if m.place == nil {
		return balancer.PlaceStatus{Open: true}
	}
	return m.place(port, host)
}

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// world is a cluster with the Service shop/web, one pod behind it, and the reconciler.
type world struct {
	t        *testing.T
	cluster  client.Client
	failing  error // of every update
	balances *memory
	r        *reconciler
}

func newWorld(t *testing.T, change ...func(*corev1.Service)) *world {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "one", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}, {Protocol: corev1.ProtocolTCP, Port: 443}}},
	}
	for _, f := range change {
		f(service)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.5"}}},
	}
	w := &world{t: t, balances: &memory{}}
	w.cluster = fake.NewClientBuilder().WithObjects(service, slice).WithStatusSubresource(&corev1.Service{}).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if w.failing != nil {
				return w.failing
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
	w.again()
	return w
}

// again is what a restart of the service makes: it remembers nothing.
func (w *world) again() {
	w.r = &reconciler{cluster: w.cluster, balancers: w.balances, events: newEvents(w.cluster, func() time.Time { return now }), now: func() time.Time { return now }}
}

func (w *world) look() (reconcile.Result, error) {
	return w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}})
}

func (w *world) mustLook() reconcile.Result {
	w.t.Helper()
	result, err := w.look()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) service() *corev1.Service {
	w.t.Helper()
	s := &corev1.Service{}
	if err := w.cluster.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// change changes the Service as somebody else would.
func (w *world) change(f func(*corev1.Service)) {
	w.t.Helper()
	s := w.service()
	f(s)
	if err := w.cluster.Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// said are the reasons of the Events.
func (w *world) said() (all []string) {
	w.t.Helper()
	list := &corev1.EventList{}
	if err := w.cluster.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		all = append(all, e.Type+" "+e.Reason+" "+e.Message)
	}
	slices.Sort(all)
	return all
}

func (w *world) expectEntry(want *corev1.LoadBalancerIngress, when string) {
	w.t.Helper()
	var entries []corev1.LoadBalancerIngress
	if want != nil {
		entries = append(entries, *want)
	}
	if diff := cmp.Diff(entries, w.service().Status.LoadBalancer.Ingress); diff != "" {
		w.t.Errorf("%s: the status (-want +got):\n%s", when, diff)
	}
}

func entry(ip string, ports ...corev1.PortStatus) *corev1.LoadBalancerIngress {
	return &corev1.LoadBalancerIngress{IP: ip, Hostname: "web.elb", IPMode: new(corev1.LoadBalancerIPModeProxy), Ports: ports}
}

// An address is published once something listens there, and not before.
func TestAnAddressIsPublishedOnceItIsServed(t *testing.T) {
	w := newWorld(t)
	w.balances.away = true
	if result := w.mustLook(); result.RequeueAfter != openingAgain || len(w.balances.all) != 1 {
		t.Errorf("while the process is away: %+v, %+v", result, w.balances.all)
	}
	w.expectEntry(nil, "while the process is away")
	w.balances.away, w.balances.behind = false, true
	if result := w.mustLook(); result.RequeueAfter != openingAgain {
		t.Errorf("while it has not read the file: %+v", result)
	}
	w.expectEntry(nil, "while it has not read the file")
	w.balances.behind = false
	if result := w.mustLook(); result.RequeueAfter != servedAgain {
		t.Errorf("once it serves: %+v", result)
	}
	w.expectEntry(entry("127.130.1.2"), "once it serves")
	if s := w.service(); !slices.Contains(s.Finalizers, finalizer) {
		t.Errorf("finalizers are %v", s.Finalizers)
	}
	want := []string{"Normal EnsuredLoadBalancer it answers at 127.130.1.2 on this host, and at web.elb in the VPC (172.31.0.9)"}
	if diff := cmp.Diff(want, w.said()); diff != "" {
		t.Error(diff)
	}
	w.again()
	w.balances.away = true
	w.mustLook()
	w.expectEntry(entry("127.130.1.2"), "while the process is started again")
	if got := w.balances.all[0].Listeners[1].Targets; len(got) != 1 || got[0].Address.String() != "10.244.0.5:8080" {
		t.Errorf("targets are %v", got)
	}
}

func TestPortsThatAreNotOpen(t *testing.T) {
	for name, c := range map[string]struct {
		place func(uint16, bool) balancer.PlaceStatus
		want  *corev1.LoadBalancerIngress
		said  string
	}{
		"one in use": {
			func(port uint16, host bool) balancer.PlaceStatus {
				if port == 80 && host {
					return balancer.PlaceStatus{Code: balancer.PortInUse, Message: "listen tcp4: address already in use"}
				}
				return balancer.PlaceStatus{Open: true}
			}, entry("127.130.1.2", corev1.PortStatus{Port: 80, Protocol: "TCP", Error: new("muster.dev/PortInUse")}, corev1.PortStatus{Port: 443, Protocol: "TCP"}),
			"Warning SyncLoadBalancerFailed port 80/TCP is not open at 127.130.1.2: another program of this host listens on port 80 at every address (0.0.0.0)",
		},
		"none permitted": {func(uint16, bool) balancer.PlaceStatus {
			return balancer.PlaceStatus{Code: balancer.PermissionDenied, Message: "permission denied"}
		}, nil, "Warning SyncLoadBalancerFailed port 80/TCP is not open at 127.130.1.2: this process may not listen on ports below 1024: give the Service another port than 80, run the service as root, or lower the sysctl net.ipv4.ip_unprivileged_port_start"},
		"not the host's": {func(_ uint16, host bool) balancer.PlaceStatus {
			return balancer.PlaceStatus{Open: !host, Message: "cannot assign requested address", Code: balancer.AddressUnavailable}
		}, nil, "Warning SyncLoadBalancerFailed port 443/TCP is not open at 127.130.1.2: this host does not have the address, and Muster does not change the host's network: give it to an interface, as by `ip address add 127.130.1.2/32 dev lo`; it is tried again every 5 s"},
		"not in the VPC": {func(_ uint16, host bool) balancer.PlaceStatus {
			return balancer.PlaceStatus{Open: host, Message: "no buffer space", Code: balancer.ListenFailed}
		}, nil, "Warning SyncLoadBalancerFailed port 80/TCP is not open at 172.31.0.9: no buffer space; it is tried again every 5 s"},
	} {
		w := newWorld(t)
		w.balances.place = c.place
		if result := w.mustLook(); result.RequeueAfter != failedAgain {
			t.Errorf("%s: %+v", name, result)
		}
		w.expectEntry(c.want, name)
		if !slices.ContainsFunc(w.said(), func(s string) bool { return strings.HasPrefix(s, c.said) }) {
			t.Errorf("%s: said %q", name, w.said())
		}
	}
}

// A refused Service listens nowhere, keeps its addresses, and is served once it is mended.
func TestRefused(t *testing.T) {
	const tls = "service.beta.kubernetes.io/aws-load-balancer-ssl-cert"
	w := newWorld(t)
	w.mustLook()
	w.change(func(s *corev1.Service) { s.Annotations = map[string]string{tls: "arn:aws:acm:x"} })
	w.mustLook()
	w.expectEntry(nil, "refused")
	if len(w.balances.all) != 1 || len(w.balances.all[0].Listeners) != 0 {
		t.Errorf("%+v", w.balances.all)
	}
	if !strings.HasPrefix(w.said()[1], "Warning LoadBalancerRefused annotation "+tls+": ") {
		t.Errorf("%q", w.said())
	}
	w.change(func(s *corev1.Service) { s.Annotations = nil })
	w.mustLook()
	w.expectEntry(entry("127.130.1.2"), "mended")

	never := newWorld(t, func(s *corev1.Service) { s.Annotations = map[string]string{tls: "x"} })
	never.mustLook()
	if len(never.balances.all) != 0 {
		t.Errorf("one that never was served has a balancer: %+v", never.balances.all)
	}
}

func TestADeletedServiceGoesAfterItsBalancer(t *testing.T) {
	w := newWorld(t)
	w.mustLook()
	if err := w.cluster.Delete(t.Context(), w.service()); err != nil {
		t.Fatal(err)
	}
	w.balances.err = errors.New("no space left on device")
	if _, err := w.look(); err == nil || w.service().DeletionTimestamp.IsZero() {
		t.Errorf("its balancer could not be removed: %v", err)
	}
	w.balances.err = nil
	w.mustLook()
	err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &corev1.Service{})
	if client.IgnoreNotFound(err) != nil || err == nil || len(w.balances.all) != 0 {
		t.Errorf("%v, %+v", err, w.balances.all)
	}
}

func TestAServiceThatIsNoBalancerAnyMore(t *testing.T) {
	w := newWorld(t)
	w.mustLook()
	w.change(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	w.mustLook()
	w.expectEntry(nil, "another type")
	if s := w.service(); len(s.Finalizers) != 0 || len(w.balances.all) != 0 {
		t.Errorf("%v, %+v", s.Finalizers, w.balances.all)
	}
}

// Another controller's Service is left as it is, its finalizer of the same name and its address, too.
func TestAnothersServiceIsLeftAlone(t *testing.T) {
	w := newWorld(t, func(s *corev1.Service) {
		s.Spec.LoadBalancerClass = new("example.com/other")
		s.Finalizers = []string{finalizer}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	})
	before := w.service()
	w.mustLook()
	if diff := cmp.Diff(before, w.service()); diff != "" || len(w.balances.all) != 0 || len(w.said()) != 0 {
		t.Errorf("%s %+v %q", diff, w.balances.all, w.said())
	}
}

// The balancer of a Service that was deleted while nobody watched is removed, whatever has its name now.
func TestLeftOvers(t *testing.T) {
	w := newWorld(t)
	w.balances.all = []loadbalancer.Balancer{
		{Cluster: "muster", Namespace: "shop", Service: "web", UID: "an earlier one"}, {Cluster: "muster", Namespace: "shop", Service: "other", UID: "other"},
	}
	w.mustLook()
	if len(w.balances.all) != 2 || w.balances.all[0].UID != "other" || w.balances.all[1].UID != "one" {
		t.Errorf("%+v", w.balances.all)
	}
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "other"}}); err != nil || len(w.balances.all) != 1 {
		t.Errorf("%+v, %v", w.balances.all, err)
	}
}

// The finalizer is there before there is anything to clean up.
func TestNothingIsMadeWithoutTheFinalizer(t *testing.T) {
	w := newWorld(t)
	w.failing = errors.New("etcd is slow")
	if _, err := w.look(); err == nil || len(w.balances.all) != 0 {
		t.Errorf("%v, %+v", err, w.balances.all)
	}
	w.failing = nil
	w.mustLook()
	w.expectEntry(entry("127.130.1.2"), "tried again")
}

func TestWhatIsTold(t *testing.T) {
	w := newWorld(t)
	w.balances.full = loadbalancer.ErrNoAddress
	w.mustLook()
	if len(w.said()) != 1 || !strings.HasPrefix(w.said()[0], "Warning SyncLoadBalancerFailed no subnet of the cluster has an address left: delete") {
		t.Errorf("%q", w.said())
	}
	w.balances.full, w.balances.ill = nil, "connection refused"
	for range 3 {
		w.again()
		w.mustLook()
	}
	want := "Warning UnhealthyTargets 10.244.0.5:8080 of port 80/TCP (connection refused), 10.244.0.5:8080 of port 443/TCP (connection refused)"
	if !slices.Contains(w.said(), want) || len(w.said()) != 3 {
		t.Errorf("%q", w.said())
	}
	w.expectEntry(entry("127.130.1.2"), "with targets that are not healthy")
}

// Pods of a Service that was just made may take a moment.
func TestNoPodYet(t *testing.T) {
	for age, want := range map[time.Duration]int{0: 1, time.Minute: 2} {
		w := newWorld(t, func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(now.Add(-age)) })
		if err := w.cluster.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		w.mustLook()
		if got := w.said(); len(got) != want {
			t.Errorf("after %s: %q", age, got)
		}
	}
}
