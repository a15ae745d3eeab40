// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/plane/baseline"
)

func TestPublishBundles(t *testing.T) {
	keys := rotator.NewKeys(authority.NewStore(t.TempDir()))
	if _, err := keys.Ensure(nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	ca, err := keys.KubeletAuthority("kubelet-1")
	if err != nil {
		t.Fatal(err)
	}
	api := fakeClient(t)
	for range 2 {
		if err := baseline.PublishBundles(t.Context(), api, []*x509.Certificate{ca}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{bundle.Client, bundle.Serving} {
		var got corev1.ConfigMap
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: name}, &got); err != nil {
			t.Fatal(err)
		}
		if got.Data[bundle.Key] != string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})) {
			t.Errorf("%s holds %v", name, got.Data)
		}
	}
}
