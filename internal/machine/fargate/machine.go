// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"muster.dev/muster/api/v1alpha1"
)

// idDigits is how many digits an instance id has.
const idDigits = 17

// MachineID returns the id of the machine of a pod, by the namespace of its cluster in the management plane and its UID.
func MachineID(cluster string, pod types.UID) string {
	sum := sha256.Sum256([]byte("fargate/" + cluster + "/" + string(pod)))
	return "i-" + hex.EncodeToString(sum[:])[:idDigits]
}

// Place is where a machine may be.
type Place struct{ SubnetID, Zone string }

// Labels are those that the Node of a machine registers with.
func Labels() v1alpha1.NodeLabels { return v1alpha1.NodeLabels{v1alpha1.LabelComputeType: "fargate"} }

// Taints are those that the Node of a machine registers with.
func Taints() v1alpha1.NodeTaints {
	return v1alpha1.NodeTaints{{Key: v1alpha1.LabelComputeType, Value: "fargate", Effect: corev1.TaintEffectNoSchedule}}
}

// Machine returns the machine of a pod.
func Machine(cluster string, pod *corev1.Pod, profile *v1alpha1.FargateProfile, size Size, logging *v1alpha1.FargateLogging, subnet, image string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name:       MachineID(v1alpha1.ClusterSlug(cluster), pod.UID),
			Labels:     map[string]string{v1alpha1.LabelCluster: v1alpha1.ClusterSlug(cluster)},
			Finalizers: []string{v1alpha1.FinalizerMachine},
		},
		Spec: v1alpha1.MachineSpec{
			ClusterName: cluster, Provider: v1alpha1.DefaultProvider, SubnetID: v1alpha1.SubnetID(subnet),
			Labels: Labels(), Taints: Taints(), InstanceProfile: profile.Status.InstanceProfile, InstanceType: size.Type(), ImageID: image,
			Fargate: &v1alpha1.MachineFargate{
				Profile: profile.Spec.Name, ProfileUID: profile.UID,
				PodNamespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID,
				MilliCPU: size.MilliCPU, MemoryMiB: size.MemoryMiB, Logging: logging,
			},
		},
	}
}

// Fitting returns the places whose machines have the labels that a pod demands by its node selector and its required
// node affinity. A kubelet would refuse the pod elsewhere.
func Fitting(pod *corev1.Pod, region string, places []Place) []Place {
	demands := nodeaffinity.GetRequiredNodeAffinity(pod)
	var fit []Place
	for _, p := range places {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: p.Zone, corev1.LabelTopologyRegion: region,
		}}}
		maps.Copy(node.Labels, Labels().Strings())
		if ok, err := demands.Match(node); err == nil && ok {
			fit = append(fit, p)
		}
	}
	return fit
}
