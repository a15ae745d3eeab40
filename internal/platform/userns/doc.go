// SPDX-License-Identifier: Apache-2.0

// Package userns starts programs in user namespaces whose ids are a range of the host's (user_namespaces(7)): root
// inside is nobody outside.
package userns
