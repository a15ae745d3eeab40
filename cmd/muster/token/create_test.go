// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/token"
)

func TestTokenCreate(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	if err := runTokens(t.Context(), b, nil, "create"); err != nil || b.Out.String() != "aaaaaa.aaaaaaaaaaaaaaaa\n" {
		t.Fatalf("%v, %q", err, b.Out.String())
	}
	if !strings.Contains(b.Err.String(), "bound to no machine") {
		t.Errorf("said %q", b.Err.String())
	}
	var secret corev1.Secret
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-aaaaaa"}, &secret); err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["expiration"]) != "2026-11-21T12:00:00Z" || string(secret.Data["auth-extra-groups"]) != token.DefaultGroup {
		t.Errorf("made %s", secret.Data)
	}
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "create"), "there is a token aaaaaa already", false)

	b.O.In = strings.NewReader("bbbbbb." + secretHalf + "\n")
	args := []string{"create", "-", "--node-name", "worker-1", "--address", "172.31.0.200", "--address", "fd00::1", "--ttl", "0", "-o", "json", "--print-join-command", "--description", "rack 7"}
	if err := runTokens(t.Context(), b, nil, args...); err != nil {
		t.Fatal(err)
	}
	var made shownToken
	if err := json.Unmarshal(b.Out.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	if made.Token != "bbbbbb."+secretHalf || made.Expires != nil || len(made.BoundTo) != 1 || made.BoundTo[0].Value != "worker-1" ||
		!strings.HasPrefix(made.JoinCommand, "muster join 172.31.0.4:443 --token bbbbbb."+secretHalf+" --ca-cert-hash sha256:") || !strings.HasSuffix(made.JoinCommand, " --node-name worker-1") {
		t.Errorf("made %+v", made)
	}
	if said := b.Err.String(); !strings.Contains(said, "Host worker-1 is registered") || !strings.Contains(said, "never expires") || strings.Contains(said, secretHalf) {
		t.Errorf("said %q", said)
	}
	var hosts corev1.ConfigMap
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: "machines"}, &hosts); err != nil {
		t.Fatal(err)
	}
	if want := "machines:\n- addresses:\n  - 172.31.0.200\n  - fd00::1\n  id: host-worker-1\n  nodeName: worker-1\n"; hosts.Data["machines.yaml"] != want {
		t.Errorf("hosts are\n%s", hosts.Data["machines.yaml"])
	}

	// Registered again it is told what is different.
	for _, again := range []struct{ id, address, said string }{
		{"dddddd", "172.31.0.201", "Host worker-1 was registered already, and now is with address 172.31.0.201 instead of 172.31.0.200,fd00::1 (ConfigMap muster-system/machines); "},
		{"eeeeee", "172.31.0.201", "Host worker-1 was registered already (ConfigMap muster-system/machines); "},
	} {
		if err := runTokens(t.Context(), b, nil, "create", again.id+"."+secretHalf, "--node-name", "worker-1", "--address", again.address); err != nil || !strings.Contains(b.Err.String(), again.said) {
			t.Errorf("%v, said %q", err, b.Err.String())
		}
	}
	if err := runTokens(t.Context(), b, nil, "create", "ffffff."+secretHalf, "--node-name", "worker-3", "--address", "fd00::1"); err != nil {
		t.Fatal(err)
	}

	// A host that cannot be registered gets no token either.
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "create", "cccccc."+secretHalf, "--node-name", "worker-2", "--address", "fd00::1"), `registering the host worker-2`, false)
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-cccccc"}, &secret); err == nil {
		t.Error("the token stayed")
	}

	if err := runTokens(t.Context(), b, nil, "print-join-command", "bbbbbb", "--for", "kubeadm"); err != nil ||
		!strings.HasPrefix(b.Out.String(), "kubeadm join 172.31.0.4:443 --token bbbbbb."+secretHalf+" --discovery-token-ca-cert-hash sha256:") {
		t.Errorf("%v, %q", err, b.Out.String())
	}
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "print-join-command", "zzzzzz"), "there is no token zzzzzz", false)
	if err := runTokens(t.Context(), b, nil, "delete", "bbbbbb."+secretHalf, "aaaaaa"); err != nil || b.Out.String() != "token \"bbbbbb\" deleted\ntoken \"aaaaaa\" deleted\n" {
		t.Errorf("%v, %q", err, b.Out.String())
	}
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "delete", "aaaaaa"), "there is no token aaaaaa", false)
	if err := runTokens(t.Context(), b, nil, "generate"); err != nil || b.Out.String() != "aaaaaa.aaaaaaaaaaaaaaaa\n" {
		t.Errorf("%v, %q", err, b.Out.String())
	}
}

