// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/console"
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
		issued: func(context.Context, *console.Options) ([]issued.Entry, error) { return entries, nil },
		bindings: func(context.Context, *console.Options) ([]rbacv1.ClusterRoleBinding, error) {
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

// A binding holds where muster's controller decides. Elsewhere upstream's approves the token for any node, which must not come as a surprise.
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

// What lets a node join again is bound to its name as well.
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

// What nobody could use, or would take the wrong machine for a host, is not made; of a machine that no list has it is said.
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

func tokenSecretsOf(t *testing.T, b *clitest.Bench) []corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	if err := b.Client.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	return secrets.Items
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

func TestDeleteHost(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	if err := runTokens(t.Context(), b, nil, "create", "--node-name", "worker-1", "--address", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMap
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: "machines"}, &list); err != nil {
		t.Fatal(err)
	}
	list.Data["machines.yaml"] += "- id: i-1\n  nodeName: listed-by-hand\n"
	if err := b.Client.Update(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	command := deleteHost(b.O, b.Planes.Cluster)
	command.SetContext(t.Context())
	if hosts, _ := command.ValidArgsFunction(command, nil, ""); !slices.Equal(hosts, []string{"worker-1"}) {
		t.Errorf("completed %q", hosts)
	}
	if hosts, _ := command.ValidArgsFunction(command, []string{"worker-1"}, ""); len(hosts) > 0 {
		t.Errorf("completed %q twice", hosts)
	}
	err := b.Run(t.Context(), command, "worker-2", "worker-1")
	clitest.WantErr(t, err, `no host "worker-2" is registered`, false)
	if b.Out.String() != "host \"worker-1\" forgotten\n" {
		t.Errorf("said %q", b.Out.String())
	}
	if err := b.Run(t.Context(), deleteHost(b.O, b.Planes.Cluster), "worker-1"); err == nil {
		t.Error("forgotten twice")
	}
}
