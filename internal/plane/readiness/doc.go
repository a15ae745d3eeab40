// SPDX-License-Identifier: Apache-2.0

// Package readiness reads the conditions of Clusters, NodeGroups and Machines: what keeps one from being Ready, and
// whether that passes by itself. The controllers that write the conditions take their reasons from here, and keep to
// its limit for messages. It is pure.
package readiness
