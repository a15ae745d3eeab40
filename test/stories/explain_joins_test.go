// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
)

// TestExplainJoins has machines that cannot become nodes, each for a reason of its own, and asks for each by the name of the
// machine: the identifier, alone. Then it has nodes in trouble, pods that wait, and roles that are refused.
//
//story:about explain/cause explain/diagnosis explain/evidence explain/nodeevidence machine/fargate ./cmd/muster/explain
func TestExplainJoins(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	machine, _ := i.theMachine()
	t.Run("user data", func(t *testing.T) { badUserData(t, i) })
	t.Run("roles", func(t *testing.T) { badRoles(t, i.in(t)) })
	t.Run("nodes", func(t *testing.T) { nodesInTrouble(t, i) })
	for _, step := range []struct {
		name string
		run  func(*testing.T, *installation, string)
	}{
		{"aws-auth", badAWSAuth},
		{"pods", waitingPods},
		{"a request that nobody decides", requestThatWaits},
		{"a disruption budget", heldByABudget},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t), machine) })
	}
}

// toldAfter is a part of user data that has the last word about a machine's configuration: a NodeConfig in the directory
// that the agent reads after its user data. A script runs with it.
func toldAfter(version, spec, script string) string {
	return "#!/bin/sh\nmkdir -p /etc/eks/nodeadm.d\ncat >/etc/eks/nodeadm.d/50-cause.yaml <<'EOF'\napiVersion: " + version + "\nkind: NodeConfig\nspec: " + spec + "\nEOF\n" + script + "\n"
}

// otherAuthority is the certificate of an authority that nobody trusts.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// output begins a script that drops packets of a machine to the API server.
const output = "nft add table ip cause\nnft add chain ip cause o '{ type filter hook output priority 0; }'\nnft add rule ip cause o ip daddr 172.31.0.4 tcp dport 443 "

// badUserData has a machine for each mistake that user data, or what runs on a machine, can have.
func badUserData(t *testing.T, i *installation) {
	const eks, own = "node.eks.aws/v1alpha1", "node.muster.dev/v1alpha1"
	told := func(spec string) string { return toldAfter(eks, spec, "") }
	for name, test := range map[string]struct{ group, userData, cause, onNode string }{
		"cluster":    {userData: told("{cluster: {name: another}}"), cause: "M-IAM-07"},
		"host":       {userData: told("{cluster: {apiServerEndpoint: 'https://nope.invalid'}}"), cause: "M-NET-26", onNode: "M-NET-26"},
		"refuses":    {userData: told("{cluster: {apiServerEndpoint: 'https://127.0.0.1:4'}}"), cause: "M-NET-27"},
		"drops":      {userData: "#!/bin/sh\nset -e\n" + output + "drop\n", cause: "M-NET-23"},
		"large":      {userData: "#!/bin/sh\nset -e\nip link set dev eth0 gso_max_segs 1\n" + output + "meta length '>' 900 drop\n", onNode: "M-NET-29"},
		"authority":  {userData: told("{cluster: {certificateAuthority: " + otherAuthority(t) + "}}"), cause: "M-TLS-33"},
		"lacks-name": {userData: toldAfter(eks, "{cluster: {apiServerEndpoint: 'https://other.example'}}", "echo 172.31.0.4 other.example >>/etc/hosts"), cause: "M-TLS-34"},
		"proxy":      {userData: told("{instance: {environment: {default: {HTTPS_PROXY: 'http://127.0.0.1:3128'}}}}"), cause: "M-NET-28"},
		"token":      {group: "bootstrap: Token, ", userData: toldAfter(own, "{join: {token: abcdef.0123456789abcdef}}", ""), cause: "M-TLS-39", onNode: "M-TLS-39"},
		"port":       {userData: "#!/bin/sh\nsetsid -f python3 -c 'import socket, time; s = socket.create_server((\"\", 10250)); time.sleep(9999)' >/dev/null 2>&1 </dev/null\n", cause: "M-NODE-62"},
		"provider":   {userData: told("{kubelet: {flags: [--image-credential-provider-bin-dir=/nowhere]}}"), cause: "M-NODE-59"},
		"credential": {userData: "#!/bin/sh\nset -e\nprintf '#!/bin/sh\\nexit 3\\n' >/tmp/x\nchmod 755 /tmp/x\nmount --bind /tmp/x /usr/bin/aws-iam-authenticator\n", cause: "M-IAM-93"},
		"runtime":    {userData: told(`{containerd: {config: "version = 3\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"}}`), cause: "M-NODE-56"},
		"external":   {userData: told("{kubelet: {flags: [--cloud-provider=external]}}"), cause: "M-NAME-44"},
		"no-network": {userData: "#!/bin/sh\n(while :; do rm -f /etc/cni/net.d/*; sleep 0.05; done) >/dev/null 2>&1 </dev/null &\n", cause: "M-READY-63"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := i.in(t)
			id := i.machineComes(name, test.group+fmt.Sprintf("launchTemplate: {userData: %q}, ", test.userData))
			if test.cause != "" {
				i.explains("machine", id, 1, test.cause)
			}
			if test.onNode != "" {
				i.explainsItself(id, test.onNode)
			}
			i.muster("delete", "nodegroup", name)
		})
	}
	i.apply("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: old}, spec: {name: old, version: '1.30', scalingConfig: {desiredSize: 1}}}", managementContext)
	i.explains("nodegroup", "old", 1, "M-NODE-51")
	i.muster("delete", "nodegroup", "old")
}

