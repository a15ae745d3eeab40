// SPDX-License-Identifier: Apache-2.0

// Package awssdk holds the codecs of internal/cloud against AWS's SDK for Go: every field of every shape goes through
// the real client, both ways. It is a module of its own, since the product links none of these clients.
package awssdk
