// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/token"
)

const whole, secretHalf = "abcdef.zyxwvutsrq987654", "zyxwvutsrq987654"

func parsed(t *testing.T, text string) token.Token {
	t.Helper()
	tok, err := token.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func general(t *testing.T) token.Bootstrap {
	t.Helper()
	return token.Bootstrap{
		Token: parsed(t, whole), Usages: []string{"authentication", "signing"}, Groups: []string{token.DefaultGroup},
		Expires: expires, Description: "for the new rack",
	}
}

func TestBootstrapSecret(t *testing.T) {
	b := general(t)
	if err := b.Bind(token.Scope{Kind: token.ScopeName, Value: "worker-1.corp.example"}); err != nil {
		t.Fatal(err)
	}
	s, err := b.Secret()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"": fmt.Sprint(s.Namespace, "/", s.Name, " ", s.Type)}
	for k, v := range s.Data {
		got[k] = string(v)
	}
	// As kubeadm v1.36 writes it: cmd/kubeadm/app/apis/bootstraptoken/v1/utils.go, encodeTokenSecretData.
	want := map[string]string{
		"":         "kube-system/bootstrap-token-abcdef bootstrap.kubernetes.io/token",
		"token-id": "abcdef", "token-secret": secretHalf, "expiration": "2026-11-20T12:15:00Z", "description": "for the new rack",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:muster:name:worker-1:corp:example",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	back, err := token.Read(s)
	if diff := cmp.Diff(b, back, cmp.Comparer(sameToken)); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	scopes, err := back.Scopes()
	if diff := cmp.Diff([]token.Scope{{Kind: token.ScopeName, Value: "worker-1.corp.example"}}, scopes); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	b.Expires, b.Description, b.Usages, b.Groups = time.Time{}, "", []string{"signing"}, nil
	if s, err = b.Secret(); err != nil || len(s.Data) != 3 {
		t.Errorf("the least is %v, %v", s, err)
	}
	if b.Expired(expires.AddDate(100, 0, 0)) {
		t.Error("a token that never expires has")
	}
	if b.Expires = expires; b.Expired(expires.Add(-time.Nanosecond)) || !b.Expired(expires) {
		t.Error("a token expires at another moment than it says")
	}
}

func sameToken(a, b token.Token) bool { return a.Reveal() == b.Reveal() }

func TestBootstrapThatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*token.Bootstrap)
		says   string
	}{
		"no token":               {func(b *token.Bootstrap) { b.Token = token.Token{} }, "no token"},
		"no usages":              {func(b *token.Bootstrap) { b.Usages = nil }, "needs a usage"},
		"an unknown usage":       {func(b *token.Bootstrap) { b.Usages = []string{"joining"} }, `"joining" is not a usage`},
		"a usage twice":          {func(b *token.Bootstrap) { b.Usages = []string{"signing", "signing"} }, "duplicate usage signing"},
		"groups of nobody":       {func(b *token.Bootstrap) { b.Usages = []string{"signing"} }, "groups go with"},
		"a group of others":      {func(b *token.Bootstrap) { b.Groups = []string{"system:masters"} }, `"system:masters" is not a group of bootstrap tokens`},
		"a group with two in it": {func(b *token.Bootstrap) { b.Groups = []string{"system:bootstrappers:a,system:bootstrappers:b"} }, "is not a group"},
		"a group that ends":      {func(b *token.Bootstrap) { b.Groups = []string{"system:bootstrappers:"} }, "is not a group"},
		"a group ends with -":    {func(b *token.Bootstrap) { b.Groups = []string{"system:bootstrappers:a-"} }, "is not a group"},
		"a long group":           {func(b *token.Bootstrap) { b.Groups = []string{"system:bootstrappers:" + strings.Repeat("a", 257)} }, "is not a group"},
		"a group twice":          {func(b *token.Bootstrap) { b.Groups = append(b.Groups, b.Groups...) }, "duplicate group"},
		"many groups":            {func(b *token.Bootstrap) { b.Groups = many(33) }, "33 groups"},
		"two names": {func(b *token.Bootstrap) {
			b.Groups = []string{"system:bootstrappers:muster:name:a", "system:bootstrappers:muster:name:b"}
		}, "two values of name"},
		"a binding nobody reads":  {func(b *token.Bootstrap) { b.Groups = []string{"system:bootstrappers:muster:zone:a"} }, "not known"},
		"a description of lines":  {func(b *token.Bootstrap) { b.Description = "a\nb" }, "one line"},
		"a long description":      {func(b *token.Bootstrap) { b.Description = strings.Repeat("a", 1025) }, "one line"},
		"a description of noises": {func(b *token.Bootstrap) { b.Description = "\xff" }, "one line"},
	} {
		t.Run(name, func(t *testing.T) {
			b := general(t)
			tc.change(&b)
			if s, err := b.Secret(); s != nil || err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secretHalf) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
	b := general(t)
	if err := b.Bind(token.Scope{Kind: token.ScopeMachine}); err == nil || len(b.Groups) != 1 {
		t.Errorf("bound to nothing: %v, %v", err, b.Groups)
	}
}

func many(n int) []string {
	var groups []string
	for i := range n {
		groups = append(groups, fmt.Sprint("system:bootstrappers:", i))
	}
	return groups
}

// Tokens of others: those that the API server takes are read, those that it refuses are reported.
func TestReadTokensOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string // "": the key goes
		change     func(*corev1.Secret)
		says       string // "": it is read
	}{
		"a usage of tomorrow":   {key: "usage-bootstrap-attestation", value: "true"},
		"a usage that is off":   {key: "usage-bootstrap-signing", value: "false"},
		"a key of somebody":     {key: "ticket", value: "4711"},
		"no expiration":         {key: "expiration"},
		"a label":               {change: func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} }},
		"no description":        {key: "description"},
		"no groups":             {key: "auth-extra-groups"},
		"another type":          {change: func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, says: "its type"},
		"another name":          {change: func(s *corev1.Secret) { s.Name = "bootstrap-token-abcdee" }, says: "looks for it as kube-system/bootstrap-token-abcdef"},
		"another namespace":     {change: func(s *corev1.Secret) { s.Namespace = metav1.NamespaceDefault }, says: "looks for it"},
		"no ID":                 {key: "token-id", says: "not a bootstrap token"},
		"a bad secret half":     {key: "token-secret", value: "Zyxwvutsrq987654", says: "not a bootstrap token"},
		"a group of others":     {key: "auth-extra-groups", value: "system:masters", says: `its group "system:masters"`},
		"groups with a blank":   {key: "auth-extra-groups", value: "system:bootstrappers:a, system:bootstrappers:b", says: "its group"},
		"an expiration by hand": {key: "expiration", value: "tomorrow", says: "its expiration is not a time"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := general(t).Secret()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.change != nil:
				tc.change(s)
			case tc.value == "":
				delete(s.Data, tc.key)
			default:
				s.Data[tc.key] = []byte(tc.value)
			}
			b, err := token.Read(s)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(strings.ToLower(err.Error()), secretHalf) {
					t.Errorf("got %v, want %q", err, tc.says)
				}
				return
			}
			if err != nil || b.Token.Reveal() != whole {
				t.Errorf("read as %+v, %v", b, err)
			}
			if name == "a usage that is off" && b.May(token.UsageSigning) {
				t.Error("a usage that is off counts")
			}
		})
	}
}

