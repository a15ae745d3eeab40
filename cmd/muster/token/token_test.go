// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/token"
)

// secretHalf is what may be printed only where it was asked for.
const secretHalf = "zyxwvutsrq987654"

// runTokens runs a token command on the bench at noon.
func runTokens(ctx context.Context, b *clitest.Bench, entries []issued.Entry, args ...string) error {
	c := &tokenCommand{
		Options: b.O, cluster: b.Planes.Cluster, now: func() time.Time { return clitest.Noon }, random: bytes.NewReader(make([]byte, 1024)),
		issued: func(context.Context, *terminal.Options) ([]issued.Entry, error) { return entries, nil },
		bindings: func(context.Context, *terminal.Options) ([]rbacv1.ClusterRoleBinding, error) {
			return b.Bindings, b.Unseen
		},
	}
	return b.Run(ctx, c.command(), args...)
}

// door is a cluster that can be found, with a list of hosts.
func door(t *testing.T) []client.Object {
	t.Helper()
	authority, _ := pkitest.Authority(t, "blue", clitest.Noon, time.Hour)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}))
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{
			"kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {server: 'https://172.31.0.4:443', certificate-authority-data: " + ca + "}\n",
		}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "machines"}, Data: map[string]string{"machines.yaml": "machines: []\n"}},
	}
}

// tokensOf are Secrets of tokens by ID, all with the same secret half.
func tokensOf(t *testing.T, change map[string]func(*token.Bootstrap)) []client.Object {
	t.Helper()
	var objects []client.Object
	for id, f := range change {
		tok, err := token.Parse(id + "." + secretHalf)
		if err != nil {
			t.Fatal(err)
		}
		made := token.Bootstrap{Token: tok, Usages: []string{"authentication", "signing"}, Groups: []string{token.DefaultGroup}, Expires: clitest.Noon.Add(24 * time.Hour)}
		f(&made)
		secret, err := made.Secret()
		if err != nil {
			t.Fatal(err)
		}
		secret.CreationTimestamp = metav1.NewTime(clitest.Noon.Add(-time.Hour))
		objects = append(objects, secret)
	}
	return objects
}

func bind(t *testing.T, kind token.ScopeKind, value string) func(*token.Bootstrap) {
	t.Helper()
	return func(b *token.Bootstrap) {
		if err := b.Bind(token.Scope{Kind: kind, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTokenList(t *testing.T) {
	t.Parallel()
	objects := tokensOf(t, map[string]func(*token.Bootstrap){
		"aaaaaa": bind(t, token.ScopeName, "worker-1"),
		"bbbbbb": func(b *token.Bootstrap) { bind(t, token.ScopePattern, "rack-7-*")(b); b.Description = "for rack 7" },
		"cccccc": func(b *token.Bootstrap) { b.Expires = time.Time{} },
		"dddddd": func(b *token.Bootstrap) { b.Expires = clitest.Noon.Add(-time.Minute) },
	})
	objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-broken"}, Type: corev1.SecretTypeBootstrapToken})
	entries := []issued.Entry{}
	for i, node := range []string{"rack-7-1", "rack-7-2", "rack-7-1", "rack-7-3"} {
		entries = append(entries, issued.Entry{
			UID: string(rune('1' + i)), CSR: "csr-" + node, Signer: pki.SignerKubeletClient, Node: node, Requester: "system:bootstrap:bbbbbb",
			NotBefore: clitest.Noon.Add(time.Duration(i)*time.Minute - 30*time.Minute),
		})
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	for name, args := range map[string][]string{
		"token-list.txt":         {"list"},
		"token-list-secrets.txt": {"list", "--show-secrets"},
		"token-list.json":        {"list", "-o", "json"},
	} {
		if err := runTokens(t.Context(), b, entries, args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		clitest.Golden(t, name, b.Out.String())
		if secrets := strings.Contains(b.Out.String(), secretHalf); secrets != (name == "token-list-secrets.txt") {
			t.Errorf("%v shows secrets: %v", args, secrets)
		}
		if !strings.Contains(b.Err.String(), "Warning: Secret kube-system/bootstrap-token-broken is not a usable bootstrap token") {
			t.Errorf("%v warns %q", args, b.Err.String())
		}
	}
	none := clitest.NewBench(t, interceptor.Funcs{})
	if err := runTokens(t.Context(), none, nil, "list"); err != nil || none.Out.Len() > 0 || !strings.Contains(none.Err.String(), "No bootstrap tokens") {
		t.Errorf("none: %v, %q", err, none.Out.String())
	}
	if err := runTokens(t.Context(), none, nil, "list", "-o", "json"); err != nil || none.Out.String() != "[]\n" {
		t.Errorf("none in JSON: %v, %q", err, none.Out.String())
	}
	clitest.WantErr(t, runTokens(t.Context(), none, nil, "list", "-o", "wide"), `unknown output format "wide"`, true)
}

func TestTokenUsage(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("something was made")
		return errors.New("made")
	}})
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{}, "muster token needs a subcommand: create, list"},
		{[]string{"crate"}, `did you mean "create"`},
		{[]string{"create", "abcdef." + strings.ToUpper(secretHalf)}, "not a bootstrap token"},
		{[]string{"create", "--ttl", "-1h"}, "invalid --ttl -1h0m0s: must not be negative"},
		{[]string{"create", "--ttl", "1ms"}, "--ttl 1ms is too short"},
		{[]string{"create", "--node-name", "worker-1", "--pattern", "rack-*"}, `bound to the name "worker-1" and to the pattern "rack-*", and no node name is both`},
		{[]string{"create", "--usages", "signing"}, "groups go with the usage authentication"},
		{[]string{"create", "--usages", "joining"}, `"joining" is not a usage`},
		{[]string{"create", "--groups", "system:masters"}, `"system:masters" is not a group`},
		{[]string{"create", "--groups", "system:bootstrappers:muster:name:a", "--node-name", "b"}, "two values of name"},
		{[]string{"create", "--node-name", "A_B"}, `"A_B" is not the name of a node`},
		{[]string{"create", "--pattern", "[a]"}, "not a pattern"},
		{[]string{"create", "--description", "a\nb"}, "one line"},
		{[]string{"create", "--address", "10.0.0.1"}, "--address needs --node-name"},
		{[]string{"create", "--node-name", "a", "--address", "here"}, `invalid --address "here": must be an IP address`},
		{[]string{"create", "--node-name", "a", "--address", "127.0.0.1"}, `"127.0.0.1" is not the address of a machine`},
		{[]string{"create", "--node-name", "a", "--address", "10.0.0.1", "--machine", "i-1"}, "--address registers the host as machine host-a, so --machine can"},
		{[]string{"create", "--rejoin"}, "--rejoin needs --node-name"},
		{[]string{"create", "-o", "table"}, "unknown output format"},
		{[]string{"create", "--for", "kops"}, "unknown program \"kops\" in --for"},
		{[]string{"print-join-command", "ABCDEF"}, "not the ID of a bootstrap token"},
		{[]string{"delete", "aaaaaa", "x"}, "not the ID of a bootstrap token"},
	} {
		err := runTokens(t.Context(), b, nil, tc.args...)
		if len(tc.args) < 2 { // usage errors of arguments are made by the root command
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v: %v", tc.args, err)
			}
			continue
		}
		clitest.WantErr(t, err, tc.says, true)
		if strings.Contains(strings.ToLower(err.Error()), secretHalf) {
			t.Errorf("%v tells the secret: %v", tc.args, err)
		}
	}
}

func tokenSecretsOf(t *testing.T, b *clitest.Bench) []corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	if err := b.Client.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	return secrets.Items
}
