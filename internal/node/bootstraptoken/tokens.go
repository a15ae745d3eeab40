// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/token"
)

// Listed is a token of a cluster, and since when it has been there.
type Listed struct {
	token.Bootstrap
	Created time.Time
	Scopes  []token.Scope
}

// Create puts a token into the cluster. It fails if a token of the same ID exists, since somebody may hold that token.
func Create(ctx context.Context, c client.Client, b token.Bootstrap) error {
	secret, err := b.Secret()
	if err != nil {
		return err
	}
	err = c.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a token %s already: delete it (muster token delete %s), or let another one be drawn", b.Token.ID, b.Token.ID)
	}
	return err
}

// List returns the tokens of a cluster, those that expire first at the top, and the problems of those that nobody can
// use.
func List(ctx context.Context, c client.Reader) (tokens []Listed, unusable []error, err error) {
	var secrets corev1.SecretList
	// The other Secrets of kube-system are nobody's business here: the API server leaves them out.
	err = c.List(ctx, &secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, nil, err
	}
	for i := range secrets.Items {
		l, err := listed(&secrets.Items[i])
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		tokens = append(tokens, l)
	}
	slices.SortFunc(tokens, func(a, b Listed) int {
		if a.Expires.IsZero() != b.Expires.IsZero() { // never comes last
			if a.Expires.IsZero() {
				return 1
			}
			return -1
		}
		if n := a.Expires.Compare(b.Expires); n != 0 {
			return n
		}
		return strings.Compare(a.Token.ID, b.Token.ID)
	})
	return tokens, unusable, nil
}

func listed(secret *corev1.Secret) (Listed, error) {
	b, err := token.Read(secret)
	if err != nil {
		return Listed{}, err
	}
	scopes, err := b.Scopes()
	if err != nil {
		return Listed{}, fmt.Errorf("the certificate controller refuses the token %s: %w", b.Token.ID, err)
	}
	return Listed{Bootstrap: b, Created: secret.CreationTimestamp.Time, Scopes: scopes}, nil
}

// Get returns one token.
func Get(ctx context.Context, c client.Reader, id string) (Listed, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: token.SecretName(id)}, &secret)
	if apierrors.IsNotFound(err) {
		return Listed{}, gone(id)
	}
	if err != nil {
		return Listed{}, err
	}
	return listed(&secret)
}

// Delete deletes a token. Certificates that were issued for it stay good.
func Delete(ctx context.Context, c client.Client, id string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: token.SecretName(id)}}
	err := c.Delete(ctx, secret)
	if apierrors.IsNotFound(err) {
		return gone(id)
	}
	return err
}

func gone(id string) error {
	return fmt.Errorf("there is no token %s (any more): muster token list shows those there are", id)
}
