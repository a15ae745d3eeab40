// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// pendingGroup is the node group with a warm pool, and pendingNamespace what the Fargate profile selects.
	pendingGroup, pendingNamespace = "warm", "fargate"
	// pendingQuiet is how long nothing happens before a pod is made.
	pendingQuiet = 3 * time.Second
	ec2Trust     = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	podsTrust    = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
	fargateTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks-fargate-pods.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
)

// pendingWay is a way in which a pod without a machine gets one.
type pendingWay struct {
	name  string
	pod   *corev1.Pod
	scale bool // the node group is asked for a machine when the pod is made, and for none afterwards
	times []time.Duration
}

// benchPending measures pods that are for machines which are not there yet, from the call that creates one until it is
// Ready: with a machine that Karpenter launches, by its settings and the examples as they are; with a running machine of
// a warm pool, whose group is asked for one more when the pod is made, as the Cluster Autoscaler would; and with one of
// Fargate. The ways have their turns in one cluster, and the first turn of each is not counted.
func benchPending(ctx context.Context, bin string, rounds int) error {
	if _, err := os.Stat(filepath.Join(bin, "addons", "karpenter.tar")); err != nil {
		return fmt.Errorf("run `make karpenter` first, which builds Karpenter: %w", err)
	}
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	c, err := t.awsClient()
	if err == nil {
		err = errors.Join(t.installKarpenter(ctx, c), t.installFargate(ctx, c), t.apply(ctx, fmt.Sprintf(warmGroup, pendingGroup, 0, "{maxGroupPreparedCapacity: 1, poolState: Running}"), "--context=muster-management"))
	}
	if err != nil {
		return err
	}
	ways := []*pendingWay{
		{name: "Karpenter", pod: pendingPod("karpenter", metav1.NamespaceDefault, "karpenter.sh/nodepool", "default")},
		{name: "a warm pool", pod: pendingPod("warm", metav1.NamespaceDefault, v1alpha1.LabelNodeGroup, pendingGroup), scale: true},
		{name: "Fargate", pod: pendingPod("fargate", pendingNamespace, "", "")},
	}
	for range rounds + 1 {
		for _, way := range ways {
			took, err := t.pend(ctx, way)
			if err != nil {
				return fmt.Errorf("by %s: %w", way.name, err)
			}
			way.times = append(way.times, took)
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds, pending pod to Ready\tp50\tp99\tn\t")
	for _, way := range ways {
		_, _ = fmt.Fprintf(w, "by %s\t%d\t%d\t%d\t\n", way.name, quantile(way.times[1:], 50).Milliseconds(), quantile(way.times[1:], 99).Milliseconds(), rounds)
	}
	return w.Flush()
}

// pendingPod is a pod of the image that every machine has, for nodes with a label.
func pendingPod(name, namespace, label, value string) *corev1.Pod {
	pod := benchPod(name, "")
	pod.Namespace = namespace
	if label != "" {
		pod.Spec.NodeSelector = map[string]string{label: value}
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return pod
}

// pend waits until nothing is left of the pod before, makes a pod, and returns how long it took to be Ready. The pod goes
// afterwards.
func (t trial) pend(ctx context.Context, way *pendingWay) (time.Duration, error) {
	client, err := t.client()
	if err != nil {
		return 0, err
	}
	if err := t.nobodyPends(ctx); err != nil {
		return 0, err
	}
	scale := func(to string) error {
		if !way.scale {
			return nil
		}
		_, err := t.mustKubectl(ctx, "--context=muster-management", "-n", "muster", "scale", "nodegroups.muster.dev/"+pendingGroup, "--replicas="+to)
		return err
	}
	scaled := make(chan error, 1)
	go func() { scaled <- scale("1") }()
	took, err := startPod(ctx, client, way.pod)
	if err := errors.Join(err, <-scaled); err != nil {
		return 0, err
	}
	return took, errors.Join(client.CoreV1().Pods(way.pod.Namespace).Delete(ctx, way.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), scale("0"))
}

// nobodyPends waits until there are no machines but that of the cluster, and the one of the warm pool, which is prepared.
func (t trial) nobodyPends(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		machines, err := t.machines(ctx)
		if err != nil {
			return err
		}
		warm := 0
		for _, m := range machines {
			if m.Spec.NodeGroup == pendingGroup && m.Status.Phase == v1alpha1.MachineWarmRunning && m.DeletionTimestamp.IsZero() {
				warm++
			}
		}
		if warm == 1 && len(machines) == 2 {
			return pause(ctx, pendingQuiet)
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for the machines of the pod before to be gone: %d machines, %d of them prepared: %w", len(machines), warm, err)
		}
	}
}

// installKarpenter does what docs/karpenter.md says. A machine that is empty goes at once.
func (t trial) installKarpenter(ctx context.Context, c *awsClient) error {
	policy, err := os.ReadFile("examples/karpenter/controller-policy.json")
	if err != nil {
		return err
	}
	nodes, err := os.ReadFile("examples/karpenter/nodes.yaml")
	if err != nil {
		return err
	}
	described, err := c.send(ctx, c.keys[0], eksCall(http.MethodGet, "/clusters/muster", ""))
	if err != nil {
		return err
	}
	var shown struct {
		Cluster struct {
			VPC struct {
				Subnets []string `json:"subnetIds"`
				Group   string   `json:"clusterSecurityGroupId"`
			} `json:"resourcesVpcConfig"`
		} `json:"cluster"`
	}
	if err := json.Unmarshal([]byte(described), &shown); err != nil {
		return err
	}
	tags := []string{"Tag.1.Key", "karpenter.sh/discovery", "Tag.1.Value", "muster"}
	for n, id := range append(shown.Cluster.VPC.Subnets, shown.Cluster.VPC.Group) {
		tags = append(tags, fmt.Sprint("ResourceId.", n+1), id)
	}
	for _, call := range []awsCall{
		iamCall("CreateRole", "RoleName", "karpenter-nodes", "AssumeRolePolicyDocument", ec2Trust),
		iamCall("AttachRolePolicy", "RoleName", "karpenter-nodes", "PolicyArn", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"),
		iamCall("AttachRolePolicy", "RoleName", "karpenter-nodes", "PolicyArn", "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"),
		eksCall(http.MethodPost, "/clusters/muster/access-entries", `{"principalArn":"arn:aws:iam::000000000000:role/karpenter-nodes","type":"EC2_LINUX"}`),
		iamCall("CreateRole", "RoleName", "karpenter-controller", "AssumeRolePolicyDocument", podsTrust),
		iamCall("PutRolePolicy", "RoleName", "karpenter-controller", "PolicyName", "karpenter", "PolicyDocument", string(policy)),
		eksCall(http.MethodPost, "/clusters/muster/pod-identity-associations", `{"namespace":"kube-system","serviceAccount":"karpenter","roleArn":"arn:aws:iam::000000000000:role/karpenter-controller"}`),
		ec2Call("CreateTags", tags...),
	} {
		if _, err := c.send(ctx, c.keys[0], call); err != nil {
			return err
		}
	}
	if _, err := t.muster(ctx, "create", "addon", "karpenter", "--values", `{"replicas": 1}`, "--wait"); err != nil {
		return err
	}
	return t.apply(ctx, strings.ReplaceAll(string(nodes), "consolidateAfter: 30s", "consolidateAfter: 0s"))
}

// installFargate makes a profile for the pods of a namespace.
func (t trial) installFargate(ctx context.Context, c *awsClient) error {
	if _, err := c.send(ctx, c.keys[0], iamCall("CreateRole", "RoleName", "fargate-pods", "AssumeRolePolicyDocument", fargateTrust)); err != nil {
		return err
	}
	if _, err := t.mustKubectl(ctx, "create", "namespace", pendingNamespace); err != nil {
		return err
	}
	_, err := t.muster(ctx, "create", "fargateprofile", "bench", "--selector", "namespace="+pendingNamespace, "--pod-execution-role-arn", "arn:aws:iam::000000000000:role/fargate-pods", "--wait")
	return err
}
