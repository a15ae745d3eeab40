// SPDX-License-Identifier: Apache-2.0

// Package healthprobe looks at the machine that it runs on: network interfaces, disk, processes, and lines of the
// kubelet's log. It finds facts, and package nodehealth decides what they are worth. It looks at nothing that machines
// of a host share.
//
// A fact that cannot be had is an error, and never a finding.
package healthprobe
