// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
)

// TestAutoMode begins with no machine, by `muster up --auto`. Karpenter in the control plane launches one for the pods of
// CoreDNS, which are the first that wait, and ends it once nothing needs it. It is killed, and the service with it,
// between a pending pod and its machine. It hears of interruptions by a queue that nobody else sends to, and launches nothing
// in a zone that the cluster is shifted away from. At the end it is switched off: its machines go, and then itself.
//
//story:about cluster/karpentercontroller plane/netsandbox platform/seclude iam/identityservice addons/karpenter cloud/ec2/fleet cloud/awsapi cloud/arczonalshift
//story:needs karpenter
func TestAutoMode(t *testing.T) {
	i := newInstallation(t)
	if _, err := os.Stat(filepath.Join(i.bin, "addons", "karpenter")); err != nil {
		t.Fatalf("run `make karpenter` first, which builds Karpenter: %v", err)
	}
	began := time.Now()
	i.muster("up", "--auto")
	t.Logf("up --auto: %v", time.Since(began).Round(100*time.Millisecond))
	k := &karpenter{newIAM(t, i), "general-purpose"}
	for _, step := range []struct {
		name string
		run  func(*karpenter)
	}{
		{"from none and back", (*karpenter).fromNone},
		{"killed in the middle", (*karpenter).ownKilled},
		{"an interruption", (*karpenter).interrupted},
		{"nobody forges one", (*karpenter).unforged},
		{"a zonal shift", (*karpenter).shifted},
		{"what the host has not", (*karpenter).tooLarge},
		{"what it may not do", (*karpenter).confined},
		{"one Karpenter alone", (*karpenter).one},
		{"switched off", (*karpenter).off},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&karpenter{k.step(t), k.pool}) }) {
			return // the next step would begin with what this one left
		}
	}
}

// fromNone has CoreDNS run on a machine that was launched for it. Without it the machine goes.
func (k *karpenter) fromNone() {
	took := k.eventually("CoreDNS runs", func() error {
		out, err := k.kubectl("-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.status.availableReplicas}")
		if err == nil && (out == "" || out == "0") {
			claims, _ := k.kubectl("get", "nodeclaims,nodepools,ec2nodeclasses", "-o", "wide")
			err = fmt.Errorf("%q replicas are available\n%s", out, claims)
		}
		return err
	})
	dns := &karpenter{k.iam, "system"} // CoreDNS tolerates its taint, and both pools would do
	k.t.Logf("no machines to CoreDNS: %v more; machines %v", took.Round(100*time.Millisecond), dns.launched())
	if out := k.mustKubectl("get", "nodes", "-l", "!karpenter.sh/nodepool", "-o", "name"); out != "" {
		k.t.Errorf("there are machines of others: %s", out)
	}
	// People may change the NodePools, and a change stays.
	k.mustKubectl("patch", "nodepool", "general-purpose", "system", "--type=merge", "-p", `{"spec":{"disruption":{"consolidateAfter":"5s","budgets":[{"nodes":"100%"}]}}}`)
	k.mustKubectl("-n", "kube-system", "scale", "deployment", "coredns", "--replicas=0")
	k.empties()
	if left := dns.launched(); len(left) > 0 {
		k.t.Errorf("the machine of CoreDNS is left: %v", left)
	}
	if out := k.mustKubectl("get", "nodepool", "general-purpose", "-o", "jsonpath={.spec.disruption.consolidateAfter}"); out != "5s" {
		k.t.Errorf("consolidateAfter is %s again", out)
	}
}

// ownKilled ends Karpenter and the service while machines are on their way. No machine is there twice afterwards.
func (k *karpenter) ownKilled() {
	k.wants("small", 2, "{cpu: 500m, memory: 256Mi}")
	k.eventually("a NodeClaim is made", func() error {
		out, err := k.kubectl("get", "nodeclaims", "-o", "name")
		if err == nil && out == "" {
			err = errors.New("there is none")
		}
		return err
	})
	k.kill(component.Karpenter)
	k.kill("serve")
	k.t.Logf("two pods run after %v more", k.runs("small", 2).Round(100*time.Millisecond))
	k.owned(2)
	k.empties()
}

