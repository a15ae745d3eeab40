// SPDX-License-Identifier: Apache-2.0

// Package explain has "muster explain".
package explain
