// SPDX-License-Identifier: Apache-2.0

// Package certificatecontroller puts the certificate controller together from its policy file: keys, sources of facts,
// the register, the controller itself, health and metrics, and the election of a leader among replicas.
package certificatecontroller
