// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotation"
)

// delegated sees that API servers that delegate authentication forget the old authority too. They read the authorities
// to trust from a ConfigMap, to which the API server adds what is in its file, and from which it takes an authority
// only when that has ended (pkg/controlplane/controller/clusterauthenticationtrust, combineCertLists).
type delegated struct {
	keys *Keys
	api  client.Client
}

const (
	delegationMap = "extension-apiserver-authentication"
	delegationKey = "client-ca-file"
)

func (d delegated) pending(ctx context.Context, r rotation.Rotation) string {
	if r.Phase != rotation.Withdraw || r.Old == authority.Cluster {
		return ""
	}
	err := d.forget(ctx, r.Old)
	if err != nil {
		return fmt.Sprintf("cannot take %s out of ConfigMap %s: %v", r.Old, delegationMap, err)
	}
	return ""
}

func (d delegated) forget(ctx context.Context, name string) error {
	old, err := d.keys.KubeletAuthority(name)
	if err != nil {
		return err
	}
	var published corev1.ConfigMap
	err = d.api.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: delegationMap}, &published)
	if apierrors.IsNotFound(err) || err == nil && published.Data[delegationKey] == "" {
		return nil
	}
	if err != nil {
		return err
	}
	trusted, err := bundle.Parse([]byte(published.Data[delegationKey]))
	if err != nil {
		return err
	}
	var left []*x509.Certificate
	for _, ca := range trusted {
		if !ca.Equal(old) {
			left = append(left, ca)
		}
	}
	if len(left) == len(trusted) {
		return nil
	}
	published.Data[delegationKey] = string(bundle.PEM(left...))
	return d.api.Update(ctx, &published)
}
