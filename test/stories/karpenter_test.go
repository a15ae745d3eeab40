// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shaped is a Deployment whose pods run on machines that Karpenter launches, each on a machine of its own among the pods
// of all Deployments like this. NAME, REPLICAS, POOL and REQUESTS are filled in.
const shaped = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME, shaped: "yes"}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {karpenter.sh/nodepool: POOL}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {shaped: "yes"}}}
      containers:
      - {name: c, image: "muster.dev/workload:v1", args: [serve], resources: {requests: REQUESTS}}
---
`

// TestKarpenter installs Karpenter by its add-on and the examples, has it launch machines of several types for pending
// pods and end them when the pods go, put a smaller machine in the place of one that is too large, and drain a machine
// that is interrupted. It is killed, and the service with it, between a pending pod and its machine.
//
//story:about addons/karpenter addons/addonfiles cloud/ec2/fleet cloud/ec2/offering cloud/ec2/template cloud/events cloud/sqs aws/region ./examples
//story:needs karpenter
func TestKarpenter(t *testing.T) {
	i := newInstallation(t)
	if _, err := os.Stat(filepath.Join(i.bin, "addons", "karpenter.tar")); err != nil {
		t.Fatalf("run `make karpenter` first, which builds Karpenter: %v", err)
	}
	i.muster("up", "--nodes", "1")
	i.ready()
	k := &karpenter{newIAM(t, i), "default"}
	k.install()
	for _, step := range []struct {
		name string
		run  func(*karpenter)
	}{
		{"three shapes and back", (*karpenter).shapes},
		{"killed in the middle", (*karpenter).killed},
		{"consolidation", (*karpenter).consolidates},
		{"an interruption", (*karpenter).interrupted},
		{"what the host has not", (*karpenter).tooLarge},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&karpenter{k.step(t), k.pool}) }) {
			return // the next step would begin with what this one left
		}
	}
}

// karpenter is a cluster with a Karpenter and one NodePool that matters.
type karpenter struct {
	*iam
	pool string
}

// install does what docs/karpenter.md says.
func (k *karpenter) install() {
	k.t.Helper()
	const controller, nodes = "karpenter-controller", "karpenter-nodes"
	role := func(name, trust string) string {
		k.mustAWS(nil, "iam", "create-role", "--role-name", name, "--assume-role-policy-document", trust)
		return "arn:aws:iam::" + iamAccount + ":role/" + name
	}
	nodesARN := role(nodes, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)
	for _, policy := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"} {
		k.mustAWS(nil, "iam", "attach-role-policy", "--role-name", nodes, "--policy-arn", "arn:aws:iam::aws:policy/"+policy)
	}
	k.mustAWS(nil, "eks", "create-access-entry", "--cluster-name", "muster", "--principal-arn", nodesARN, "--type", "EC2_LINUX")

	controllerARN := role(controller, podTrust)
	k.mustAWS(nil, "iam", "put-role-policy", "--role-name", controller, "--policy-name", "karpenter", "--policy-document", "file://"+example(k.t, "controller-policy.json"))
	k.mustAWS(nil, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "kube-system", "--service-account", "karpenter", "--role-arn", controllerARN)

	k.interruptionQueue()
	found := strings.Fields(k.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.subnetIDs[*]}"))
	found = append(found, k.mustKubectl("--context", "muster-management", "get", "securitygroups", "-o", `jsonpath={.items[?(@.spec.clusterName=="muster")].metadata.name}`))
	k.mustAWS(nil, append(append([]string{"ec2", "create-tags", "--resources"}, found...), "--tags", "Key=karpenter.sh/discovery,Value=muster")...)

	began := time.Now()
	k.muster("create", "addon", "karpenter", "--values", `{"replicas": 1, "settings": {"interruptionQueue": "interruptions"}}`, "--wait")
	k.t.Logf("create addon to ACTIVE: %s", time.Since(began).Round(100*time.Millisecond))
	pool, err := os.ReadFile(example(k.t, "nodes.yaml"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.apply(strings.ReplaceAll(string(pool), "consolidateAfter: 30s", "consolidateAfter: 5s"))
	k.eventually("the EC2NodeClass is ready", func() error {
		out, err := k.kubectl("get", "ec2nodeclass", "default", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[*].message}`)
		if err == nil && !strings.HasPrefix(out, "True") {
			err = errors.New(out)
		}
		return err
	})
}

