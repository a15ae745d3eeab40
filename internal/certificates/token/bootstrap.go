// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultGroup is the group that kubeadm gives its tokens, and lets do what kubeadm join needs
// (cmd/kubeadm/app/constants, NodeBootstrapTokenAuthGroup).
const DefaultGroup = "system:bootstrappers:kubeadm:default-node-token"

// The usages of a token.
const (
	UsageAuthentication = "authentication" // the API server believes its holder
	UsageSigning        = "signing"        // cluster-info is signed with it, so that its holder believes the cluster
)

const (
	keyUsage = "usage-bootstrap-"

	maxGroups      = 32
	maxDescription = 1024
)

// UserPrefix begins the name of the user that a token's holder is, before its ID.
const UserPrefix = "system:bootstrap:"

// isGroup reports whether the API server lets a token's extra group be that (k8s.io/cluster-bootstrap/token/api,
// BootstrapGroupPattern).
func isGroup(group string) bool {
	rest, ok := strings.CutPrefix(group, "system:bootstrappers:")
	return ok && rest != "" && len(group) <= maxGroup && strings.Trim(rest, groupAlphabet+":") == "" && strings.Trim(rest[len(rest)-1:], alphabet) == ""
}

// Bootstrap is a bootstrap token with all that its Secret says, as kubeadm's tokens have it too.
type Bootstrap struct {
	Token  Token
	Usages []string
	Groups []string
	// Expires is when the API server refuses it from, never if zero.
	Expires     time.Time
	Description string
}

// Bind adds the groups that bind the token to scopes. Of one kind there can be one only: a machine has one ID, one
// name.
func (b *Bootstrap) Bind(scopes ...Scope) error {
	for _, s := range scopes {
		group, err := s.Group()
		if err != nil {
			return err
		}
		b.Groups = append(b.Groups, group)
	}
	return nil
}

