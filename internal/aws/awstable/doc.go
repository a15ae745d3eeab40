// SPDX-License-Identifier: Apache-2.0

// Package awstable has the tables of the AWS APIs that Muster answers. They are generated from AWS's SDK for Go by the
// nested module test/awssdk, which `make generate` runs; its services.go says which operations they have. Each is read
// once, when it is first asked for. The tables of eks-auth, elasticfilesystem and fis are written by hand.
package awstable
