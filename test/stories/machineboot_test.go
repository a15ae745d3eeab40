// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMachineBoot boots machines by launch templates: the one that docs/machine-boot.md shows, which joins by its role,
// and one as it was written for Amazon Linux 2, whose user data is MIME multipart with a script that calls
// /etc/eks/bootstrap.sh. That one joins by a token.
//
//story:about node machine/launchdata machine/machine/local
func TestMachineBoot(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	for _, step := range []struct {
		name string
		run  func(*testing.T, *installation)
	}{
		{"what the page shows is what happens", machineBootPage},
		{"user data for Amazon Linux 2", amazonLinux2},
		{"user data that fails keeps a machine from becoming a node, and is told", userDataThatFails},
		{"what the machine was told, and its certificates", toldOnMachine},
		{"the metadata service answers the machine", metadataOnMachine},
		{"and pods only where a hop more is allowed", metadataInPods},
		{"the agent cannot be killed from within", killedFromWithin},
		{"a machine whose agent is killed boots again, and its scripts do not run again", rebooted},
		{"killed at any step of a boot it comes to the same", killedAtEachStep},
		{"what a machine has left to join by lets it in", othersBoot},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t)) }) {
			return
		}
	}
}

// The page's machine, and that of Amazon Linux 2.
const (
	pageMachine = "172.31.0.5"
	oldMachine  = "172.31.0.6"
	oldNode     = "ip-172-31-0-6.ec2.internal"
)

// machineBootPage runs what docs/machine-boot.md shows. Its node group is in workers.yaml.
func machineBootPage(t *testing.T, i *installation) {
	block := regexp.MustCompile(`(?m)^    apiVersion: muster\.dev/v1alpha1\n(    .*\n)+`).FindString(readPage(t, "machine-boot.md"))
	group := strings.ReplaceAll(strings.TrimPrefix(block, "    "), "\n    ", "\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "workers.yaml"), []byte(group), 0o600); err != nil {
		t.Fatal(err)
	}
	i.eventually("kubectl is told of node groups", func() error {
		_, err := i.kubectl("get", "--context=muster-management", "-n=muster", "nodegroups")
		return err
	})
	i.follow(page{name: "machine-boot.md", least: 8, dir: dir})
}

