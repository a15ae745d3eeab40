// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretNames returns the names of a cluster's Secrets, as NAMESPACE/NAME. The API server is asked for their metadata
// alone, so that no content leaves it.
func SecretNames(ctx context.Context, api client.Reader) ([]string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := read(ctx, api, &list); err != nil {
		return nil, fmt.Errorf("reading the names of Secrets: %w", err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Namespace + "/" + list.Items[i].Name
	}
	return names, nil
}
