// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// An API server that has just started forbids what it allows as soon as it has read its rules.
func TestForbiddenIsFinalForWritesAlone(t *testing.T) {
	wanted := clusterconfig.Default(1, v1alpha1.ProviderSimulated)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "muster.dev", Resource: "clusters"}, "muster", errors.New(`User "muster:administrator" cannot do that`))
	there := fakeClient(t, wanted.Cluster.DeepCopy())
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
		_, ofCluster := applyCluster(t.Context(), api, changed)
		_, ofGroup := applyNodeGroup(t.Context(), api, wanted, wanted.NodeGroups[0])
		for what, err := range map[string]error{"cluster": ofCluster, "node group": ofGroup} {
			if err == nil || err.Error() != forbidden.Error() || invalid(err) != test.final {
				t.Errorf("%s the %s: final is %v: %v", name, what, invalid(err), err)
			}
		}
	}
}
