// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/node/render"
)

// node watches the Node from its registration until it is Ready and has a serving certificate.
func (j *joining) node(ctx context.Context) error {
	config, err := j.disk.byNode(j.Endpoint)
	if err != nil {
		return err
	}
	client, err := j.Connect(config)
	if err != nil {
		return fmt.Errorf("making a client by the node's certificate: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var unserved error
	over := make(chan struct{})
	go func() {
		defer close(over)
		unserved = j.servingCertificate(serving, client)
	}()
	err = j.ready(ctx, client)
	if err != nil {
		stop()
		<-over
		return err
	}
	patience := time.NewTimer(servingPatience)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
		stop()
		<-over
		unserved = errors.New("its request still waits")
	}
	if unserved != nil && ctx.Err() == nil {
		j.warn("serving CSR", "the node is Ready without a serving certificate, so kubectl logs and exec fail: %v", unserved)
	}
	return j.uncordon(ctx, client)
}

// ready watches the Node until it is.
func (j *joining) ready(ctx context.Context, client kubernetes.Interface) error {
	registered, last := false, ""
	each := func(node *corev1.Node) (bool, error) {
		if node.Name != j.ledger.NodeName {
			return false, nil
		}
		if !registered {
			registered = true
			j.ledger.NodeUID = string(node.UID)
			if err := j.save(j.ledger); err != nil {
				return true, err
			}
			j.done("node", "registered: %s", node.Name)
			if err := j.kubeProxy(ctx); err != nil {
				return true, err
			}
		}
		if err := j.network(node); err != nil {
			return true, err
		}
		for _, c := range node.Status.Conditions {
			if c.Type != corev1.NodeReady {
				continue
			}
			if c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(j.started) {
				j.done("ready", "node %s is Ready", node.Name)
				return true, nil
			}
			if text := c.Message; c.Status != corev1.ConditionTrue && text != last {
				last = text
				j.say("node", Waiting, "not Ready yet: %s: %s", c.Reason, text)
			}
		}
		return false, nil
	}
	nodes := client.CoreV1().Nodes()
	selector := fields.OneTermEqualSelector("metadata.name", j.ledger.NodeName).String()
	return follow(ctx, func(ctx context.Context) ([]*corev1.Node, string, error) {
		found, err := nodes.List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, "", err
		}
		objects := make([]*corev1.Node, len(found.Items))
		for i := range found.Items {
			objects[i] = &found.Items[i]
		}
		return objects, found.ResourceVersion, nil
	}, func(ctx context.Context, version string) (watch.Interface, error) {
		return nodes.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: version})
	}, each, j.complaint("node"))
}

// kubeProxy starts it: the kubelet's credential, which it uses, is there now.
func (j *joining) kubeProxy(ctx context.Context) error {
	if j.ledger.SkipKubeProxy {
		return nil
	}
	if err := j.run(ctx, kubeProxyUnit, j.changes("/etc/kubernetes/kube-proxy/", unitDir+"/"+kubeProxyUnit)); err != nil {
		return err
	}
	j.done("kube-proxy", "started")
	return nil
}

// network writes the network's configuration once the node has a range of addresses for pods. A containerd that the
// join brought does that itself, by a template; a containerd that was on the host before has no template. If any
// configuration exists, another program makes the network.
func (j *joining) network(node *corev1.Node) error {
	if j.Self.OwnContainerd || node.Spec.PodCIDR == "" || !j.ledger.lists(render.PathCNIConfig) || j.disk.exists(render.PathCNIConfig) {
		return nil
	}
	if others, err := j.disk.list("/etc/cni/net.d"); err != nil || len(others) > 0 {
		return err
	}
	podCIDR, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return fmt.Errorf("reading the node's range of pods' addresses: %w", err)
	}
	content, err := render.CNIConfig(podCIDR)
	if err != nil {
		return err
	}
	if err := j.disk.place(artifact{path: render.PathCNIConfig, mode: 0o644, content: content}); err != nil {
		return err
	}
	j.done("network", "pods get addresses of %s", podCIDR)
	return nil
}

// uncordon takes back what a leave did that was begun and not ended.
func (j *joining) uncordon(ctx context.Context, client kubernetes.Interface) error {
	if !j.ledger.Cordoned {
		return nil
	}
	if err := cordon(ctx, client, j.ledger.NodeName, false); err != nil {
		return err
	}
	j.ledger.Cordoned = false
	j.done("node", "takes pods again")
	return nil
}

// cordon says whether a node takes new pods. A node may say that of itself.
func cordon(ctx context.Context, client kubernetes.Interface, name string, unschedulable bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("telling the cluster that node %s takes pods or does not: %w", name, err)
	}
	return nil
}
