// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// answers asks an API server that a source is watched at for something that everybody may have and that costs it
// nothing. Over HTTP/2 that is on the connection of the watch.
func answers(config *rest.Config) (func(context.Context) error, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client that asks whether the API server is there: %w", err)
	}
	return func(ctx context.Context) error { return isThere(ctx, client.RESTClient()) }, nil
}

// isThere takes a refusal for an answer: where system:public-info-viewer was taken away, the server is there
// nonetheless.
func isThere(ctx context.Context, client rest.Interface) error {
	err := client.Get().AbsPath("/version").Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
