// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/token"
)

// credential is a machine's bootstrap token and its end.
type credential struct {
	token   token.Token
	expires time.Time
}

// left is how long it is still good for, or 0 for none.
func (c credential) left(now time.Time) time.Duration {
	if c.token.IsZero() {
		return 0
	}
	return max(c.expires.Sub(now), time.Millisecond)
}

// ensureToken returns a token with which the machine may join, or join again as a node that may be there: the one it
// has, unless that expired, else a new one. Its Secret is the only place that keeps it, so a crash of the service at any
// moment loses nothing.
func (r *machines) ensureToken(ctx context.Context, m *v1alpha1.Machine, rejoin string) (credential, error) {
	found, err := r.findToken(ctx, m, rejoin)
	if err != nil || !found.token.IsZero() {
		return found, err
	}
	if recent := r.memory.token(m.Name, r.Now()); !recent.token.IsZero() {
		return recent, nil
	}
	fresh, err := token.Generate(r.Random)
	if err != nil {
		return credential{}, err
	}
	expires := r.Now().Add(token.Lifetime).Truncate(time.Second)
	if err := r.cluster.Create(ctx, token.Secret(token.Bound{Token: fresh, Machine: m.Name, Rejoin: rejoin, Expires: expires})); err != nil {
		return credential{}, fmt.Errorf("storing the bootstrap token: %w", err)
	}
	made := credential{token: fresh, expires: expires}
	r.memory.made(m.Name, made, r.Now())
	return made, nil
}

// findToken returns the newest good token of the machine. Secrets that carry its label but are not its token, or are an
// expired one, are removed.
func (r *machines) findToken(ctx context.Context, m *v1alpha1.Machine, rejoin string) (credential, error) {
	secrets, err := r.tokensOf(ctx, m)
	if err != nil {
		return credential{}, err
	}
	var best credential
	for i := range secrets {
		bound, err := token.FromSecret(&secrets[i])
		if err != nil || bound.Machine != m.Name || bound.Rejoin != rejoin || bound.Expired(r.Now()) {
			if err := r.deleteSecret(ctx, &secrets[i]); err != nil {
				return credential{}, err
			}
			continue
		}
		if bound.Token.ID == m.Status.BootstrapTokenID {
			return credential{token: bound.Token, expires: bound.Expires}, nil
		}
		if bound.Expires.After(best.expires) || (bound.Expires.Equal(best.expires) && bound.Token.ID < best.token.ID) {
			best = credential{token: bound.Token, expires: bound.Expires}
		}
	}
	return best, nil
}

// dropTokens removes the tokens of a machine that needs none any more.
func (r *machines) dropTokens(ctx context.Context, m *v1alpha1.Machine) error {
	r.memory.joined(m.Name)
	secrets, err := r.tokensOf(ctx, m)
	if err != nil {
		return err
	}
	for i := range secrets {
		if err := r.deleteSecret(ctx, &secrets[i]); err != nil {
			return err
		}
	}
	id := m.Status.BootstrapTokenID
	if id == "" || r.memory.dropped(m.Name, id) {
		return nil
	}
	if len(secrets) == 0 { // made a moment ago, maybe, and not in the cache yet
		if err := r.deleteSecret(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: token.SecretName(id)}}); err != nil {
			return err
		}
	}
	r.memory.drop(m.Name, id)
	return nil
}

func (r *machines) deleteSecret(ctx context.Context, secret *corev1.Secret) error {
	if err := r.cluster.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing bootstrap token %s: %w", secret.Name, err)
	}
	return nil
}

func (r *machines) tokensOf(ctx context.Context, m *v1alpha1.Machine) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	err := r.cluster.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha1.LabelMachine: m.Name})
	if err != nil {
		return nil, fmt.Errorf("listing bootstrap tokens: %w", err)
	}
	return list.Items, nil
}
