// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// othersBoot has machines boot that have less to show than others: certificates that expired while they were off, or
// what EKS tells its nodes and nothing of muster's.
func othersBoot(t *testing.T, i *installation) {
	var claims sync.Mutex
	for name, c := range map[string]struct {
		bootstrap, userData string
		run                 func(*victim)
	}{
		"slept-role":  {"Role", "#!/bin/true\n", (*victim).sleptByRole},
		"slept-token": {"Token", "#!/bin/true\n", (*victim).sleptByToken},
		"eks-role":    {"Role", unusable, (*victim).eksByRole},
		"eks-none":    {"Token", unusable, (*victim).eksByNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &victim{installation: i.in(t), group: name, bootstrap: c.bootstrap, userData: c.userData, claims: &claims}
			v.launch()
			c.run(v)
			v.muster("delete", "nodegroup", name)
		})
	}
}

// sleep has the machine's certificate expire, and its power fail.
func (v *victim) sleep(kind string, usage x509.ExtKeyUsage) {
	v.t.Helper()
	pki := filepath.Join(v.disk(), "var/lib/kubelet/pki")
	name := "kubelet-" + kind + "-2026-01-01-00-00-00.pem"
	if err := os.WriteFile(filepath.Join(pki, name), []byte(v.expired(v.node, usage, v.node)), 0o600); err != nil {
		v.t.Fatal(err)
	}
	link := filepath.Join(pki, "kubelet-"+kind+"-current.pem")
	if err := errors.Join(os.Symlink("/var/lib/kubelet/pki/"+name, link+".new"), os.Rename(link+".new", link)); err != nil {
		v.t.Fatal(err)
	}
	v.kill(v.bootsAgain())
}

// certs is what muster node certs says of it, and whether it is content.
func (v *victim) certs() (string, error) {
	out, talk, err := v.try("node", "certs", v.id)
	return out + talk, err
}

// certsAreGood waits until there is no more to say of its certificates.
func (v *victim) certsAreGood() {
	v.t.Helper()
	v.eventually("its certificates are good", func() error {
		said, err := v.certs()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return err
	})
}

// says waits until the agent has logged all of these in one line, since it was booted last.
func (v *victim) says(parts ...string) {
	v.t.Helper()
	v.eventually("the agent says "+strings.Join(parts, ", "), func() error {
		if log := v.look().log; !anyLine(log, parts...) {
			return fmt.Errorf("it says\n%s", log)
		}
		return nil
	})
}

// sleptByRole has nothing but a serving certificate that could expire: it comes in by its role, as ever, and asks for
// another.
func (v *victim) sleptByRole() {
	v.comesBack()
	v.certsAreGood()
	v.sleep("server", x509.ExtKeyUsageServerAuth)
	v.comesBack()
	v.certsAreGood()
	if said, _ := v.certs(); !strings.Contains(said, "joined by its machine's role") {
		v.t.Errorf("it is said:\n%s", said)
	}
}

// sleptByToken has an expired client certificate and no token, as its group makes no other for a node that there is. It
// says what to do, and that lets it in.
func (v *victim) sleptByToken() {
	v.comesBack()
	uid := v.mustKubectl("get", "node", v.node, "-o", "jsonpath={.metadata.uid}")
	v.sleep("client", x509.ExtKeyUsageClientAuth)
	v.says("client certificate expired at ", "muster token create --node-name "+v.node+" --rejoin", "muster node init")
	if said, err := v.certs(); err == nil || !strings.Contains(said, "Expired") {
		v.t.Errorf("muster node certs is content: %v\n%s", err, said)
	}
	v.recordExpired(v.node)
	token, _ := v.muster("token", "create", "--node-name", v.node, "--rejoin")
	init := v.command(v.t.Context(), "exec", v.id, "--", "muster", "node", "init", "-c", "imds://user-data", "-c", "-")
	init.Stdin = strings.NewReader("{apiVersion: node.muster.dev/v1alpha1, kind: NodeConfig, spec: {join: {token: " + strings.TrimSpace(token) + "}}}")
	var talk bytes.Buffer
	init.Stdout, init.Stderr = &talk, &talk
	if err := init.Run(); err != nil {
		v.t.Fatalf("muster node init: %v\n%s", err, &talk)
	}
	v.comesBack()
	v.certsAreGood()
	if now := v.mustKubectl("get", "node", v.node, "-o", "jsonpath={.metadata.uid}"); now != uid {
		v.t.Errorf("the node is another: %s, was %s", now, uid)
	}
	if left, err := os.ReadFile(filepath.Join(v.disk(), "etc/eks/nodeadm.d/90-init.yaml")); err != nil || strings.Contains(string(left), strings.TrimSpace(token)) {
		v.t.Errorf("the token is kept: %v", err)
	}
}

// unusable is user data that a machine waits with for other.
const unusable = "{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig, spec: {instance: {nonsense: true}}}"

// toldByEKS has the machine be told what EKS tells its nodes, and nothing of muster's.
func (v *victim) toldByEKS() {
	v.t.Helper()
	v.says("user data cannot be used", "nonsense")
	text := fmt.Sprintf(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: muster
    apiServerEndpoint: https://172.31.0.4:443
    certificateAuthority: %s
    cidr: 10.100.0.0/16
  kubelet:
    config: {maxPods: 23}
    flags: [--node-labels=told-by=eks]
`, base64.StdEncoding.EncodeToString([]byte(v.mustKubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)+"\n")))
	if err := os.WriteFile(filepath.Join(v.dir.Machine(v.id), "user-data"), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// eksByRole becomes a node by what EKS tells its nodes.
func (v *victim) eksByRole() {
	v.toldByEKS()
	v.comesBack()
	v.certsAreGood()
	v.says("it was told no token, so it proves itself by its role muster-node-muster, as EKS's nodes do")
	if got := v.mustKubectl("get", "node", v.node, "-o", `jsonpath={.metadata.labels.told-by} {.status.capacity.pods} {.spec.providerID} {.metadata.labels.muster\.dev/nodegroup}`); got != "eks 23 aws:///us-east-1a/"+v.id {
		v.t.Errorf("the node is %s", got)
	}
}

// eksByNothing has no role, and says that it lacks one.
func (v *victim) eksByNothing() {
	v.toldByEKS()
	v.says("user data cannot be used", "spec.join: Required value", "it was told no token, and its instance has no role", "give a token (spec.join.token or tokenFile), or launch it with an instance profile")
	if nodes := v.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}"); strings.Contains(nodes, v.id) {
		v.t.Errorf("%s is a node: %s", v.id, nodes)
	}
}
