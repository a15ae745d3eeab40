// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/token"
)

const machine = "i-0123456789abcdef0"

var expires = time.Date(2026, 11, 20, 12, 15, 0, 0, time.UTC)

func secret(t *testing.T) *corev1.Secret {
	t.Helper()
	tok, err := token.Parse("abcdef.0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return token.Secret(token.Bound{Token: tok, Machine: machine, Expires: expires})
}

func TestSecret(t *testing.T) {
	s := secret(t)
	got := map[string]string{"name": s.Namespace + "/" + s.Name, "type": string(s.Type), "label": s.Labels["muster.dev/machine"]}
	for k, v := range s.Data {
		got[k] = string(v)
	}
	want := map[string]string{
		"name": "kube-system/bootstrap-token-abcdef", "type": "bootstrap.kubernetes.io/token", "label": machine,
		"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": "2026-11-20T12:15:00Z",
		"usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:muster:" + machine,
		"description": "Lets machine " + machine + " join, and no other.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecretReadsBack(t *testing.T) {
	b, err := token.FromSecret(secret(t))
	if err != nil {
		t.Fatal(err)
	}
	if b.Token.Reveal() != "abcdef.0123456789abcdef" || b.Machine != machine || !b.Expires.Equal(expires) {
		t.Errorf("got %+v", b)
	}
	if b.Expired(expires.Add(-time.Second)) || !b.Expired(expires) {
		t.Error("expires at the wrong moment")
	}
}

func TestFromSecretIsStrict(t *testing.T) {
	set := func(key, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Secret)
	}{
		{"another type", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
		{"another namespace", func(s *corev1.Secret) { s.Namespace = "default" }},
		{"another name", func(s *corev1.Secret) { s.Name = "bootstrap-token-fedcba" }},
		{"no data", func(s *corev1.Secret) { s.Data = nil }},
		{"a secret that is none", set("token-secret", "0123")},
		{"signing, too", set("usage-bootstrap-signing", "true")},
		{"no authentication", func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }},
		{"authentication switched off", set("usage-bootstrap-authentication", "false")},
		{"another group", set("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token")},
		{"two groups", set("auth-extra-groups", "system:bootstrappers:muster:"+machine+",system:bootstrappers:other")},
		{"no machine", set("auth-extra-groups", "system:bootstrappers:muster:")},
		{"the label names another machine", func(s *corev1.Secret) { s.Labels["muster.dev/machine"] = "i-other" }},
		{"no label", func(s *corev1.Secret) { s.Labels = nil }},
		{"no expiration", func(s *corev1.Secret) { delete(s.Data, "expiration") }},
		{"an expiration that is no time", set("expiration", "tomorrow")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := secret(t)
			tc.change(s)
			_, err := token.FromSecret(s)
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "0123456789abcdef.") || strings.Contains(err.Error(), "abcdef.0123456789abcdef") && !strings.Contains(err.Error(), "as abcdef") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func FuzzFromSecret(f *testing.F) {
	f.Add("abcdef", "0123456789abcdef", "2026-11-20T12:15:00Z", "true", "system:bootstrappers:muster:i-1", "i-1")
	f.Fuzz(func(t *testing.T, id, half, expiration, authentication, groups, label string) {
		s := &corev1.Secret{Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(half), "expiration": []byte(expiration),
			"usage-bootstrap-authentication": []byte(authentication), "auth-extra-groups": []byte(groups),
		}}
		s.Namespace, s.Name = "kube-system", token.SecretName(id)
		s.Labels = map[string]string{"muster.dev/machine": label}
		b, err := token.FromSecret(s)
		if err == nil && (b.Token.ID != id || b.Machine != label || b.Machine == "" || groups != "system:bootstrappers:muster:"+label) {
			t.Errorf("accepted %q %q as %+v", groups, label, b)
		}
	})
}

// A token by which a machine's node may join again says so in a group of its own.
func TestSecretLetsJoinAgain(t *testing.T) {
	const node = "ip-172-31-0-5.ec2.internal"
	one, err := token.FromSecret(secret(t))
	if err != nil {
		t.Fatal(err)
	}
	one.Rejoin = node
	s := token.Secret(one)
	if got, want := string(s.Data["auth-extra-groups"]), "system:bootstrappers:muster:"+machine+",system:bootstrappers:muster:rejoin:ip-172-31-0-5:ec2:internal"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	if again, err := token.FromSecret(s); err != nil || again != one {
		t.Errorf("read back as %+v, %v; want %+v", again, err, one)
	}
	for _, group := range []string{"rejoin:Ip", "name:ip-172-31-0-5", machine, ""} {
		s.Data["auth-extra-groups"] = []byte("system:bootstrappers:muster:" + machine + ",system:bootstrappers:muster:" + group)
		if b, err := token.FromSecret(s); err == nil {
			t.Errorf("a second group %q is read as %+v", group, b)
		}
	}
}
