// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/cluster/insight"
)

// ofMachine begins the provider ids of nodes whose agent is Muster's.
const ofMachine = "aws:///"

// nodes are the nodes of the cluster. Kubernetes does not tell which kube-proxy a node runs (status.nodeInfo had the
// kubelet's version, and has none since 1.33). A pod of kube-proxy says so by its image. Muster's agent starts kube-proxy
// from the folder of the release that it starts the kubelet from. Of other nodes the version is not known.
// Nodes of the control plane's own Karpenter go back before the cluster, if it has one.
func nodes(ctx context.Context, api client.Client, compute bool) (found []insight.Node, err error) {
	var all corev1.NodeList
	if err := list(ctx, api, &all, "nodes"); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := list(ctx, api, &pods, "pods of kube-proxy", client.InNamespace("kube-system"), client.MatchingLabels{"k8s-app": "kube-proxy"}); err != nil {
		return nil, err
	}
	proxies := map[string]string{}
	for i := range pods.Items {
		if version := versionOfProxy(pods.Items[i].Spec); version != "" {
			proxies[pods.Items[i].Spec.NodeName] = version
		}
	}
	for i := range all.Items {
		n := insight.Node{Name: all.Items[i].Name, Kubelet: all.Items[i].Status.NodeInfo.KubeletVersion}
		n.KubeProxy, n.GoesBack = proxies[n.Name], compute && all.Items[i].Labels[karpenter.LabelNodeClass] == karpenter.NodeClass
		if n.KubeProxy == "" && strings.HasPrefix(all.Items[i].Spec.ProviderID, ofMachine) {
			n.KubeProxy = n.Kubelet
		}
		found = append(found, n)
	}
	return found, nil
}

// versionOfProxy is the tag of the image of a pod's kube-proxy; "" if it has none.
func versionOfProxy(pod corev1.PodSpec) string {
	for _, c := range pod.Containers {
		if c.Name != "kube-proxy" {
			continue
		}
		image, _, _ := strings.Cut(c.Image, "@")
		name := image[strings.LastIndexByte(image, '/')+1:]
		_, tag, _ := strings.Cut(name, ":")
		return tag
	}
	return ""
}
