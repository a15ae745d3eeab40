// SPDX-License-Identifier: Apache-2.0

// Package bootstrapsh reads the arguments of /etc/eks/bootstrap.sh, as user data of EKS's Amazon Linux 2 nodes calls
// it, and says the same as a NodeConfig. Values in, values out: nothing is asked of AWS, and values that are not in the
// arguments come from the rest of the machine's user data.
//
// The script that is meant is amazon-eks-ami's templates/al2/runtime/bootstrap.sh before it was removed (commit
// b2289030^).
package bootstrapsh