func TestMachineTokensAreBootstrapTokens(t *testing.T) {
	b, err := token.Read(secret(t))
	if err != nil {
		t.Fatal(err)
	}
	scopes, err := b.Scopes()
	if diff := cmp.Diff([]token.Scope{{Kind: token.ScopeMachine, Value: machine}}, scopes); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestParseID(t *testing.T) {
	for _, text := range []string{"abcdef", whole} {
		if id, err := token.ParseID(text); err != nil || id != "abcdef" {
			t.Errorf("%q is %q, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "abcde", "ABCDEF", "abcdef.", "abcdef.Zyxwvutsrq987654"} {
		if _, err := token.ParseID(text); err == nil || strings.Contains(err.Error(), "yxwvutsrq") || errors.Is(err, token.ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRead holds that what is read can be written again if it may be written at all, and that errors keep secrets.
func FuzzRead(f *testing.F) {
	f.Add("abcdef", secretHalf, "system:bootstrappers:a,system:bootstrappers:muster:name:b", "2026-11-20T12:15:00Z", "x", "true", "true")
	f.Add("", "", ",", "0", "\x00", "1", "")
	f.Fuzz(func(t *testing.T, id, secret, groups, expiration, description, authentication, signing string) {
		data := map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(secret), "auth-extra-groups": []byte(groups), "expiration": []byte(expiration),
			"description": []byte(description), "usage-bootstrap-authentication": []byte(authentication), "usage-bootstrap-signing": []byte(signing),
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token", Data: data}
		b, err := token.Read(s)
		if err != nil {
			return
		}
		again, err := b.Secret()
		if err != nil {
			return
		}
		back, err := token.Read(again)
		if b.Expires, back.Expires = b.Expires.UTC(), back.Expires.UTC(); err != nil || !cmp.Equal(b, back, cmp.Comparer(sameToken)) {
			t.Errorf("%+v became %+v, %v", b, back, err)
		}
	})
}
