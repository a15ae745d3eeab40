// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

// An API server that has just started forbids what it allows as soon as it has read its rules.
func TestForbiddenIsFinalForWritesAlone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	wanted := Default(1, v1alpha1.ProviderSimulated)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "muster.dev", Resource: "clusters"}, "muster", errors.New(`User "muster:administrator" cannot do that`))
	there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(wanted.Cluster.DeepCopy()).Build()
	for name, test := range map[string]struct {
		funcs interceptor.Funcs
		final bool
	}{
		"reading": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		}}, false},
		"writing": {interceptor.Funcs{
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return forbidden },
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
		}, true},
	} {
		api := interceptor.NewClient(there, test.funcs)
		changed := wanted.Cluster.DeepCopy()
		changed.Spec.Version = "another"
		_, ofCluster := ApplyCluster(t.Context(), api, changed)
		_, ofGroup := wanted.ApplyNodeGroup(t.Context(), api, wanted.NodeGroups[0])
		for what, err := range map[string]error{"cluster": ofCluster, "node group": ofGroup} {
			if err == nil || err.Error() != forbidden.Error() || Final(err) != test.final {
				t.Errorf("%s the %s: final is %v: %v", name, what, Final(err), err)
			}
		}
	}
}
