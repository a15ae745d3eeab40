// SPDX-License-Identifier: Apache-2.0

package facts

import "muster.dev/muster/internal/certificates/policy"

// Made is a machine with names and addresses that are separated by spaces.
func Made(id, node, names, addresses string) policy.Machine { return made(id, node, names, addresses) }
