// SPDX-License-Identifier: Apache-2.0

// Package csr has the commands about certificate signing requests: csr list, explain, simulate, machines, approve,
// deny.
package csr
