// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
)

// follow watches requests from a version on, until ctx is done. The API server ends a watch whose reader falls behind;
// then it goes on where it was.
func follow(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, version string, see func(watch.EventType, *certificatesv1.CertificateSigningRequest)) error {
	for {
		events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			return fmt.Errorf("watching requests: %w", err)
		}
		for event := range events.ResultChan() {
			csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
			if !ok {
				events.Stop()
				return fmt.Errorf("watching requests: %v", event.Object)
			}
			version = csr.ResourceVersion
			see(event.Type, csr)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
