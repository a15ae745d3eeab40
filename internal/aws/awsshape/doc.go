// SPDX-License-Identifier: Apache-2.0

// Package awsshape describes AWS APIs as tables: services, operations, and the shapes of their inputs, outputs and
// errors.
//
// A table says how each member of a shape is named on the wire, which type it has, and where in a request it is. The
// codecs of the protocols (restjson, awsjson, ec2query, query) are driven by it, so an operation needs no code of its
// own on the wire. The tables are generated from AWS's SDK for Go (package awstable has them).
//
// A codec decodes a request into an Object, which is a tree of plain Go values, after it has checked names, types and
// limits. Into copies the Object into the struct that an action works with. In the other direction a codec writes a
// struct as it is; Check, for tests, compares such a struct with the table.
package awsshape
