// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests reads requests by name, or all of them, the newest last.
func (p *Client) Requests(ctx context.Context, names []string) ([]certificatesv1.CertificateSigningRequest, error) {
	if len(names) == 0 {
		var list certificatesv1.CertificateSigningRequestList
		if err := p.ReadAll(ctx, &list); err != nil {
			return nil, err
		}
		slices.SortStableFunc(list.Items, func(a, b certificatesv1.CertificateSigningRequest) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		return list.Items, nil
	}
	found := make([]certificatesv1.CertificateSigningRequest, len(names))
	for i, name := range names {
		name = SigningRequests().bare(name)
		if err := p.Read(ctx, name, &found[i]); err != nil {
			return nil, MissingCSR(name, err)
		}
	}
	return found, nil
}

// MissingCSR turns a "not found" about a request into an error that says where requests go and what lists them.
func MissingCSR(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no certificate signing request %q (any more: requests go an hour after they are issued or denied); muster csr list shows those there are", name)
	}
	return err
}

// Events reads the Events about requests, by name of the request. Events about objects without a namespace are in
// "default".
func (p *Client) Events(ctx context.Context) (map[string][]corev1.Event, error) {
	var list corev1.EventList
	if err := p.ReadAll(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return nil, err
	}
	byName := map[string][]corev1.Event{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "CertificateSigningRequest" {
			byName[e.InvolvedObject.Name] = append(byName[e.InvolvedObject.Name], e)
		}
	}
	return byName, nil
}