// unforged sends an interruption that is none, as the account's administrator: the queue takes it from nobody, and is as it
// was after somebody changed it.
func (k *karpenter) unforged() {
	const name = "muster-karpenter-muster"
	var queue struct {
		QueueURL string `json:"QueueUrl"`
	}
	k.mustAWS(&queue, "sqs", "get-queue-url", "--queue-name", name)
	out, err := k.aws(k.admin, "sqs", "send-message", "--queue-url", queue.QueueURL, "--message-body", `{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"i-0123456789abcdef0"}}`)
	if err == nil || !strings.Contains(err.Error()+out, "AccessDenied") {
		k.t.Errorf("an interruption by the administrator: %v\n%s", err, out)
	}
	k.mustAWS(nil, "sqs", "set-queue-attributes", "--queue-url", queue.QueueURL, "--attributes", "Policy=")
	k.mustAWS(nil, "events", "disable-rule", "--name", name)
	k.eventually("the queue and its rule are as they were", func() error {
		policy, err := k.aws(k.admin, "sqs", "get-queue-attributes", "--queue-url", queue.QueueURL, "--attribute-names", "Policy")
		if err == nil && !strings.Contains(policy, "NobodyElse") {
			err = errors.New(policy)
		}
		if err != nil {
			return err
		}
		rule, err := k.aws(k.admin, "events", "describe-rule", "--name", name, "--query", "State", "--output", "text")
		if err == nil && strings.TrimSpace(rule) != "ENABLED" {
			err = errors.New(rule)
		}
		return err
	})
}

// shifted shifts the cluster away from the zone that a machine was launched in. The next machine is in another zone.
func (k *karpenter) shifted() {
	zone := func() string {
		k.wants("zoned", 1, "{cpu: 500m, memory: 256Mi}")
		k.runs("zoned", 1)
		return k.mustKubectl("get", "nodes", "-l", "karpenter.sh/nodepool="+k.pool, "-o", `jsonpath={.items[0].metadata.labels.topology\.kubernetes\.io/zone}`)
	}
	first := zone()
	k.empties()
	before := k.processes()[component.Karpenter].PID
	k.mustAWS(nil, "eks", "update-cluster-config", "--name", "muster", "--zonal-shift-config", "enabled=true")
	k.eventually("Karpenter is started to ask about zonal shifts", func() error {
		if now := k.processes()[component.Karpenter].PID; now == 0 || now == before {
			return fmt.Errorf("its process is %d, and was %d", now, before)
		}
		return nil
	})
	k.muster("zonal-shift", "start", first, "--expires-in", "1h", "--comment", "story")
	took := k.eventually("Karpenter says so", func() error {
		out, err := k.kubectl("get", "events", "-A", "--field-selector", "involvedObject.kind=NodePool", "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
		if err == nil && !strings.Contains(out, "ZonalShift") {
			err = errors.New(out)
		}
		return err
	})
	k.t.Logf("Karpenter heard of the zonal shift %v after its start", took.Round(100*time.Millisecond))
	if second := zone(); second == first {
		k.t.Errorf("a machine was launched in %s, which the cluster is shifted away from", second)
	}
	k.empties()
	id := k.mustKubectl(managementContext, "-n", "muster", "get", "zonalshifts", "-o", "jsonpath={.items[0].metadata.name}")
	k.muster("zonal-shift", "cancel", id)
}

// confined takes the credentials that Karpenter has: they are for machines with the tags of this cluster, and the ports
// of Karpenter are open to nobody.
func (k *karpenter) confined() {
	raw, err := os.ReadFile(filepath.Join(k.cluster().Component(component.Karpenter), "credentials.json"))
	if err != nil {
		k.t.Fatal(err)
	}
	var own keys
	if err := json.Unmarshal(raw, &own); err != nil {
		k.t.Fatal(err)
	}
	if out, err := k.aws(k.as(own), "ec2", "describe-instances"); err != nil {
		k.t.Errorf("what Karpenter needs: %v\n%s", err, out)
	}
	for _, call := range []string{
		"iam create-user --user-name x",
		"iam create-access-key --user-name admin",
		"ec2 create-tags --resources i-0123456789abcdef0 --tags Key=kubernetes.io/cluster/muster,Value=owned",
		"ec2 run-instances --image-id resolve:ssm:/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id --instance-type t3.small --dry-run",
		"eks delete-cluster --name muster",
		"sts assume-role --role-arn arn:aws:iam::" + iamAccount + ":role/muster-node-muster --role-session-name karpenter",
	} {
		if out, err := k.aws(k.as(own), strings.Fields(call)...); err == nil {
			k.t.Errorf("the role of Karpenter may %s:\n%s", call, out)
		} else if !strings.Contains(err.Error()+out, "nauthorized") && !strings.Contains(err.Error()+out, "AccessDenied") {
			k.t.Errorf("%s: %v\n%s", call, err, out)
		}
	}
	all, err := k.running()
	if err != nil {
		k.t.Fatal(err)
	}
	network := func(pid int) string {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			k.t.Fatal(err)
		}
		return link
	}
	if own := network(all[component.Karpenter].PID); own == network(os.Getpid()) {
		k.t.Error("Karpenter is in the network of the host")
	}
}

