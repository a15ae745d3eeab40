// SPDX-License-Identifier: Apache-2.0

// Package bootstraptoken is how an operator lets machines in: it makes, lists and deletes bootstrap tokens in any
// cluster, tells which node used one, registers hosts that no other inventory knows, and words the command that a
// machine joins with.
package bootstraptoken
