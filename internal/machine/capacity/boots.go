// SPDX-License-Identifier: Apache-2.0

package capacity

import "muster.dev/muster/api/v1alpha1"

// Boots returns how many local machines a host boots at once: two for each processor, and at least as many as a group
// has by default, which a small host has booted at once all along. A boot takes a second of a processor, and more of
// memory and disk.
func Boots(cpus int) int { return max(v1alpha1.DefaultLocalMaxSize, 2*cpus) }