// explainsItself waits until a machine names a cause by what it has itself.
func (i *installation) explainsItself(machine, cause string) {
	i.t.Helper()
	took := i.eventually(machine+" explains itself by "+cause, func() error {
		out, talk, err := i.try("node", "explain", machine)
		if code(err) != 1 || !strings.Contains(out, "\n"+cause+"  ") || !strings.Contains(out, "the cause is known") {
			return fmt.Errorf("exit code %d: %s%s", code(err), out, talk)
		}
		return nil
	})
	i.t.Logf("explained %s of a node after %.1f s from host", cause, took.Seconds())
}

// badRoles has machines come with roles that make no node of them.
func badRoles(_ *testing.T, i *installation) {
	w := newIAM(i.t, i)
	for name, test := range map[string]struct{ trusts, kind, cause string }{
		"untrusted": {"lambda.amazonaws.com", "EC2_LINUX", "M-IAM-22"},
		"person":    {"ec2.amazonaws.com", "STANDARD", "M-IAM-14"},
		"leaves":    {"ec2.amazonaws.com", "EC2_LINUX", "M-IAM-12"},
	} {
		w.mustAWS(nil, "iam", "create-role", "--role-name", name, "--assume-role-policy-document",
			`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "`+test.trusts+`"}, "Action": "sts:AssumeRole"}]}`)
		i.apply("{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: " + name + "}, spec: {principalARN: 'arn:aws:iam::" + iamAccount + ":role/" + name + "', type: " + test.kind + "}}")
		id := i.machineComes(name, "nodeRole: "+name+", ")
		if name == "leaves" {
			i.explains("machine", id, 0)
			var of struct {
				InstanceProfiles []struct{ InstanceProfileName string }
			}
			w.mustAWS(&of, "iam", "list-instance-profiles-for-role", "--role-name", name)
			for _, p := range of.InstanceProfiles {
				w.mustAWS(nil, "iam", "remove-role-from-instance-profile", "--role-name", name, "--instance-profile-name", p.InstanceProfileName)
			}
			w.mustAWS(nil, "iam", "delete-role", "--role-name", name)
		}
		i.explains("machine", id, 1, test.cause)
		i.muster("delete", "nodegroup", name)
	}
}

// nodesInTrouble has machines that are Ready get into trouble.
func nodesInTrouble(t *testing.T, i *installation) {
	for drill, cause := range map[string]string{"disk-full": "M-NODE-61"} {
		t.Run(drill, func(t *testing.T) {
			t.Parallel()
			i := i.in(t)
			id := i.machineComes(drill, "")
			i.explains("machine", id, 0)
			i.muster("drill", id, drill, "--for", "10m")
			i.explains("machine", id, 1, cause)
			i.muster("delete", "nodegroup", drill)
		})
	}
}

// badAWSAuth has entries of aws-auth that nobody can use.
func badAWSAuth(_ *testing.T, i *installation, _ string) {
	for _, test := range []struct{ arn, cause string }{
		{"arn:aws:iam::" + iamAccount + ":instance-profile/nodes", "M-IAM-02"},
		{"arn:aws:iam::" + iamAccount + ":rolle/nodes", "M-IAM-06"},
	} {
		i.apply("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: aws-auth}, data: {mapRoles: \"- {rolearn: '" + test.arn + "', username: someone, groups: [viewers]}\\n\"}}")
		i.explains("cluster", "muster", 1, test.cause)
	}
	i.mustKubectl("delete", "configmap", "--namespace", "kube-system", "aws-auth")
	i.explains("cluster", "muster", 0)
}

