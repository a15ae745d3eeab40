// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// fargateTrust is the trust policy of a pod execution role (EKS user guide, "Amazon EKS Pod execution IAM role").
const fargateTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks-fargate-pods.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// fourOnFargate is a deployment of four pods in a namespace that a profile selects.
const fourOnFargate = `apiVersion: v1
kind: Namespace
metadata: {name: jobs}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: jobs}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        resources: {requests: {cpu: 250m, memory: 128Mi}}
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

// refusedByFargate is what may not have a machine of its own, and a DaemonSet that tolerates everything, and that
// kube-scheduler would preempt other pods for.
const refusedByFargate = `apiVersion: v1
kind: Pod
metadata: {name: host, namespace: jobs}
spec: {hostNetwork: true, containers: [{name: c, image: "muster.dev/workload:v1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: path, namespace: jobs}
spec: {containers: [{name: c, image: "muster.dev/workload:v1"}], volumes: [{name: v, hostPath: {path: /tmp}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: jobs}
spec: {containers: [{name: c, image: "muster.dev/workload:v1", resources: {requests: {memory: 100Gi}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere, namespace: jobs}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      tolerations: [{operator: Exists}]
      priorityClassName: system-node-critical
      containers: [{name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]
`

// refusedByKubelet is a Deployment whose pods a kubelet does not admit, for a sysctl that is not safe.
const refusedByKubelet = `apiVersion: apps/v1
kind: Deployment
metadata: {name: unsafe, namespace: jobs}
spec:
  selector: {matchLabels: {app: unsafe}}
  template:
    metadata: {labels: {app: unsafe}}
    spec:
      securityContext: {sysctls: [{name: net.core.somaxconn, value: "1024"}]}
      containers: [{name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]
`

// fargateStory is a cluster with a Fargate profile.
type fargateStory struct{ *iam }

// TestFargate has four pods on four machines of their own, sized by what they request: the machines come and go with
// the pods, also when the service is killed, and with the profile.
//
//story:about cluster/fargatecontroller machine/fargate cloud/eks/fargateprofiles
func TestFargate(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	w := &fargateStory{newIAM(t, i)}
	w.mustAWS(nil, "iam", "create-role", "--role-name", "fargate-pods", "--assume-role-policy-document", fargateTrust)
	for _, step := range []struct {
		name string
		run  func(*fargateStory)
	}{
		{"profiles that are refused", (*fargateStory).refusedProfiles},
		{"a profile", (*fargateStory).makesProfile},
		{"four pods on four machines", (*fargateStory).fourMachines},
		{"pods that are refused", (*fargateStory).refusedPods},
		{"pods that the kubelet refuses", (*fargateStory).unsafePods},
		{"the service is killed", (*fargateStory).killed},
		{"the pods are deleted", (*fargateStory).podsGo},
		{"the profile is deleted", (*fargateStory).profileGoes},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&fargateStory{w.step(t)}) }) {
			return
		}
	}
}

const podsRole = "arn:aws:iam::" + iamAccount + ":role/fargate-pods"

// refusedProfiles changes nothing by requests that are refused.
func (w *fargateStory) refusedProfiles() {
	create := func(change ...string) []string {
		return append([]string{"eks", "create-fargate-profile", "--cluster-name", "muster", "--fargate-profile-name", "jobs", "--pod-execution-role-arn", podsRole}, change...)
	}
	var made struct {
		InternetGateway struct{ InternetGatewayID string }
		RouteTable      struct{ RouteTableID string }
		Subnet          struct{ SubnetID string }
	}
	vpc := w.describeCluster("muster").ResourcesVpcConfig.VpcID
	w.mustAWS(&made, "ec2", "create-internet-gateway")
	w.mustAWS(nil, "ec2", "attach-internet-gateway", "--vpc-id", vpc, "--internet-gateway-id", made.InternetGateway.InternetGatewayID)
	w.mustAWS(&made, "ec2", "create-route-table", "--vpc-id", vpc)
	w.mustAWS(nil, "ec2", "create-route", "--route-table-id", made.RouteTable.RouteTableID, "--destination-cidr-block", "0.0.0.0/0", "--gateway-id", made.InternetGateway.InternetGatewayID)
	subnets := strings.Fields(w.mustKubectl("--context", "muster-management", "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))
	subnet := subnets[0]
	var tied struct{ AssociationID string }
	w.mustAWS(&tied, "ec2", "associate-route-table", "--route-table-id", made.RouteTable.RouteTableID, "--subnet-id", subnet)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a public subnet":              {create("--selectors", "namespace=jobs", "--subnets", subnet), "(InvalidParameterException) when calling the CreateFargateProfile operation: Subnet " + subnet + " provided in Fargate Profile is not a private subnet"},
		"the cluster's, one public":    {create("--selectors", "namespace=jobs"), "is not a private subnet"},
		"a selector without namespace": {create("--selectors", `[{"labels":{"a":"b"}}]`), "Selector 1 is not valid: it has no namespace"},
		"no such role":                 {create("--selectors", "namespace=jobs", "--subnets", subnets[1], "--pod-execution-role-arn", podsRole+"x"), "does not exist"},
	} {
		if out, err := w.aws(w.admin, c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
			w.t.Errorf("%s: %s, %v, want %s", name, out, err, c.says)
		}
	}
	if left := w.mustKubectl("--context", "muster-management", "get", "fargateprofiles", "-A", "-o", "name"); left != "" {
		w.t.Errorf("a refused request made %s", left)
	}
	w.mustAWS(nil, "ec2", "disassociate-route-table", "--association-id", tied.AssociationID)
}

// makesProfile makes a profile with the AWS CLI, and again with muster.
func (w *fargateStory) makesProfile() {
	w.mustAWS(nil, "eks", "create-fargate-profile", "--cluster-name", "muster", "--fargate-profile-name", "jobs", "--pod-execution-role-arn", podsRole, "--selectors", "namespace=jobs")
	out, _ := w.muster("create", "fargateprofile", "jobs", "--selector", "namespace=jobs", "--pod-execution-role-arn", podsRole, "--wait")
	if out != "fargateprofile.muster.dev/jobs unchanged\n" {
		w.t.Errorf("muster create fargateprofile prints %q", out)
	}
	var shown struct {
		FargateProfile struct{ Status string }
	}
	w.mustAWS(&shown, "eks", "describe-fargate-profile", "--cluster-name", "muster", "--fargate-profile-name", "jobs")
	if shown.FargateProfile.Status != "ACTIVE" {
		w.t.Errorf("the profile is %s", shown.FargateProfile.Status)
	}
	var entry struct {
		AccessEntry struct{ Type string }
	}
	w.mustAWS(&entry, "eks", "describe-access-entry", "--cluster-name", "muster", "--principal-arn", podsRole)
	if entry.AccessEntry.Type != "FARGATE_LINUX" {
		w.t.Errorf("the pod execution role has an access entry of type %s", entry.AccessEntry.Type)
	}
}

// machinesOfPods are the machines of Fargate, by the names of their pods.
func (w *fargateStory) machinesOfPods() map[string]string {
	w.t.Helper()
	var all v1alpha1.MachineList
	if err := json.Unmarshal([]byte(w.mustKubectl("--context", "muster-management", "get", "machines", "-o", "json")), &all); err != nil {
		w.t.Fatal(err)
	}
	of := map[string]string{}
	for i := range all.Items {
		if f := all.Items[i].Spec.Fargate; f != nil {
			of[f.PodNamespace+"/"+f.PodName] = all.Items[i].Name
		}
	}
	return of
}

// fourMachines runs four pods.
func (w *fargateStory) fourMachines() {
	w.apply(fourOnFargate)
	w.mustKubectl("-n", "jobs", "rollout", "status", "deployment/web", "--timeout=300s")
	nodes := strings.Fields(w.mustKubectl("-n", "jobs", "get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}`))
	slices.Sort(nodes)
	if len(nodes) != 4 || len(slices.Compact(slices.Clone(nodes))) != 4 || len(w.machinesOfPods()) != 4 {
		w.t.Fatalf("four pods are on %v", nodes)
	}
	for _, node := range nodes {
		shown := w.mustKubectl("get", "node", node, "-o", `jsonpath={.metadata.labels.eks\.amazonaws\.com/compute-type} {.spec.taints[*].key}={.spec.taints[*].value}:{.spec.taints[*].effect} {.status.capacity.pods} {.status.capacity.memory}`)
		if !strings.HasPrefix(node, "fargate-ip-") || shown != "fargate eks.amazonaws.com/compute-type=fargate:NoSchedule 1 512Mi" {
			w.t.Errorf("node %s is %s", node, shown)
		}
	}
	pods := w.mustKubectl("-n", "jobs", "get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}{.spec.schedulerName} {.metadata.annotations.CapacityProvisioned} {.metadata.labels.eks\.amazonaws\.com/fargate-profile}{"\n"}{end}`)
	if pods != strings.TrimSpace(strings.Repeat("fargate-scheduler 0.25vCPU 0.5GB jobs\n", 4)) {
		w.t.Errorf("the pods are\n%s", pods)
	}
	// They are no instances of the account, and other pods go where they went before.
	var instances struct{ Reservations []any }
	w.mustAWS(&instances, "ec2", "describe-instances")
	if len(instances.Reservations) != 1 {
		w.t.Errorf("EC2 describes %d reservations, want the one of the node group", len(instances.Reservations))
	}
	w.mustKubectl("run", "ordinary", "--image=muster.dev/workload:v1", "--image-pull-policy=IfNotPresent", "--", "serve")
	w.mustKubectl("wait", "pod/ordinary", "--for=condition=Ready", "--timeout=300s")
	if node := w.mustKubectl("get", "pod", "ordinary", "-o", "jsonpath={.spec.nodeName}"); strings.HasPrefix(node, "fargate-") {
		w.t.Errorf("a pod of no profile is on %s", node)
	}
}

// refusedPods are told why by an Event, and no machine is made for them.
func (w *fargateStory) refusedPods() {
	w.apply(refusedByFargate)
	told := func(pod, says string) {
		w.eventually("pod "+pod+" is told why", func() error {
			events, err := w.kubectl("-n", "jobs", "get", "events", "--field-selector", "reason=FailedScheduling,involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
			if err == nil && !strings.Contains(events, says) {
				err = fmt.Errorf("its Events say %q", events)
			}
			return err
		})
	}
	told("host", "Pod not supported on Fargate: fields not supported: HostNetwork")
	told("path", "Pod not supported on Fargate: volumes not supported: v is a hostPath")
	told("huge", "InsufficientInstanceCapacity: the host has no room")
	daemons := ""
	w.eventually("the DaemonSet has its pods", func() error {
		daemons = w.mustKubectl("-n", "jobs", "get", "pods", "-l", "app=everywhere", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName}{"\n"}{end}`)
		if n := strings.Count(daemons, "=ip-"); n != 1 || strings.Count(daemons, "\n") != 4 {
			return fmt.Errorf("they are\n%s", daemons)
		}
		return nil
	})
	if strings.Contains(daemons, "=fargate-") {
		w.t.Errorf("a pod of a DaemonSet is on a machine of Fargate:\n%s", daemons)
	}
	for line := range strings.Lines(daemons) {
		if name, node, _ := strings.Cut(strings.TrimSpace(line), "="); node == "" {
			told(name, "Too many pods")
			break
		}
	}
	if of := w.machinesOfPods(); len(of) != 4 {
		w.t.Errorf("there are machines for %v", of)
	}
	w.mustKubectl("-n", "jobs", "delete", "daemonset/everywhere", "pod/host", "pod/path", "pod/huge")
}

// unsafePods have one machine after the other, with a pause, and say why. No machine stays.
func (w *fargateStory) unsafePods() {
	w.apply(refusedByKubelet)
	w.eventually("the next pod says that its kubelet refused the first", func() error {
		says, err := w.kubectl("-n", "jobs", "get", "pods", "-l", "app=unsafe", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="PodScheduled")].message}`)
		if err == nil && !strings.Contains(says, "of the same ReplicaSet, refused it: SysctlForbidden") {
			err = fmt.Errorf("it says %q", says)
		}
		return err
	})
	if of := w.machinesOfPods(); len(of) > 5 {
		w.t.Errorf("there are machines for %v", of)
	}
	w.mustKubectl("-n", "jobs", "delete", "deployment/unsafe")
	w.eventually("its machines are gone", func() error {
		if of := w.machinesOfPods(); len(of) != 4 {
			return fmt.Errorf("there are machines for %v", of)
		}
		return nil
	})
}

// killed ends the service while pods come and go: no machine is without its pod, and none is there twice.
func (w *fargateStory) killed() {
	w.mustKubectl("-n", "jobs", "scale", "deployment/web", "--replicas=6")
	w.kill("serve")
	w.mustKubectl("-n", "jobs", "rollout", "status", "deployment/web", "--timeout=300s")
	w.mustKubectl("-n", "jobs", "scale", "deployment/web", "--replicas=2")
	w.kill("serve")
	w.asPods(2)
}

// asPods waits until there are as many pods, and a machine for each and no other.
func (w *fargateStory) asPods(count int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d pods have a machine each", count), func() error {
		text, err := w.kubectl("-n", "jobs", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}")
		pods, of := strings.Fields(text), w.machinesOfPods()
		if err != nil || len(pods) != count || len(of) != count {
			return errors.Join(err, fmt.Errorf("there are the pods %v, and machines of %v", pods, of))
		}
		for _, pod := range pods {
			if of["jobs/"+pod] == "" {
				return fmt.Errorf("pod %s has no machine of %v", pod, of)
			}
		}
		return nil
	})
}

// podsGo ends the pods, and with them their machines.
func (w *fargateStory) podsGo() {
	w.mustKubectl("-n", "jobs", "scale", "deployment/web", "--replicas=0")
	w.asPods(0)
	w.eventually("the nodes are gone", func() error {
		nodes, err := w.kubectl("get", "nodes", "-l", "eks.amazonaws.com/compute-type=fargate", "-o", "name")
		if err == nil && nodes != "" {
			err = errors.New(nodes)
		}
		return err
	})
}

// profileGoes ends the pods of a profile with it. Pods that take their place are on the node group.
func (w *fargateStory) profileGoes() {
	w.mustKubectl("-n", "jobs", "scale", "deployment/web", "--replicas=1")
	w.mustKubectl("-n", "jobs", "rollout", "status", "deployment/web", "--timeout=300s")
	if _, err := w.aws(w.admin, "eks", "delete-cluster", "--name", "muster"); err == nil || !strings.Contains(err.Error(), "Cluster has Fargate profiles attached") {
		w.t.Errorf("a cluster with a profile: %v", err)
	}
	var listed struct{ FargateProfileNames []string }
	w.mustAWS(&listed, "eks", "list-fargate-profiles", "--cluster-name", "muster")
	if !slices.Equal(listed.FargateProfileNames, []string{"jobs"}) {
		w.t.Errorf("EKS lists %v", listed.FargateProfileNames)
	}
	w.mustAWS(nil, "eks", "delete-fargate-profile", "--cluster-name", "muster", "--fargate-profile-name", "jobs")
	w.muster("delete", "fargateprofile", "jobs", "--ignore-not-found") // until it is gone
	if of := w.machinesOfPods(); len(of) != 0 {
		w.t.Errorf("machines are left: %v", of)
	}
	w.eventually("the pod that takes its place is on the node group", func() error {
		node, err := w.kubectl("-n", "jobs", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")
		if err == nil && !strings.HasPrefix(node, "ip-") {
			err = fmt.Errorf("it is on %q", node)
		}
		return err
	})
	if left := w.mustKubectl("get", "mutatingadmissionpolicies,validatingadmissionpolicies", "-o", "name"); strings.Contains(left, "fargate") {
		w.t.Errorf("policies are left: %s", left)
	}
}
