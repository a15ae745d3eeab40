// SPDX-License-Identifier: Apache-2.0

// Package mcp has "muster mcp".
package mcp
