// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// Namespace returns the namespace of a cluster in the management plane, with the label that marks it as one.
func Namespace(slug string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: slug, Labels: map[string]string{v1alpha1.LabelCluster: slug}},
	}
}

// EnsureNamespace makes the namespace of a cluster. A namespace that a person made before is used, and gets the label.
func EnsureNamespace(ctx context.Context, api client.Client, slug string) error {
	namespace, err := ensure(ctx, api, Namespace(slug))
	if err == nil && namespace.Labels[v1alpha1.LabelCluster] != slug {
		before := namespace.DeepCopy()
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, v1alpha1.LabelCluster, slug)
		err = api.Patch(ctx, namespace, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("making namespace %s of the cluster: %w", slug, err)
	}
	return nil
}
