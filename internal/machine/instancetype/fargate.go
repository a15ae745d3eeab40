// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"fmt"
	"regexp"
	"strconv"
)

// fargate are the names of types of machines of Fargate: thousandths of a vCPU, and memory in MiB.
var fargate = regexp.MustCompile(`^fargate-([1-9][0-9]{2,4})-([1-9][0-9]{2,5})$`)

// FargateName returns the type of a machine of Fargate with so many thousandths of a vCPU and so much memory in MiB.
// Requests cannot name such a type: [Find] does not know it.
func FargateName(milliCPU, memoryMiB int64) string {
	return fmt.Sprintf("fargate-%d-%d", milliCPU, memoryMiB)
}

// OfMachine finds the type of a machine that there is: one of EC2's, or one of a machine of Fargate, which has at least
// the two processors of a core, as nodes of Fargate have on EKS.
func OfMachine(name string) (Type, error) {
	parts := fargate.FindStringSubmatch(name)
	if parts == nil {
		return Find(name)
	}
	milliCPU, _ := strconv.Atoi(parts[1]) // the expression bounds both
	memory, _ := strconv.ParseInt(parts[2], 10, 64)
	return Type{Name: name, VCPUs: max(ThreadsPerCore, milliCPU/1000), Cores: max(1, milliCPU/1000/ThreadsPerCore), MemoryMiB: memory}, nil
}
