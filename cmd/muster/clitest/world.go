// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// World is what there is in both planes before a test.
func World() []client.Object {
	cluster := &v1alpha1.Cluster{ObjectMeta: MadeBefore("home", 2*time.Hour)}
	cluster.Namespace, cluster.Spec.Name = "home", "home"
	cluster.Status = v1alpha1.ClusterStatus{
		Version: "v1.36.3", Endpoint: "https://127.0.0.1:6443", PrivateEndpoint: "https://172.31.0.4", VPCID: "vpc-0123456789abcdef0", PodCIDR: "10.244.0.0/16",
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Up", LastTransitionTime: metav1.NewTime(Noon)}},
	}

	group := &v1alpha1.NodeGroup{ObjectMeta: MadeBefore("default", time.Hour)}
	group.Namespace = "home"
	group.Spec = v1alpha1.NodeGroupSpec{
		Name: "default", Provider: v1alpha1.ProviderLocal, ScalingConfig: v1alpha1.ScalingConfig{MaxSize: 5, DesiredSize: 2},
	}
	group.Status = v1alpha1.NodeGroupStatus{Version: "1.36", Replicas: 2, ReadyReplicas: 1, ObservedGeneration: 1}

	ready := &v1alpha1.Machine{ObjectMeta: MadeBefore(FirstMachine, 59*time.Minute)}
	ready.Labels = map[string]string{v1alpha1.LabelCluster: "home", v1alpha1.LabelNodeGroup: "default"}
	ready.Spec = v1alpha1.MachineSpec{ClusterName: "home", NodeGroup: "default", Provider: v1alpha1.ProviderLocal}
	ready.Status = v1alpha1.MachineStatus{
		Phase: v1alpha1.MachineReady, NodeName: FirstNode, ProviderID: "aws:///us-east-1a/" + FirstMachine, Isolation: v1alpha1.IsolationUserNamespace, PodCIDR: "10.244.0.0/24",
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.0.5"}, {Type: corev1.NodeInternalDNS, Address: FirstNode}},
		Join: []v1alpha1.JoinRecord{
			{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(Noon.Add(-time.Hour))},
			{Step: v1alpha1.StepReady, Time: metav1.NewMicroTime(Noon.Add(-time.Hour + 1234*time.Millisecond))},
		},
	}
	joining := &v1alpha1.Machine{ObjectMeta: MadeBefore(SecondMachine, 3*time.Second)}
	joining.Spec = v1alpha1.MachineSpec{ClusterName: "home", NodeGroup: "default", Provider: v1alpha1.ProviderSimulated}
	joining.Status.Phase = v1alpha1.MachineJoining
	joining.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(Noon)}}

	node := &corev1.Node{ObjectMeta: MadeBefore(FirstNode, 58*time.Minute)}
	node.Labels = map[string]string{v1alpha1.LabelNodeGroup: "default"}
	node.Spec.ProviderID = "aws:///us-east-1a/" + FirstMachine
	node.Spec.Unschedulable = true
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 12", KernelVersion: "6.1.0", ContainerRuntimeVersion: "containerd://2.4.2"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.0.5"}}

	week := int32(7 * 24 * 3600)
	approved := &certificatesv1.CertificateSigningRequest{ObjectMeta: MadeBefore("csr-8x2vq", 58*time.Minute)}
	approved.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:abcdef", ExpirationSeconds: &week,
	}
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved"}}
	approved.Status.Certificate = []byte("-----BEGIN")
	pending := &certificatesv1.CertificateSigningRequest{ObjectMeta: MadeBefore("csr-p9kzt", time.Second)}
	pending.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Username: "evil\x1b[31m\nnode"}
	return []client.Object{cluster, group, ready, joining, node, approved, pending}
}
