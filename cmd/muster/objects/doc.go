// SPDX-License-Identifier: Apache-2.0

// Package objects has the commands about clusters, node groups and machines: get, create, scale, delete, exec, logs.
package objects