// A binding holds where muster's controller decides. Elsewhere upstream's approves the token for any node, which must
// not come as a surprise.
func TestTokenThatIsBoundToLittle(t *testing.T) {
	t.Parallel()
	const autoApproveRole = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	opens := func(name, group string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: autoApproveRole}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: group}}}
	}
	kubeadm, everybody := opens("kubeadm:node-autoapprove-bootstrap", token.DefaultGroup), opens("all", "system:bootstrappers")
	rotation := opens("kubeadm:node-autoapprove-certificate-rotation", token.DefaultGroup)
	rotation.RoleRef.Name = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
	recorded := []issued.Entry{{Signer: pki.SignerKubeletClient, Node: "a"}}
	for name, tc := range map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		unseen   error
		entries  []issued.Entry
		args     []string
		warns    string
	}{
		"kubeadm's cluster":                      {[]rbacv1.ClusterRoleBinding{rotation, kubeadm}, nil, nil, []string{"--node-name", "a"}, "ClusterRoleBinding kubeadm:node-autoapprove-bootstrap has upstream's approve this token for any node"},
		"any token is approved":                  {[]rbacv1.ClusterRoleBinding{everybody}, nil, nil, []string{"--pattern", "a-*", "--groups="}, "ClusterRoleBinding all"},
		"our controller has signed serving ones": {[]rbacv1.ClusterRoleBinding{kubeadm}, nil, []issued.Entry{{Signer: pki.SignerKubeletServing, Node: "a"}}, []string{"--group", "a"}, "has recorded no node's certificate"},
		"whatever is registered":                 {[]rbacv1.ClusterRoleBinding{kubeadm}, nil, nil, []string{"--node-name", "a", "--address", "10.0.0.1"}, "Warning: the token may be good for more"},
		"it cannot be seen":                      {nil, errors.New("forbidden"), nil, []string{"--machine", "i-1"}, "cannot be seen: forbidden"},
		"without that group":                     {[]rbacv1.ClusterRoleBinding{kubeadm}, nil, nil, []string{"--node-name", "a", "--groups="}, ""},
		"muster's cluster":                       {[]rbacv1.ClusterRoleBinding{kubeadm, opens("muster:node-autoapprove-bootstrap", "system:bootstrappers")}, nil, nil, []string{"--node-name", "a"}, ""},
		"our controller decides":                 {[]rbacv1.ClusterRoleBinding{kubeadm}, nil, recorded, []string{"--node-name", "a"}, ""},
		"only rotation is approved":              {[]rbacv1.ClusterRoleBinding{rotation}, nil, nil, []string{"--node-name", "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
			b.Bindings, b.Unseen = tc.bindings, tc.unseen
			if err := runTokens(t.Context(), b, tc.entries, append([]string{"create"}, tc.args...)...); err != nil {
				t.Fatal(err)
			}
			said := b.Err.String()
			if warned := strings.Contains(said, "Warning:"); warned != (tc.warns != "") || !strings.Contains(said, tc.warns) || warned == strings.Contains(said, "Only machines") {
				t.Errorf("said %q", said)
			}
		})
	}
}

