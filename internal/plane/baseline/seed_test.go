// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/planeclient"
)

const twoNames = `{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: Home_1}}
---
{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, spec: {name: Team_Blue, scalingConfig: {desiredSize: 1}}}
`

// The first objects are all in the namespace of the cluster, which is there before them and labelled, whoever made it.
func TestSeed(t *testing.T) {
	wanted, err := clusterconfig.Parse("muster.yaml", []byte(twoNames))
	if err != nil {
		t.Fatal(err)
	}
	slug := v1alpha1.ClusterSlug("Home_1")
	for name, before := range map[string][]client.Object{
		"nothing is there":           nil,
		"a namespace without labels": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: slug}}},
		"a namespace with labels":    {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: slug, Labels: map[string]string{"a": "b", v1alpha1.LabelCluster: "other"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			// As the API server does, refuse what is in a namespace that is not there.
			api := interceptor.NewClient(fakeClient(t, before...), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if namespace := object.GetNamespace(); namespace != "" {
						if err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}); err != nil {
							return err
						}
					}
					return c.Create(ctx, object, opts...)
				},
			})
			if err := baseline.Seed(t.Context(), api, wanted); err != nil {
				t.Fatal(err)
			}
			namespace, group := &corev1.Namespace{}, &v1alpha1.NodeGroup{}
			for key, object := range map[client.ObjectKey]client.Object{
				{Name: slug}:                  namespace,
				{Namespace: slug, Name: slug}: &v1alpha1.Cluster{},
				{Namespace: slug, Name: v1alpha1.NodeGroupSlug("Team_Blue")}: group,
			} {
				if err := api.Get(t.Context(), key, object); err != nil {
					t.Error(err)
				}
			}
			if namespace.Labels[v1alpha1.LabelCluster] != slug {
				t.Errorf("the namespace has the labels %v", namespace.Labels)
			}
			if len(before) > 0 && before[0].GetLabels()["a"] != namespace.Labels["a"] {
				t.Errorf("the namespace has the labels %v, and had %v", namespace.Labels, before[0].GetLabels())
			}
			// A group that was deleted does not come back.
			if err := api.Delete(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			if err := baseline.Seed(t.Context(), api, wanted); err != nil {
				t.Fatal(err)
			}
			var groups v1alpha1.NodeGroupList
			if err := api.List(t.Context(), &groups); err != nil || len(groups.Items) != 0 {
				t.Errorf("%v, groups %+v", err, groups.Items)
			}
			if err := baseline.Seed(t.Context(), noWrites(api), wanted); err != nil {
				t.Errorf("where no writes are taken: %v", err)
			}
		})
	}
}

func TestSeedSaysWhatFailed(t *testing.T) {
	wanted := clusterconfig.Default(1, v1alpha1.ProviderSimulated)
	failure := errors.New("made to fail")
	api := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return failure },
	})
	if err := baseline.Seed(t.Context(), api, wanted); !errors.Is(err, failure) || err.Error() != "making namespace muster of the cluster: made to fail" {
		t.Errorf("error %v", err)
	}
}

func fakeClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}