// amazonLinux2 writes down in its scripts that they ran. The first one fails, which is to be ignored. Nothing stands
// between the second one and its header, as EKS wrote it.
func amazonLinux2(t *testing.T, i *installation) {
	authority := base64.StdEncoding.EncodeToString([]byte(i.mustKubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`) + "\n"))
	userData := `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="==BOUNDARY=="

--==BOUNDARY==
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo first >>/var/lib/scripts-ran
exit 7

--==BOUNDARY==
Content-Type: text/x-shellscript; charset="us-ascii"
#!/bin/bash
set -ex
echo second >>/var/lib/scripts-ran
/etc/eks/bootstrap.sh muster --b64-cluster-ca ` + authority + ` --apiserver-endpoint https://172.31.0.4:443 --dns-cluster-ip 10.100.0.10 --kubelet-extra-args '--node-labels=disk=ssd,rack=seven --max-pods=29' --use-max-pods false

--==BOUNDARY==
Content-Type: application/node.eks.aws

apiVersion: node.muster.dev/v1alpha1
kind: NodeConfig
spec:
  instance:
    userDataFailurePolicy: Ignore
--==BOUNDARY==--
`
	group, err := json.Marshal(map[string]any{
		"apiVersion": "muster.dev/v1alpha1", "kind": "NodeGroup", "metadata": map[string]any{"namespace": "muster", "name": "old"},
		"spec": map[string]any{
			"name": "old", "bootstrap": "Token", "scalingConfig": map[string]any{"desiredSize": 1}, "labels": map[string]any{"team": "green"},
			"launchTemplate": map[string]any{"userData": userData, "metadataOptions": map[string]any{"httpPutResponseHopLimit": 2}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	i.apply(string(group), "--context=muster-management")
	i.nodeIsReady(oldNode)
	// The script's labels and the group's are put together; of the pods, the script has the last word.
	if got := i.mustKubectl("get", "node", oldNode, "-o", `jsonpath={.metadata.labels.disk} {.metadata.labels.rack} {.metadata.labels.team} {.metadata.labels.muster\.dev/nodegroup} {.status.capacity.pods} {.spec.providerID}`); !strings.HasPrefix(got, "ssd seven green old 29 aws:///us-east-1a/i-") {
		t.Errorf("labels, pods and provider's ID are %s", got)
	}
	i.scriptsRan("first\nsecond\n")
	out, _ := i.muster("exec", oldMachine, "--", "cat", "/var/log/user-data.log")
	if !strings.Contains(out, "--apiserver-endpoint: spec.cluster.apiServerEndpoint https://172.31.0.4:443") || !strings.Contains(out, "the node agent goes on from there") {
		t.Errorf("the log of the user data says:\n%s", out)
	}
	if modes, _ := i.muster("exec", oldMachine, "--", "stat", "--format=%a %U", "/etc/eks/nodeadm.d/40-bootstrap.yaml", "/var/log/user-data.log"); modes != "600 root\n600 root\n" {
		t.Errorf("modes of the NodeConfig and the log: %s", modes)
	}
	if out, _ := i.muster("logs", oldNode); !strings.Contains(out, "user data, part 1") || !strings.Contains(out, "exit") {
		t.Errorf("nothing is said of the script that failed:\n%s", out)
	}
}

func (i *installation) scriptsRan(want string) {
	i.t.Helper()
	if got, _ := i.muster("exec", oldMachine, "--", "cat", "/var/lib/scripts-ran"); got != want {
		i.t.Errorf("these scripts ran: %q, not %q", got, want)
	}
}

// nodeIsReady waits until a node is, and tells what it waited for.
func (i *installation) nodeIsReady(node string) {
	i.t.Helper()
	var waited []string
	took := i.eventually(node+" is Ready", func() error {
		err := i.readyNode(node)
		if err != nil && !slices.Contains(waited, err.Error()) {
			waited = append(waited, err.Error())
		}
		return err
	})
	i.t.Logf("%s was Ready after %s; before: %s", node, took.Round(10*time.Millisecond), strings.Join(waited, "; "))
}

// readyNode reports a node that is not Ready.
func (i *installation) readyNode(node string) error {
	said, err := i.kubectl("get", "node", node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`)
	if err == nil && !strings.HasPrefix(said, "True") {
		err = fmt.Errorf("Ready is %q", said)
	}
	return err
}

func toldOnMachine(t *testing.T, i *installation) {
	out, _ := i.muster("exec", oldMachine, "--", "muster", "node", "config", "show", "-c", "imds://user-data", "-c", "/etc/eks/nodeadm.d")
	for _, want := range []string{
		`spec\.cluster\.apiServerEndpoint +https://172\.31\.0\.4:443 +\S*40-bootstrap\.yaml`,
		`spec\.kubelet\.flags\[0\] +--node-labels=eks\.amazonaws\.com/capacityType=ON_DEMAND,eks\.… +user data`,
		`spec\.kubelet\.flags\[1\] +--node-labels=disk=ssd,rack=seven +\S*40-bootstrap\.yaml`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("node config show says nothing like %s:\n%s", want, out)
		}
	}
	if got := i.mustKubectl("get", "nodes", "--selector=muster.dev/nodegroup=old,team=green,disk=ssd,eks.amazonaws.com/nodegroup=old", "-o", "name"); got != "node/"+oldNode {
		t.Errorf("the nodes with the labels of the group and of its script are %q", got)
	}
	if secret := regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`).FindString(out); secret != "" {
		t.Errorf("node config show prints a token")
	}
	if out, _ := i.muster("exec", oldMachine, "--", "muster", "node", "config", "check", "-c", "imds://user-data", "-c", "/etc/eks/nodeadm.d"); !strings.Contains(out, "The NodeConfig is good") {
		t.Errorf("node config check says:\n%s", out)
	}
	i.eventually("both certificates are good", func() error {
		out, talk, err := i.try("exec", oldMachine, "--", "muster", "node", "certs")
		if err == nil && strings.Count(out, "O=system:nodes, CN=system:node:"+oldNode) != 2 {
			err = errors.New("they are others")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s%s", err, out, talk)
		}
		return err
	})
}

// askMetadata asks as programs do on instances of EC2: for a token, and with it. It returns the answer and its status.
func (i *installation) askMetadata(machine, path string) string {
	i.t.Helper()
	out, _ := i.muster("exec", machine, "--", "sh", "-c", `set -e
token=$(curl -sSX PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60')
curl -sS -w ' %{http_code}' -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/`+path)
	return out
}

func metadataOnMachine(t *testing.T, i *installation) {
	id := i.machineAt(oldMachine)
	raw, ok := strings.CutSuffix(i.askMetadata(oldMachine, "dynamic/instance-identity/document"), " 200")
	var document struct{ InstanceID, InstanceType, PrivateIP, Region string }
	if err := json.Unmarshal([]byte(raw), &document); err != nil || !ok {
		t.Fatalf("the identity document is %s (%v)", raw, err)
	}
	if document.InstanceID != id || document.PrivateIP != oldMachine || document.InstanceType != "local" || document.Region != "us-east-1" {
		t.Errorf("the identity document is %+v", document)
	}
	for path, want := range map[string]string{"meta-data/instance-id": id, "meta-data/local-ipv4": oldMachine, "meta-data/local-hostname": oldNode} {
		if got := i.askMetadata(oldMachine, path); got != want+" 200" {
			t.Errorf("%s is %s", path, got)
		}
	}
	if got := i.askMetadata(oldMachine, "user-data"); !strings.Contains(got, "/etc/eks/bootstrap.sh muster") || !strings.Contains(got, "application/node.eks.aws") {
		t.Errorf("the user data is\n%s", got)
	}
	if got := i.askMetadata(oldMachine, "meta-data/nothing"); !strings.HasSuffix(got, " 404") {
		t.Errorf("what is not there is answered %s", got)
	}
	for want, args := range map[string]string{
		"401": "http://169.254.169.254/latest/meta-data/instance-id",
		"400": "-X PUT http://169.254.169.254/latest/api/token",
		"403": "-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' -H 'X-Forwarded-For: 10.0.0.1' http://169.254.169.254/latest/api/token",
	} {
		if got, _ := i.muster("exec", oldMachine, "--", "sh", "-c", "curl -sS -o /dev/null -w '%{http_code}' "+args); got != want {
			t.Errorf("%s is answered %s, not %s", args, got, want)
		}
	}
	// The token of one machine is nothing to another, and each hears of itself only.
	token, _ := i.muster("exec", pageMachine, "--", "sh", "-c", "curl -sSX PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60'")
	if got, _ := i.muster("exec", oldMachine, "--", "sh", "-c", "curl -sS -o /dev/null -w '%{http_code}' -H 'X-aws-ec2-metadata-token: "+token+"' http://169.254.169.254/latest/user-data"); got != "401" {
		t.Errorf("with another machine's token one is answered %s", got)
	}
	if got := i.askMetadata(pageMachine, "meta-data/instance-type"); got != "m5.large 200" {
		t.Errorf("the type of the page's machine is %s", got)
	}
}

// machineAt is the ID of the machine with an address.
func (i *installation) machineAt(address string) string {
	i.t.Helper()
	node := "ip-" + strings.ReplaceAll(address, ".", "-") + ".ec2.internal"
	return strings.TrimPrefix(i.mustKubectl("get", "node", node, "-o", "jsonpath={.spec.providerID}"), "aws:///us-east-1a/")
}

// metadataInPods asks from pods on both machines without a token: whoever is heard is answered that he must have one.
func metadataInPods(t *testing.T, i *installation) {
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")
	for address, answered := range map[string]bool{oldMachine: true, pageMachine: false} {
		node := "ip-" + strings.ReplaceAll(address, ".", "-") + ".ec2.internal"
		pod := i.mustKubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}")
		_, err := i.kubectl("exec", pod, "--", "/workload", "fetch", "http://169.254.169.254/latest/user-data")
		switch {
		case err == nil:
			t.Errorf("a pod on %s reads user data without a token", node)
		case strings.Contains(err.Error(), "401") != answered:
			t.Errorf("a pod on %s is answered: %v, and should be: %v", node, err, answered)
		case !answered && !strings.Contains(err.Error(), "connection reset by peer") && !strings.Contains(err.Error(), "Timeout"):
			t.Errorf("a pod on %s is neither cut off nor left without an answer: %v", node, err)
		}
	}
}

// killedFromWithin sends its own process number one the signal that cannot be caught. The kernel does not deliver it
// (pid_namespaces(7)).
func killedFromWithin(t *testing.T, i *installation) {
	name := "machine/" + i.machineAt(oldMachine)
	before := i.processes()[name]
	i.muster("exec", oldMachine, "--", "sh", "-c", "kill -9 1")
	if out, _ := i.muster("exec", oldMachine, "--", "cat", "/proc/1/comm"); !strings.Contains(out, "muster") {
		t.Errorf("process number one is %s", out)
	}
	if now := i.processes()[name]; now.PID != before.PID || now.PID == 0 {
		t.Errorf("the machine is process %d, was %d", now.PID, before.PID)
	}
}

// rebooted kills the agent from outside, which is process number one: all else on the machine goes with it, as when the
// power fails.
func rebooted(t *testing.T, i *installation) {
	id := i.machineAt(oldMachine)
	identity := i.mustKubectl("get", "node", oldNode, "-o", "jsonpath={.metadata.uid}")
	certificate, _ := i.muster("exec", oldMachine, "--", "readlink", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	old := i.kill("machine/" + id)
	i.eventually("the machine boots again", func() error {
		if p, ok := i.processes()["machine/"+id]; !ok || p.PID == old.PID {
			return errors.New("not yet")
		}
		return nil
	})
	// The status of before may be there still; a kubelet that runs and answers is that of now.
	i.eventually("its pods answer again", func() error {
		pod, err := i.kubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+oldNode, "-o", "jsonpath={.items[0].metadata.name}")
		if err == nil {
			_, err = i.kubectl("exec", pod, "--", "/workload", "env")
		}
		return err
	})
	i.nodeIsReady(oldNode)
	i.scriptsRan("first\nsecond\n")
	if now := i.mustKubectl("get", "node", oldNode, "-o", "jsonpath={.metadata.uid}"); now != identity {
		t.Errorf("the node is another: %s, was %s", now, identity)
	}
	if now, _ := i.muster("exec", oldMachine, "--", "readlink", "/var/lib/kubelet/pki/kubelet-client-current.pem"); now != certificate {
		t.Errorf("the client certificate is %s, was %s", now, certificate)
	}
	if got := i.mustKubectl("get", "node", oldNode, "-o", "jsonpath={.metadata.labels.disk} {.status.capacity.pods}"); got != "ssd 29" {
		t.Errorf("after the reboot label and pods are %s", got)
	}
	if events := i.mustKubectl("--context=muster-management", "get", "events", "-A", "-o", "jsonpath={.items[*].reason}"); !strings.Contains(events, "Relaunched") {
		t.Errorf("no event tells that the machine was booted again: %s", events)
	}
}
