// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// wholeBootstrapToken is what must not be found.
var wholeBootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// machineKeys are those that instance metadata gives a machine.
func (w *iam) machineKeys(machine, role string) keys {
	w.t.Helper()
	raw, ok := strings.CutSuffix(w.askMetadata(machine, "meta-data/iam/security-credentials/"+role), " 200")
	var answer struct {
		Code, Token string
		keys
		Expiration time.Time
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || !ok || answer.Code != "Success" || !strings.HasPrefix(answer.AccessKeyID, "ASIA") || time.Until(answer.Expiration) < time.Hour {
		w.t.Fatalf("instance metadata gives no good credentials (%v, %d bytes, key %s, until %s)", err, len(raw), answer.AccessKeyID, answer.Expiration)
	}
	answer.SessionToken = answer.Token
	return answer.keys
}

// podAsks asks for the node's credentials as a pod that has all it can have there: the network of a pod, and root's rights.
func (w *iam) podAsks(*people) {
	w.apply(workload)
	w.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")
	pod := w.mustKubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+nodeAt(pageMachine), "-o", "jsonpath={.items[0].metadata.name}")
	const path = "http://169.254.169.254/latest/meta-data/iam/security-credentials/muster-node"
	if out, err := w.kubectl("exec", pod, "--", "/workload", "fetch", path); err == nil || strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "200") {
		w.t.Errorf("the pod is answered: %s, %v", out, err)
	}
	out, talk, err := w.try("exec", pageMachine, "--", "sh", "-c", `pid=$(pgrep -o -f '^/workload serve') || exit 99
nsenter --target "$pid" --net curl -sS --max-time 3 -X PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60'`)
	if err == nil || out != "" || strings.Contains(talk, "exit code 99") {
		w.t.Errorf("in the network of a pod one gets a token: %q, %v, %s", out, err, talk)
	}
	w.t.Logf("a pod that asks for a token of instance metadata: %s", strings.TrimSpace(talk))
	k := w.machineKeys(pageMachine, "muster-node")
	id := w.machineAt(pageMachine)
	who, err := w.aws(w.as(k), "sts", "get-caller-identity", "--query", "Arn", "--output", "text")
	if err != nil || who != "arn:aws:sts::"+iamAccount+":assumed-role/muster-node/"+id {
		w.t.Errorf("the machine is %q: %v", who, err)
	}
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
}

// refusedMachine has a machine join with a role that the cluster lets in by another id, as after a role was deleted and made again; then with
// no entry at all; then it is let in, and in the end its instance is gone.
func (w *iam) refusedMachine(*people) {
	const arn = "arn:aws:iam::" + iamAccount + ":role/guests"
	w.mustAWS(nil, "iam", "create-role", "--role-name", "guests", "--assume-role-policy-document",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`)
	group := `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: guests}, spec: {clusterName: muster, nodeRole: guests, scalingConfig: {desiredSize: 1}}}`
	entry := func(id string) string {
		return "{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: guests}, spec: {principalARN: '" + arn + "', type: EC2_LINUX" + id + "}}"
	}
	w.apply(entry(", principalID: AROAAAAAAAAAAAAAAAAAA"))
	w.apply(group, "--context=muster-management")
	w.statusSays("i-", "the cluster does not let the machine in", "rule principal-id", "AccessEntry guests", "AROAAAAAAAAAAAAAAAAAA")
	id := strings.Trim(w.mustKubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup=guests", "-o", "jsonpath={.items[*].metadata.name}"), " ")
	if nodes := w.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}"); strings.Contains(nodes, id) {
		w.t.Errorf("the machine %s is a node: %s", id, nodes)
	}
	if events := w.mustKubectl("--context=muster-management", "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason} {.regarding.name}{.involvedObject.name}{"\n"}{end}`); !anyLine(events, "Refused", id) {
		w.t.Errorf("no Event tells of it: %s", events)
	}
	w.mustKubectl("delete", "accessentry", "guests")
	w.statusSays(id, "rule no-entry", "no entry names "+arn, "make an access entry for it")
	w.apply(entry(""))
	node := w.mustKubectl("--context=muster-management", "get", "machine", id, "-o", "jsonpath={.status.nodeName}")
	w.nodeIsReady(node, 60*time.Second)
	var address string
	w.eventually("the machine is Ready", 20*time.Second, func() error {
		out, err := w.kubectl("--context=muster-management", "get", "machine", id, "-o", `jsonpath={.status.phase} {.status.addresses[?(@.type=="InternalIP")].address}`)
		phase, rest, _ := strings.Cut(out, " ")
		if address = rest; err == nil && phase != "Ready" {
			err = errors.New(out)
		}
		return err
	})
	token := w.token(w.machineKeys(address, "guests"), "muster")
	if who, err := w.whoami(w.t.Context(), token); err != nil || who.Username != "system:node:"+node {
		w.t.Errorf("the machine is %q, not %s: %v", who.Username, node, err)
	}
	w.muster("delete", "nodegroup", "guests")
	why := w.refused("a token of an instance that is gone is refused", token, 403, "access-key")
	if !strings.Contains(why.Saw, id) {
		w.t.Errorf("the instance %s is not named: %+v", id, why)
	}
	w.forgotten(token)
}

// statusSays waits for a line of `muster status` that has all parts.
func (w *iam) statusSays(parts ...string) {
	w.t.Helper()
	took := w.eventually("muster status says "+strings.Join(parts, ", "), 30*time.Second, func() error {
		out, talk, err := w.try("status")
		if err == nil {
			return errors.New("all is well")
		}
		if !anyLine(out+talk, parts...) {
			return fmt.Errorf("it says:\n%s%s", out, talk)
		}
		return nil
	})
	w.t.Logf("muster status says so after %s", took.Round(100*time.Millisecond))
}
