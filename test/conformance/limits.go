// SPDX-License-Identifier: Apache-2.0

package main

// limits are those of the kind of host that Muster is tried on.
var limits = []limit{}
