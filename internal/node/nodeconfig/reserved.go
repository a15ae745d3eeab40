// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import "fmt"

// Reserved is the share of a machine that pods do not get (kubeReserved): for kubelet and containerd, by EKS's formula
// (amazon-eks-ami, nodeadm/internal/kubelet/config.go): 6 % of the first processor, 1 % of the second, 0.5 % of the
// next two, 0.25 % of the rest; 255 MiB of memory and 11 for each pod. A machine too small for that reserves a quarter
// of its memory: a kubelet whose reservation exceeds what there is refuses to start.
//
// maxPods is what really applies to the node. EKS takes what it computed, even if kubelet.config says something else.
func Reserved(cpus int, memoryBytes int64, maxPods int32) map[string]string {
	tenthsOfMillis := 0 // in 1/10 of a millicore, to stay with integers
	for cpu := range cpus {
		switch {
		case cpu == 0:
			tenthsOfMillis += 600
		case cpu == 1:
			tenthsOfMillis += 100
		case cpu < 4:
			tenthsOfMillis += 50
		default:
			tenthsOfMillis += 25
		}
	}
	mebibytes := min(11*int64(maxPods)+255, memoryBytes>>20/4)
	return map[string]string{
		"cpu":               fmt.Sprintf("%dm", tenthsOfMillis/10),
		"memory":            fmt.Sprintf("%dMi", mebibytes),
		"ephemeral-storage": "1Gi",
	}
}