// example is the path of a file of examples/karpenter.
func example(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "examples", "karpenter", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// wants applies a Deployment of pods, each on a machine of its own.
func (k *karpenter) wants(name string, replicas int, requests string) {
	k.t.Helper()
	k.apply(strings.NewReplacer("NAME", name, "POOL", k.pool, "REPLICAS", fmt.Sprint(replicas), "REQUESTS", requests).Replace(shaped))
}

// runs waits until so many pods of a Deployment are available.
func (k *karpenter) runs(name string, want int) time.Duration {
	k.t.Helper()
	return k.eventually(fmt.Sprintf("%d pods of %s run", want, name), func() error {
		out, err := k.kubectl("get", "deployment", name, "-o", "jsonpath={.status.availableReplicas}/{.status.replicas}")
		if err == nil && out != fmt.Sprintf("%d/%d", want, want) {
			claims, _ := k.kubectl("get", "nodeclaims", "-o", "wide")
			err = fmt.Errorf("%s are available\n%s", out, claims)
		}
		return err
	})
}

// launched are the instances of the NodePool that have not ended, as EC2 has them, with the type of each.
func (k *karpenter) launched() map[string]string {
	k.t.Helper()
	var found struct {
		Reservations []struct {
			Instances []struct {
				InstanceID   string `json:"InstanceId"`
				InstanceType string
			}
		}
	}
	k.mustAWS(&found, "ec2", "describe-instances", "--filters", "Name=tag:karpenter.sh/nodepool,Values="+k.pool, "Name=instance-state-name,Values=pending,running,stopping,stopped")
	all := map[string]string{}
	for _, r := range found.Reservations {
		for _, one := range r.Instances {
			all[one.InstanceID] = one.InstanceType
		}
	}
	return all
}

// owned checks that each machine has one NodeClaim and one Node, and each of these a machine.
func (k *karpenter) owned(want int) map[string]string {
	k.t.Helper()
	var machines map[string]string
	k.eventually(fmt.Sprintf("%d machines with an owner each", want), func() error {
		machines = k.launched()
		claims := strings.Fields(k.mustKubectl("get", "nodeclaims", "-o", "jsonpath={.items[*].status.providerID}"))
		nodes := strings.Fields(k.mustKubectl("get", "nodes", "-l", "karpenter.sh/nodepool="+k.pool, "-o", "jsonpath={.items[*].spec.providerID}"))
		slices.Sort(claims)
		slices.Sort(nodes)
		if len(machines) != want || len(claims) != want || !slices.Equal(claims, nodes) {
			return fmt.Errorf("machines %v, NodeClaims %v, nodes %v", machines, claims, nodes)
		}
		for _, id := range claims {
			if _, there := machines[id[strings.LastIndex(id, "/")+1:]]; !there {
				return fmt.Errorf("%s is not one of %v", id, machines)
			}
		}
		return nil
	})
	return machines
}

// empties takes all pods away, and waits until Karpenter has ended all machines.
func (k *karpenter) empties() {
	k.t.Helper()
	k.mustKubectl("delete", "deployments", "--all", "--wait=true")
	took := k.eventually("all machines are gone", func() error {
		claims, err := k.kubectl("get", "nodeclaims,nodes", "-l", "karpenter.sh/nodepool", "-o", "name")
		if machines := k.launched(); err == nil && (claims != "" || len(machines) > 0) {
			err = fmt.Errorf("%s and %v", claims, machines)
		}
		return err
	})
	k.t.Logf("no pods to no machines: %v", took.Round(100*time.Millisecond))
}

// shapes has three pods of different sizes get a machine each, of the cheapest type that each fits on.
func (k *karpenter) shapes() {
	for name, requests := range map[string]string{"small": "{cpu: 500m, memory: 256Mi}", "medium": "{cpu: 500m, memory: 3Gi}", "large": "{cpu: 500m, memory: 5Gi}"} {
		k.wants(name, 1, requests)
	}
	for _, name := range []string{"small", "medium", "large"} {
		k.t.Logf("%s runs after %v more", name, k.runs(name, 1).Round(100*time.Millisecond))
	}
	var types []string
	for _, kind := range k.owned(3) {
		types = append(types, kind)
	}
	slices.Sort(types)
	if len(slices.Compact(slices.Clone(types))) != 3 {
		k.t.Errorf("three pods of different sizes run on %v", types)
	}
	k.t.Logf("launched %v", types)
	k.empties()
}

// killed ends Karpenter and the service while a machine is on its way. No machine is there twice afterwards.
func (k *karpenter) killed() {
	k.wants("small", 2, "{cpu: 500m, memory: 256Mi}")
	k.eventually("a NodeClaim is made", func() error {
		out, err := k.kubectl("get", "nodeclaims", "-o", "name")
		if err == nil && out == "" {
			err = errors.New("there is none")
		}
		return err
	})
	k.kill("serve")
	k.mustKubectl("-n", "kube-system", "delete", "pods", "-l", "k8s-app=karpenter", "--force", "--grace-period=0")
	k.runs("small", 2)
	k.owned(2)
	k.empties()
}

// consolidates has a machine that became too large replaced by a smaller one.
func (k *karpenter) consolidates() {
	k.wants("shrinks", 1, "{cpu: 500m, memory: 5Gi}")
	k.runs("shrinks", 1)
	before := k.owned(1)
	k.mustKubectl("patch", "deployment", "shrinks", "--type=json", "-p", `[{"op":"replace","path":"/spec/strategy","value":{"type":"Recreate"}},{"op":"replace","path":"/spec/template/spec/containers/0/resources","value":{"requests":{"cpu":"500m","memory":"256Mi"}}}]`)
	took := k.eventually("a smaller machine is in its place", func() error {
		now := k.launched()
		if len(now) != 1 {
			return fmt.Errorf("%v", now)
		}
		for id, kind := range now {
			if _, same := before[id]; same || strings.HasSuffix(kind, ".large") {
				return fmt.Errorf("%v, which was %v", now, before)
			}
		}
		return nil
	})
	k.runs("shrinks", 1)
	k.t.Logf("%v became %v after %v", before, k.owned(1), took.Round(100*time.Millisecond))
	k.empties()
}

// interrupted drills a spot instance. Karpenter hears of it by the queue, drains the machine and ends it long before the
// drill would, and its pod runs on another one.
func (k *karpenter) interrupted() {
	var pool struct {
		Spec struct {
			Template struct {
				Spec struct{ Requirements []struct{ Key string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(k.mustKubectl("get", "nodepool", k.pool, "-o", "json")), &pool); err != nil {
		k.t.Fatal(err)
	}
	market := slices.IndexFunc(pool.Spec.Template.Spec.Requirements, func(r struct{ Key string }) bool { return r.Key == "karpenter.sh/capacity-type" })
	k.mustKubectl("patch", "nodepool", k.pool, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/requirements/%d/values","value":["spot"]}]`, market))
	k.wants("spot", 1, "{cpu: 500m, memory: 256Mi}")
	k.runs("spot", 1)
	id := slices.Sorted(maps.Keys(k.owned(1)))[0]
	pod := k.mustKubectl("get", "pods", "-l", "app=spot", "-o", "jsonpath={.items[0].metadata.name}")
	k.muster("drill", id, "spot-interruption", "--for", "2m")
	drained := k.eventually("its pod is gone", func() error {
		out, err := k.kubectl("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.metadata.deletionTimestamp}{.status.phase}")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	k.t.Logf("drill to drained: %v", drained.Round(100*time.Millisecond))
	if drained > 5*time.Second {
		k.t.Errorf("its pod, which ends at once, was gone %v after the drill began", drained)
	}
	k.runs("spot", 1)
	ended := k.eventually("the machine is gone", func() error {
		if now := k.launched(); now[id] != "" {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	if drained+ended > 90*time.Second {
		k.t.Errorf("drained after %v and gone %v later: the interruption itself ended it", drained, ended)
	}
	k.owned(1)
	k.empties()
}

// tooLarge has a pod that asks for what the host has not: it waits with the reason, nothing is launched, and Karpenter
// does not try again at once.
func (k *karpenter) tooLarge() {
	k.wants("huge", 1, "{cpu: 500m, memory: 40Gi}")
	k.eventually("an Event says that there is no room", func() error {
		out, err := k.kubectl("get", "events", "-A", "-o", `jsonpath={range .items[*]}{.involvedObject.kind} {.reason}: {.message}{"\n"}{end}`)
		if err == nil && !strings.Contains(out, "InsufficientCapacityError") {
			err = errors.New("no Event has InsufficientCapacityError")
		}
		return err
	})
	if machines := k.launched(); len(machines) > 0 {
		k.t.Errorf("launched %v", machines)
	}
	why := k.mustKubectl("get", "pods", "-l", "app=huge", "-o", `jsonpath={.items[0].status.phase}: {.items[0].status.conditions[?(@.type=="PodScheduled")].message}`)
	if !strings.HasPrefix(why, "Pending: ") || !strings.Contains(why, "available") {
		k.t.Errorf("the pod is %s", why)
	}
	k.t.Logf("the pod is %s", why)
	k.empties()
}
