// SPDX-License-Identifier: Apache-2.0

// Package hostreserve says how much of the host's disk neither volumes nor machines are to take: other data on it, such
// as etcd's, needs that room.
package hostreserve

// most is the largest reserve, in bytes.
const most = 10 << 30

// Of is the reserve of a disk of a size, in bytes: a twentieth, and at most 10 GiB.
func Of(total int64) int64 { return min(total/20, most) }
