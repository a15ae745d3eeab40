// SPDX-License-Identifier: Apache-2.0

package nodeports

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

func service(name string, check int32, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{HealthCheckNodePort: check}}
	for i, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint(i), NodePort: port})
	}
	return s
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	var many []client.Object
	for i := range 12 {
		many = append(many, service(fmt.Sprintf("s%02d", i), 0, 31000))
	}
	for name, c := range map[string]struct {
		services []client.Object
		says     string
	}{
		"none":              {nil, ""},
		"no node ports":     {[]client.Object{service("a", 0, 0)}, ""},
		"both ends":         {[]client.Object{service("a", 0, 20000, 25000)}, ""},
		"below and above":   {[]client.Object{service("b", 0, 25001, 19999), service("a", 0, 30080)}, "outside of 20000-25000: default/a (30080), default/b (19999, 25001). Give"},
		"of health checks":  {[]client.Object{service("a", 30100, 20001)}, "default/a (30100)"},
		"of two protocols":  {[]client.Object{service("a", 0, 30053, 30053)}, "default/a (30053)"},
		"more than it says": {many, "default/s09 (31000), and 2 more. Give"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			says, err := Refusal(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.services...).Build(), v1alpha1.NodePortRange{MinPort: 20000, MaxPort: 25000})
			if err != nil || (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
				t.Errorf("%q, %v, want %q", says, err, c.says)
			}
		})
	}
}

func TestRefusalOfAClusterThatIsAway(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return away },
	}).Build()
	if says, err := Refusal(t.Context(), api, v1alpha1.NodePortRange{}); !errors.Is(err, away) || says != "" {
		t.Errorf("%q, %v", says, err)
	}
}

func TestRangeOf(t *testing.T) {
	t.Parallel()
	var spec v1alpha1.ClusterSpec
	if got := RangeOf(spec); got != (v1alpha1.NodePortRange{MinPort: 30000, MaxPort: 32767}) {
		t.Errorf("%+v", got)
	}
	spec.APIServer.ServiceNodePortRange = &v1alpha1.NodePortRange{MinPort: 20000, MaxPort: 20001}
	if got := RangeOf(spec); got != (v1alpha1.NodePortRange{MinPort: 20000, MaxPort: 20001}) {
		t.Errorf("%+v", got)
	}
}