// one refuses Karpenter's add-on beside it.
func (k *karpenter) one() {
	out, err := k.aws(k.admin, "eks", "create-addon", "--cluster-name", "muster", "--addon-name", "karpenter")
	if err == nil || !strings.Contains(err.Error()+out, "Karpenter runs in the control plane of cluster muster") {
		k.t.Errorf("the add-on beside it: %v\n%s", err, out)
	}
	if _, said, err := k.try("create", "addon", "karpenter"); err == nil || !strings.Contains(said, "Karpenter runs in the control plane of cluster muster") || strings.Count(strings.TrimSpace(said), "\n") > 0 {
		k.t.Errorf("the add-on beside it, by muster: %v\n%s", err, said)
	}
}

// off switches Karpenter off while a machine runs: the machine goes, then Karpenter, its role and its rights.
func (k *karpenter) off() {
	k.wants("small", 1, "{cpu: 500m, memory: 256Mi}")
	k.runs("small", 1)
	k.owned(1)
	k.muster("up", "--auto=false")
	took := k.eventually("the machine is gone", func() error {
		if left := k.launched(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	k.t.Logf("off to no machine: %v", took.Round(100*time.Millisecond))
	k.eventually("Karpenter ended", func() error {
		all, err := k.running()
		if err != nil {
			return err
		}
		for _, name := range []string{component.Karpenter, component.KarpenterProxy} {
			if _, runs := all[name]; runs {
				return fmt.Errorf("%s runs", name)
			}
		}
		return nil
	})
	var roles struct{ Roles []struct{ RoleName string } }
	k.mustAWS(&roles, "iam", "list-roles")
	if slices.ContainsFunc(roles.Roles, func(r struct{ RoleName string }) bool { return strings.HasPrefix(r.RoleName, "muster-karpenter") }) {
		k.t.Errorf("its role is left: %v", roles.Roles)
	}
	if out := k.mustKubectl("get", "clusterrolebindings,nodepools,ec2nodeclasses", "-o", "name"); strings.Contains(out, "karpenter") {
		k.t.Errorf("left are:\n%s", out)
	}
	if phase := k.mustKubectl("get", "pods", "-l", "app=small", "-o", "jsonpath={.items[0].status.phase}"); phase != "Pending" {
		k.t.Errorf("the pod is %s", phase)
	}
}