// Scopes are what the token is bound to, in the order of its groups. A token without any is bound to nothing.
func (b Bootstrap) Scopes() ([]Scope, error) {
	var scopes []Scope
	for _, group := range b.Groups {
		s, ok, err := ParseGroup(group)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case slices.ContainsFunc(scopes, func(other Scope) bool { return other.Kind == s.Kind }):
			return nil, fmt.Errorf("it is bound to two values of %s: give one", s.Kind)
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

// May reports whether the token has a usage.
func (b Bootstrap) May(usage string) bool { return slices.Contains(b.Usages, usage) }

// Expired reports whether the API server refuses it by now.
func (b Bootstrap) Expired(now time.Time) bool { return !b.Expires.IsZero() && !now.Before(b.Expires) }

// Check tells what nobody should put into a cluster: a token that the API server would refuse, or that means something
// else than it says.
func (b Bootstrap) Check() error {
	if b.Token.IsZero() {
		return errors.New("there is no token")
	}
	if len(b.Usages) == 0 {
		return fmt.Errorf("a token needs a usage: %s or %s", UsageSigning, UsageAuthentication)
	}
	for i, usage := range b.Usages {
		if usage != UsageAuthentication && usage != UsageSigning {
			return fmt.Errorf("%q is not a usage of tokens; there are %s and %s", usage, UsageSigning, UsageAuthentication)
		}
		if slices.Contains(b.Usages[:i], usage) {
			return fmt.Errorf("duplicate usage %s", usage)
		}
	}
	if len(b.Groups) > 0 && !b.May(UsageAuthentication) {
		return fmt.Errorf("groups go with the usage %s: a token that does not authenticate is a member of none", UsageAuthentication)
	}
	if len(b.Groups) > maxGroups {
		return fmt.Errorf("it has %d groups and may have %d", len(b.Groups), maxGroups)
	}
	for i, group := range b.Groups {
		if !isGroup(group) {
			return fmt.Errorf("%q is not a group of bootstrap tokens: it must begin with system:bootstrappers: and go on with a-z, 0-9, : and -", group)
		}
		if slices.Contains(b.Groups[:i], group) {
			return fmt.Errorf("duplicate group %s", group)
		}
	}
	scopes, err := b.Scopes()
	if err == nil {
		err = agree(scopes)
	}
	if err != nil {
		return err
	}
	if len(b.Description) > maxDescription || !utf8.ValidString(b.Description) || strings.ContainsFunc(b.Description, unicode.IsControl) {
		return fmt.Errorf("a description is one line of at most %d bytes", maxDescription)
	}
	return nil
}

// Secret is what makes a cluster know the token: that of kubeadm, which reads ours as we read its own.
func (b Bootstrap) Secret() (*corev1.Secret, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	data := map[string][]byte{keyID: []byte(b.Token.ID), keySecret: []byte(b.Token.secret)}
	for _, usage := range b.Usages {
		data[keyUsage+usage] = []byte("true")
	}
	if len(b.Groups) > 0 {
		data[keyGroups] = []byte(strings.Join(b.Groups, ","))
	}
	if !b.Expires.IsZero() {
		data[keyExpiration] = []byte(b.Expires.UTC().Format(time.RFC3339))
	}
	if b.Description != "" {
		data[keyDescription] = []byte(b.Description)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: SecretName(b.Token.ID)},
		Type:       corev1.SecretTypeBootstrapToken,
		Data:       data,
	}, nil
}

// Read reads any bootstrap token, whatever program made it. Contents that neither the API server nor kubeadm minds are
// read as they stand, such as usages that nobody knows; an error means that the API server does not take the token, and
// never quotes its secret half.
func Read(s *corev1.Secret) (Bootstrap, error) {
	b, err := readAny(s)
	if err != nil {
		return Bootstrap{}, fmt.Errorf("Secret %s/%s is not a usable bootstrap token: %w", s.Namespace, s.Name, err)
	}
	return b, nil
}

func readAny(s *corev1.Secret) (Bootstrap, error) {
	id, secret := string(s.Data[keyID]), string(s.Data[keySecret])
	t, err := Parse(id + "." + secret)
	switch {
	case s.Type != corev1.SecretTypeBootstrapToken:
		return Bootstrap{}, fmt.Errorf("its type is %q, not %q", s.Type, corev1.SecretTypeBootstrapToken)
	case err != nil:
		return Bootstrap{}, fmt.Errorf("its %s and %s are %w", keyID, keySecret, err)
	case s.Namespace != metav1.NamespaceSystem || s.Name != SecretName(t.ID):
		return Bootstrap{}, fmt.Errorf("the API server looks for it as %s/%s", metav1.NamespaceSystem, SecretName(t.ID))
	}
	b := Bootstrap{Token: t, Description: string(s.Data[keyDescription])}
	for key, value := range s.Data {
		if usage, ok := strings.CutPrefix(key, keyUsage); ok && string(value) == "true" {
			b.Usages = append(b.Usages, usage)
		}
	}
	slices.Sort(b.Usages)
	if text := string(s.Data[keyGroups]); text != "" {
		for group := range strings.SplitSeq(text, ",") {
			if !isGroup(group) {
				return Bootstrap{}, fmt.Errorf("its group %.100q is not one of bootstrap tokens", group)
			}
			b.Groups = append(b.Groups, group)
		}
	}
	if text := string(s.Data[keyExpiration]); text != "" {
		if b.Expires, err = time.Parse(time.RFC3339, text); err != nil {
			return Bootstrap{}, fmt.Errorf("its expiration is not a time as %s", time.RFC3339)
		}
	}
	return b, nil
}

// ParseID reads the public half of a token, alone or before its secret half, as people name tokens.
func ParseID(text string) (string, error) {
	if wellFormed(text, idLength) {
		return text, nil
	}
	t, err := Parse(text)
	if err != nil {
		return "", errors.New("not the ID of a bootstrap token, nor a token: an ID is 6 of a-z and 0-9, as abcdef")
	}
	return t.ID, nil
}
