// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
)

// Lifetime of a machine's token, from its making.
const Lifetime = 15 * time.Minute

// Names that the API server's bootstrap token authenticator looks for (k8s.io/cluster-bootstrap/token/api).
const (
	namePrefix = "bootstrap-token-"

	keyID             = "token-id"
	keySecret         = "token-secret"
	keyExpiration     = "expiration"
	keyAuthentication = "usage-bootstrap-authentication"
	keyGroups         = "auth-extra-groups"
	keyDescription    = "description"
)

// SecretName is the name of the Secret, in namespace kube-system, of the token with this ID.
func SecretName(id string) string { return namePrefix + id }

// Secret builds the Secret that makes the API server accept the token, for authentication only, until it expires, as a
// member of the group of one machine, and of that of its node if that is to join again.
func Secret(b Bound) *corev1.Secret {
	t, description := b.Token, "Lets machine "+b.Machine+" join, and no other."
	if b.Rejoin != "" {
		description = "Lets machine " + b.Machine + " join again, and no other."
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: SecretName(t.ID), Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{v1alpha1.LabelMachine: b.Machine},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			keyID:             []byte(t.ID),
			keySecret:         []byte(t.secret),
			keyExpiration:     []byte(b.Expires.UTC().Format(time.RFC3339)),
			keyAuthentication: []byte("true"),
			keyGroups:         []byte(b.groups()),
			keyDescription:    []byte(description),
		},
	}
}

// Bound is a token with the machine and the time it is good for.
type Bound struct {
	Token   Token
	Machine string
	// Rejoin is the name of the machine's node if that may be there already ([ScopeRejoin]).
	Rejoin  string
	Expires time.Time
}

// groups are the groups that bind the token.
func (b Bound) groups() string {
	groups := v1alpha1.BootstrapGroupPrefix + b.Machine
	if b.Rejoin != "" {
		groups += "," + v1alpha1.BootstrapGroupPrefix + string(ScopeRejoin) + ":" + strings.ReplaceAll(b.Rejoin, ".", ":")
	}
	return groups
}

// Expired reports whether the API server refuses it by now.
func (b Bound) Expired(now time.Time) bool { return !now.Before(b.Expires) }

// FromSecret reads back what Secret built, strictly: a Secret that grants anything else is none of these.
func FromSecret(s *corev1.Secret) (Bound, error) {
	b, err := fromSecret(s)
	if err != nil {
		return Bound{}, fmt.Errorf("reading Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return b, nil
}

func fromSecret(s *corev1.Secret) (Bound, error) {
	t, err := Parse(string(s.Data[keyID]) + "." + string(s.Data[keySecret]))
	if err != nil {
		return Bound{}, err
	}
	switch {
	case s.Type != corev1.SecretTypeBootstrapToken:
		return Bound{}, fmt.Errorf("its type is %q, not %q", s.Type, corev1.SecretTypeBootstrapToken)
	case s.Namespace != metav1.NamespaceSystem || s.Name != SecretName(t.ID):
		return Bound{}, fmt.Errorf("the API server looks for it as %s/%s", metav1.NamespaceSystem, SecretName(t.ID))
	}
	for key, value := range s.Data {
		switch {
		case key == keyID, key == keySecret, key == keyExpiration, key == keyGroups, key == keyDescription:
		case key == keyAuthentication && string(value) == "true":
		default:
			return Bound{}, fmt.Errorf("it has %s, which tokens of machines do not have", key)
		}
	}
	if _, ok := s.Data[keyAuthentication]; !ok {
		return Bound{}, errors.New("it does not authenticate")
	}
	b := Bound{Token: t, Machine: s.Labels[v1alpha1.LabelMachine]}
	if _, again, ok := strings.Cut(string(s.Data[keyGroups]), ","); ok {
		scope, ok, err := ParseGroup(again)
		if err != nil || !ok || scope.Kind != ScopeRejoin {
			return Bound{}, errors.New("its second group does not let a node join again")
		}
		b.Rejoin = scope.Value
	}
	if b.Machine == "" || string(s.Data[keyGroups]) != b.groups() {
		return Bound{}, errors.New("its group and its label do not name one and the same machine")
	}
	b.Expires, err = time.Parse(time.RFC3339, string(s.Data[keyExpiration]))
	if err != nil {
		return Bound{}, errors.New("its expiration is not a time")
	}
	return b, nil
}