// waitingPods has pods that wait for what is not there, and pods whose role is not theirs.
func waitingPods(_ *testing.T, i *installation, _ string) {
	pod := func(name, spec, container string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 0, %scontainers: [{name: c, %s}]}}\n---\n", name, spec, container)
	}
	const image = `image: "muster.dev/workload:v1"`
	i.apply(pod("unloaded", "", `image: "nowhere.invalid/nobody:v1"`) + pod("serverless", "schedulerName: fargate-scheduler, ", image))
	i.explains("pod", "unloaded", 1, "M-POD-81")
	i.explains("pod", "serverless", 1, "M-POD-77")
	i.mustKubectl("delete", "--wait=false", "pod/unloaded", "pod/serverless")
	i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: sandbox}, spec: {name: sandbox, labels: {sandbox: none}, scalingConfig: {desiredSize: 1}, launchTemplate: {userData: %q}}}",
		toldAfter("node.eks.aws/v1alpha1", `{containerd: {config: "version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = 'nowhere.invalid/pause:1'\n"}}`, "")), managementContext)
	i.apply(pod("unsandboxed", "nodeSelector: {sandbox: none}, ", image))
	i.explains("pod", "unsandboxed", 1, "M-NODE-57")
	i.mustKubectl("delete", "--wait=false", "pod/unsandboxed")
	i.muster("delete", "nodegroup", "sandbox")

	// A pod asks for a role as its environment says. Its association goes, and then the trust of its role.
	w := newIAM(i.t, i)
	w.mustAWS(nil, "iam", "create-role", "--role-name", "app", "--assume-role-policy-document", podTrust)
	i.mustKubectl("create", "serviceaccount", "app")
	var made struct {
		Association struct{ AssociationID string }
	}
	associate := func() {
		w.mustAWS(&made, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "default", "--service-account", "app", "--role-arn", "arn:aws:iam::"+iamAccount+":role/app")
	}
	associate()
	asks := pod("asks", "serviceAccountName: app, ", image+", args: [serve]")
	i.eventually("the pod is given a way to credentials", func() error {
		env, err := i.kubectl("create", "--dry-run=server", "-f", i.manifest(asks), "-o", "jsonpath={.spec.containers[0].env[*].name}")
		if err == nil && !strings.Contains(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI") {
			err = errors.New(env)
		}
		return err
	})
	i.apply(asks)
	i.explains("pod", "asks", 0)
	w.mustAWS(nil, "eks", "delete-pod-identity-association", "--cluster-name", "muster", "--association-id", made.Association.AssociationID)
	i.explains("pod", "asks", 1, "M-POD-83")
	associate()
	i.explains("pod", "asks", 0)
	w.mustAWS(nil, "iam", "update-assume-role-policy", "--role-name", "app", "--policy-document", strings.Replace(podTrust, "pods.eks", "ec2", 1))
	i.explains("pod", "asks", 1, "M-POD-84")
	i.mustKubectl("delete", "--wait=false", "pod/asks", "serviceaccount/app")
	w.mustAWS(nil, "eks", "delete-pod-identity-association", "--cluster-name", "muster", "--association-id", made.Association.AssociationID)
}

// requestThatWaits has the certificate controller hang while a machine asks for its serving certificate.
func requestThatWaits(_ *testing.T, i *installation, _ string) {
	held := i.processes()[component.CertificateController]
	if held.PID == 0 {
		i.t.Fatalf("no certificate controller runs: %v", i.processes())
	}
	if err := syscall.Kill(held.PID, syscall.SIGSTOP); err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(held.PID, syscall.SIGCONT) }()
	id := i.machineComes("asking", "")
	i.explains("machine", id, 1, "M-TLS-37")
	if err := syscall.Kill(held.PID, syscall.SIGCONT); err != nil {
		i.t.Fatal(err)
	}
	i.explains("machine", id, 0)
	i.muster("delete", "nodegroup", "asking")
}

// heldByABudget has a disruption budget keep a machine that is to go.
func heldByABudget(_ *testing.T, i *installation, _ string) {
	id := i.machineComes("kept", "labels: {budget: kept}, ")
	i.explains("machine", id, 0)
	i.apply("{apiVersion: v1, kind: Pod, metadata: {name: kept, labels: {app: kept}}, spec: {terminationGracePeriodSeconds: 0, nodeSelector: {budget: kept}, containers: [{name: c, image: 'muster.dev/workload:v1', args: [serve]}]}}\n---\n" +
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: kept}, spec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}}")
	i.mustKubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/kept") // the budget keeps no pod that is Pending
	i.explains("pod", "kept", 0)
	i.muster("scale", "nodegroup", "kept", "0")
	i.explains("machine", id, 1, "M-UPDATE-70")
	i.mustKubectl("delete", "pdb", "kept")
	i.muster("delete", "nodegroup", "kept")
}
