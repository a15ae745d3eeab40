// SPDX-License-Identifier: Apache-2.0

package balancerplan

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/loadbalancer"
)

// byValue compares addresses by their values.
var byValue = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// web is a Service as the API server makes it.
func web(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1a0f60-6e4b-4a3f-9c3e-0d1d1a0e1b2c", Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, SessionAffinity: corev1.ServiceAffinityNone, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations["service.beta.kubernetes.io/"+pairs[i]] = pairs[i+1]
		}
	}
}

// endpoint is one in a slice; its state is of "ready", "serving" and "terminating", those that are true.
func endpoint(address, state string) discoveryv1.Endpoint {
	is := func(what string) *bool { return new(strings.Contains(state, what)) }
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: is("ready"), Serving: is("serving"), Terminating: is("terminating")}}
}

func slice(endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
}

func node(name, address string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address},
	}}}
	for _, f := range change {
		f(&n)
	}
	return n
}

func at(address string, draining ...bool) loadbalancer.Target {
	return loadbalancer.Target{Address: netip.MustParseAddrPort(address), Draining: len(draining) > 0}
}

// one is the only listener of a decision with targets.
func one(targets ...loadbalancer.Target) []loadbalancer.Listener {
	return []loadbalancer.Listener{{Protocol: loadbalancer.TCP, Port: 80, Check: loadbalancer.Check{Protocol: loadbalancer.CheckTCP}, Targets: targets}}
}

func TestWhoseServicesAreServed(t *testing.T) {
	classed := func(class string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class }
	}
	kind := func(kind corev1.ServiceType) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.Type = kind }
	}
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		want   Verdict
	}{
		"of no class":     {func(*corev1.Service) {}, Serve},
		"EKS Auto Mode":   {classed("eks.amazonaws.com/nlb"), Serve},
		"AWS controller":  {classed("service.k8s.aws/nlb"), Serve},
		"another's class": {classed("example.com/nlb"), Release},
		"of the cluster":  {kind(corev1.ServiceTypeClusterIP), Release},
		"node port":       {kind(corev1.ServiceTypeNodePort), Release},
		"being deleted":   {func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }, Release},
		"refused":         {annotated("aws-load-balancer-ssl-cert", "arn:aws:acm:x"), Refuse},
	} {
		if got := Decide(web(c.change), nil, nil); got.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

func TestPodsAsTargets(t *testing.T) {
	other := slice(endpoint("10.244.9.9", "ready serving"))
	other.Ports[0].Name = new("metrics")
	six := slice(endpoint("fd00::1", "ready serving"))
	six.AddressType = discoveryv1.AddressTypeIPv6
	unknown := slice(discoveryv1.Endpoint{Addresses: []string{"10.244.1.7"}})
	for name, c := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   []loadbalancer.Target
	}{
		"none":                      {nil, nil},
		"ready":                     {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.2.1", "ready serving"), endpoint("10.244.1.2", "ready serving"))}, []loadbalancer.Target{at("10.244.1.2:8080"), at("10.244.2.1:8080")}},
		"conditions that are unset": {[]discoveryv1.EndpointSlice{unknown}, []loadbalancer.Target{at("10.244.1.7:8080")}},
		"not ready":                 {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", ""))}, nil},
		"serving, but not ready":    {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "serving"))}, nil},
		"terminating and serving":   {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "serving terminating"))}, []loadbalancer.Target{at("10.244.1.2:8080", true)}},
		"terminating and over":      {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "terminating"))}, nil},
		"always said to be ready":   {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "ready serving terminating"))}, []loadbalancer.Target{at("10.244.1.2:8080", true)}},
		"in two slices":             {[]discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "serving terminating")), slice(endpoint("10.244.1.2", "ready serving"))}, []loadbalancer.Target{at("10.244.1.2:8080")}},
		"another port":              {[]discoveryv1.EndpointSlice{other}, nil},
		"IPv6":                      {[]discoveryv1.EndpointSlice{six}, nil},
		"not an address":            {[]discoveryv1.EndpointSlice{slice(endpoint("web.example.com", "ready serving"), endpoint("::ffff:10.0.0.1", "ready serving"))}, nil},
	} {
		got := Decide(web(), c.slices, nil)
		if diff := cmp.Diff(one(c.want...)[0].Targets, append([]loadbalancer.Target(nil), got.Spec.Listeners[0].Targets...), byValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		ready := false
		for _, target := range c.want {
			ready = ready || !target.Draining
		}
		if said := len(got.Notices) == 1 && got.Notices[0].Reason == ReasonNoReadyTarget; said == ready {
			t.Errorf("%s: notices %+v", name, got.Notices)
		}
	}
}

func TestNodesAsTargets(t *testing.T) {
	instance := annotated("aws-load-balancer-target-type", "instance")
	local := func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 31234
	}
	nodes := []corev1.Node{
		node("b", "172.31.0.6"),
		node("a", "172.31.0.5", func(n *corev1.Node) { n.Spec.Unschedulable = true }), // its pods run on
		node("excluded", "172.31.0.7", func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }),
		node("shifted", "172.31.0.10", func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationZonalShift: v1alpha1.NodeCordonedByShift}
		}),
		node("going", "172.31.0.8", func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }),
		node("drained", "172.31.0.9", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: taintToBeDeleted}} }),
		node("nowhere", "fd00::1"),
	}
	want := []loadbalancer.Target{at("172.31.0.5:30080"), at("172.31.0.6:30080"), at("172.31.0.8:30080", true), at("172.31.0.9:30080", true)}
	got := Decide(web(instance), []discoveryv1.EndpointSlice{slice(endpoint("10.244.1.2", "ready serving"))}, nodes)
	if diff := cmp.Diff(one(want...), got.Spec.Listeners, byValue); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = Decide(web(instance, local), nil, nodes)
	if diff := cmp.Diff(loadbalancer.Check{Protocol: loadbalancer.CheckHTTP, Port: 31234, Path: "/healthz"}, got.Spec.Listeners[0].Check); diff != "" {
		t.Errorf("with externalTrafficPolicy Local (-want +got):\n%s", diff)
	}
	got = Decide(web(local), nil, nodes)
	if diff := cmp.Diff(loadbalancer.Check{Protocol: loadbalancer.CheckTCP}, got.Spec.Listeners[0].Check); diff != "" {
		t.Errorf("pods are asked themselves (-want +got):\n%s", diff)
	}
}

func TestListeners(t *testing.T) {
	got := Decide(web(func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{
			{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}, {Name: "http", Protocol: corev1.ProtocolTCP, Port: 53}, {Name: "z", Protocol: corev1.ProtocolTCP, Port: 8},
		}
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}), nil, nil)
	want := loadbalancer.Spec{IdleSeconds: 3600, AffinitySeconds: 10800, Listeners: []loadbalancer.Listener{
		{Protocol: loadbalancer.TCP, Port: 8, Check: loadbalancer.Check{Protocol: loadbalancer.CheckTCP}},
		{Protocol: loadbalancer.TCP, Port: 53, Check: loadbalancer.Check{Protocol: loadbalancer.CheckTCP}},
		{Protocol: loadbalancer.UDP, Port: 53},
	}}
	for i := range got.Spec.Listeners {
		got.Spec.Listeners[i].Targets = nil
	}
	if diff := cmp.Diff(want, got.Spec, byValue); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "no pod is ready behind port 8/TCP, port 53/TCP, port 53/UDP: connections are refused until one is"; len(got.Notices) != 1 || got.Notices[0].Message != want {
		t.Errorf("notices %+v", got.Notices)
	}
}