// A token that lets a node join again is bound to the node's name as well.
func TestTokenToJoinAgain(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	if err := runTokens(t.Context(), b, nil, "create", "--node-name", "worker-1", "--rejoin", "-o", "json"); err != nil {
		t.Fatal(err)
	}
	var made shownToken
	if err := json.Unmarshal(b.Out.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	if want := []boundTo{{token.ScopeName, "worker-1"}, {token.ScopeRejoin, "worker-1"}}; !slices.Equal(made.BoundTo, want) || strings.Contains(b.Err.String(), "inventory") {
		t.Errorf("made %+v, said %q", made, b.Err.String())
	}
}

// A token that nobody could use, or that would take the wrong machine for a host, is not made. For a machine that no
// list has, the command warns.
func TestTokenForMachinesThatAreNot(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	if err := runTokens(t.Context(), b, nil, "create", "bbbbbb."+secretHalf, "--node-name", "worker-1", "--address", "172.31.0.200", "--group", "workers"); err != nil {
		t.Fatal(err)
	}
	before := len(tokenSecretsOf(t, b))
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"the API server's address":   {[]string{"--node-name", "worker-2", "--address", "172.31.0.4"}, "172.31.0.4:443 is where the API server is, so host worker-2 cannot be there"},
		"the same in IPv6":           {[]string{"--node-name", "worker-2", "--address", "::ffff:172.31.0.4"}, "is where the API server is"},
		"another's group":            {[]string{"--node-name", "worker-1", "--group", "others"}, `bound to the registered host host-worker-1, and its group "workers" does not fit the group "others"`},
		"another's name":             {[]string{"--machine", "host-worker-1", "--node-name", "worker-2"}, `its node's name "worker-1" does not fit the name "worker-2"`},
		"another machine":            {[]string{"--machine", "i-1", "--node-name", "worker-1"}, `its ID "host-worker-1" does not fit the machine "i-1"`},
		"a pattern that it does not": {[]string{"--machine", "host-worker-1", "--pattern", "rack-*"}, `its node's name "worker-1" does not fit the pattern "rack-*"`},
	} {
		err := runTokens(t.Context(), b, nil, append([]string{"create", "cccccc." + secretHalf}, tc.args...)...)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if now := len(tokenSecretsOf(t, b)); now != before {
			t.Fatalf("%s: a token was made", name)
		}
	}
	for _, tc := range []struct {
		id   string
		args []string
		says string
	}{
		{"dddddd", []string{"--machine", "i-0123456789abcdef0"}, "no registered host has the machine i-0123456789abcdef0;"},
		{"eeeeee", []string{"--group", "nobodys", "--pattern", "rack-*"}, "no registered host has the group nobodys and the pattern rack-*;"},
		{"ffffff", []string{"--machine", "host-worker-1", "--group", "workers", "--pattern", "work*"}, ""},
		{"gggggg", []string{"--node-name", "worker-1", "--address", "172.31.0.200", "--group", "others"}, ""}, // which it is from now on
	} {
		if err := runTokens(t.Context(), b, nil, append([]string{"create", tc.id + "." + secretHalf}, tc.args...)...); err != nil {
			t.Fatal(err)
		}
		if said := b.Err.String(); !strings.Contains(said, tc.says) || strings.Contains(said, "no registered host") != (tc.says != "") {
			t.Errorf("%v: said %q", tc.args, said)
		}
	}
}

// A join command that nobody could use is known before the token is made.
func TestTokenCreateWithoutADoor(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{})
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "create", "--print-join-command"), "no ConfigMap kube-public/cluster-info", false)
	var secrets corev1.SecretList
	if err := b.Client.List(t.Context(), &secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("made %d, %v", len(secrets.Items), err)
	}
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "create", "--node-name", "a", "--group", "workers", "--print-join-command", "--usages", "authentication"), "no ConfigMap", false)
	b = clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	clitest.WantErr(t, runTokens(t.Context(), b, nil, "create", "--print-join-command", "--usages", "authentication"), "signing is not among its usages", false)
}
